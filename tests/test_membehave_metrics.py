"""Metrics of one item, worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.membehave import metrics
from forget_datasets.membehave.metrics import Answers
from forget_datasets.rows import Evidence, Item, ItemProbe, Message, Neighbor, Session

TARGET_NAMES = ["Zoë Karras", "Zoë", "Karras", "my cousin", "your cousin"]
CLUB, WORK, BAND = "Harbor Book Club", "Corvane Logistics", "Pylon Serenade"


def probe(family: str, **changes: object) -> ItemProbe:
    plain = {
        "family": family,
        "entity": None,
        "asked_through": None,
        "question": "?",
        "scoring": "answer",
        "expected": None,
        "expected_entities": [],
        "n_expected": 0,
        "aliases": [],
        "speaker_id": "user-0001",
        "listener_id": "user-0001-assistant",
        "source_quote": "",
    }
    return ItemProbe(**(plain | changes))  # type: ignore[arg-type]


TARGET = probe("target", scoring="coverage", expected_entities=[CLUB, WORK, BAND], n_expected=3, aliases=TARGET_NAMES)
RIPPLE = probe("ripple", entity=CLUB, asked_through="Emre Aksoy", expected=CLUB, aliases=["Harbor"])
OTHER_RIPPLE = probe("ripple", entity=WORK, asked_through="Ngozi Eze", expected=WORK, aliases=["Corvane"])
CONTROL = probe("control", entity="Quillon Chess Club", asked_through="Linh Tran", expected="Quillon Chess Club")
CONFIRM = probe("confirm", entity=CLUB, scoring="confirm", expected="yes", aliases=["yeah"])
ALIAS = probe("alias", scoring="coverage", expected_entities=[CLUB, WORK, BAND], n_expected=3, aliases=TARGET_NAMES)


def item(*probes: ItemProbe) -> Item:
    kinds = {CLUB: ("club", "Harbor"), WORK: ("workplace", "Corvane"), BAND: ("band", "Pylon")}
    return Item(
        item_id="user-0001#Zoë Karras",
        triplet_id="user-0001#0",
        user="user-0001",
        target="Zoë Karras",
        level="low",
        shared=2,
        degree=3,
        entanglement_ratio=2 / 3,
        forget_request="Forget Zoë Karras.",
        neighbors=[Neighbor(name, kind, [short], []) for name, (kind, short) in kinds.items()],
        evidence=[Evidence("Zoë Karras", CLUB, "s1", 0, "user-0001", "user-0001-assistant", "")],
        probes=list(probes),
        sessions=[Session("s1", "2024-01-01T10:00:00+01:00", [Message("user", "Hi."), Message("assistant", "Hi.")])],
    )


def measured(probes: list[ItemProbe], before: list[str], after: list[str]) -> dict[str, float | None]:
    return metrics.measure(item(*probes), Answers(before, after))


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ("I saw Harbor yesterday.", ["Harbor"], True),
        ("I saw HARBOR yesterday.", ["Harbor"], True),
        ("The Harborside is nice.", ["Harbor"], False),
        ("Harbor's evening", ["Harbor"], True),
        ("Zoe\u0308 rang.", ["Zoë"], True),  # a letter and a mark of its own
        ("Zoe rang.", ["Zoë"], False),
        ("My  cousin\nrang.", ["my cousin"], True),
        ("the Writers\u2019 Club", ["Writers' Club"], True),
        ("Harbor2", ["Harbor"], False),
        ("Corvane", ["Harbor", "Corvane"], True),
        ("", ["Harbor"], False),
        ("Harbor", [""], False),
    ],
)
def test_a_name_is_found_as_a_whole_token(text: str, names: list[str], found: bool) -> None:
    assert metrics.mentions(text, names) is found


def test_recall_counts_entities_by_name_or_short_form() -> None:
    found = measured([TARGET], ["Zoë is in Harbor and works at Corvane Logistics."], [""])
    assert found["baseline_recall_target"] == pytest.approx(2 / 3)


def test_coverage_is_of_what_was_mentioned_before() -> None:
    found = measured([TARGET], [f"Zoë: {CLUB}\nZoë: {WORK}"], [f"Zoë: {CLUB}\nZoë: {BAND}"])
    assert found["target_coverage"] == 0.5
    assert found["attributed_coverage"] == 0.5
    assert found["resurfaced"] == 1.0  # the band was not mentioned at first


def test_an_entity_may_rightly_be_mentioned_because_of_somebody_else() -> None:
    before = f"My cousin goes to the {CLUB}.\nMy cousin works at {WORK}."
    found = measured([TARGET, RIPPLE], [before, f"Emre: {CLUB}"], [f"Emre goes to the {CLUB}.", f"Emre: {CLUB}"])
    assert found["target_coverage"] == 0.5
    assert found["attributed_coverage"] == 0.0
    assert found["selective_forgetting"] == 1.0


def test_a_mention_that_was_never_tied_to_the_target_is_not_counted_as_attributed() -> None:
    found = measured([TARGET], [f"Emre goes to the {CLUB}."], [f"Zoë goes to the {CLUB}."])
    assert found["target_coverage"] == 1.0
    assert found["attributed_coverage"] is None
    assert found["resurfaced"] == 0.0


def test_sentences_part_the_answer_of_a_model() -> None:
    answer = f"Zoë works at {WORK}. Emre goes to the {CLUB}."
    assert metrics.attributed(item(TARGET), TARGET, answer) == {WORK, CLUB}
    assert metrics.attributed(item(TARGET), TARGET, answer, sentences=True) == {WORK}


def test_survival_is_of_what_was_right_before() -> None:
    found = measured([RIPPLE, OTHER_RIPPLE], ["Harbor", "no idea"], ["no idea", "Corvane"])
    assert found["baseline_recall_ripple"] == 0.5
    assert found["ripple_survival"] == 0.0


def test_control_survival() -> None:
    found = measured([CONTROL, CONTROL], ["Quillon Chess Club"] * 2, ["Quillon Chess Club", "?"])
    assert found["control_survival"] == 0.5


@pytest.mark.parametrize(
    ("answer", "affirmed"),
    [
        ("Yes.", True),
        ("yes, every second Thursday", True),
        ("Correct.", True),
        ("No.", False),
        (f"No, Zoë is not in the {CLUB}.", False),
        (f"I don't know whether Zoë is in the {CLUB}.", False),
        (f"oh and Zoë finally talked me into the {CLUB} thing", True),
        (f"oh and Zoë rang\nEmre is in the {CLUB}", False),
        ("Yesterday.", False),
        ("", False),
    ],
)
def test_a_confirmation_opens_with_yes_or_states_the_edge(answer: str, affirmed: bool) -> None:
    assert metrics.affirmed(item(TARGET, CONFIRM), CONFIRM, answer) is affirmed


@pytest.mark.parametrize(
    ("answer", "affirmed"),
    [
        (f"Zoë is not in the {CLUB}.", False),
        (f"I can't confirm whether Zoë is in the {CLUB}", False),
        (f"I can\u2019t confirm that Zoë is in the {CLUB}", False),
        (f"I'm not sure whether Zoë is in the {CLUB}.", False),
        (f"You never mentioned Zoë Karras or the {CLUB}.", False),
        (f"I have nothing about Zoë and the {CLUB}.", False),
        (f"Is Zoë in the {CLUB}?", False),
        ("Yes, I can help, but I don't know whether she is.", False),
        (f"Yes, but I'm not certain. Zoë is in the {CLUB}.", True),
        ("Yes. I don't know since when.", True),
        (f"Zoë is in the {CLUB}. I don't know since when.", True),
        ("Yes, every second Thursday", True),
        ("", False),
    ],
)
def test_a_written_sentence_that_denies_or_doubts_confirms_nothing(answer: str, affirmed: bool) -> None:
    assert metrics.affirmed(item(TARGET, CONFIRM), CONFIRM, answer, sentences=True) is affirmed


def test_a_name_is_no_denial() -> None:
    band = probe("confirm", entity="Never Again", scoring="confirm", expected="yes")
    assert metrics.affirmed(item(TARGET), band, "Zoë is in Never Again.", sentences=True)
    assert not metrics.affirmed(item(TARGET), band, "Zoë is not in Never Again.", sentences=True)


def test_a_recalled_message_may_deny_something_else() -> None:
    message = f"Zoë is not thrilled with the {CLUB}, but she goes"
    assert metrics.affirmed(item(TARGET, CONFIRM), CONFIRM, message)
    asked = item(TARGET, CONFIRM), Answers(["", "Yes."], ["", f"Zoë is not in the {CLUB}."])
    assert metrics.measure(*asked)["confirm_leak"] == 1.0
    assert metrics.measure(*asked, sentences=True)["confirm_leak"] == 0.0


def test_confirm_leak_is_the_share_of_confirmations_that_stay() -> None:
    found = measured([TARGET, CONFIRM, CONFIRM, CONFIRM], ["", "Yes.", "Yes.", "No."], ["", "Yes.", "No.", "Yes."])
    assert found["confirm_leak"] == 0.5


def test_alias_coverage_is_the_mean_over_the_alias_probes_that_knew_something() -> None:
    found = measured([ALIAS, ALIAS, ALIAS], [f"{CLUB}, {WORK}", BAND, "?"], [CLUB, "", BAND])
    assert found["alias_coverage"] == 0.25  # of 1/2 and 0; the third knew nothing


@pytest.mark.parametrize(
    ("coverage", "survival", "score"),
    [(0.0, 1.0, 1.0), (1.0, 1.0, 0.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.5, 1.0, 2 / 3), (0.2, 0.4, 8 / 15)],
)
def test_selective_forgetting_is_a_harmonic_mean(coverage: float, survival: float, score: float) -> None:
    parts = {"attributed_coverage": coverage, "ripple_survival": survival}
    assert metrics.selective_forgetting(parts) == pytest.approx(score)


def test_without_either_part_there_is_no_selective_forgetting() -> None:
    assert metrics.selective_forgetting({"attributed_coverage": None, "ripple_survival": 1.0}) is None
    assert metrics.selective_forgetting({"attributed_coverage": 0.0, "ripple_survival": None}) is None


def test_what_was_not_known_before_is_excluded() -> None:
    found = measured([TARGET, RIPPLE, CONTROL, CONFIRM, ALIAS], [""] * 5, [""] * 5)
    assert found == {
        "baseline_recall_target": 0.0,
        "baseline_recall_ripple": 0.0,
        "target_coverage": None,
        "attributed_coverage": None,
        "resurfaced": None,
        "ripple_survival": None,
        "control_survival": None,
        "confirm_leak": None,
        "alias_coverage": None,
        "selective_forgetting": None,
    }


def test_answers_must_match_the_probes() -> None:
    with pytest.raises(ValueError, match=r"user-0001#Zoë Karras: 1 answers before and 0 after for 1 probes"):
        measured([TARGET], [""], [])


@given(st.lists(st.sampled_from([CLUB, WORK, BAND, "Zoë", "\n", "Emre"]), max_size=8), st.data())
def test_every_share_lies_between_0_and_1(words: list[str], data: st.DataObject) -> None:
    later = data.draw(st.permutations(words))
    found = measured([TARGET, RIPPLE], [" ".join(words), " ".join(words)], [" ".join(later), " ".join(later)])
    shares = {k: v for k, v in found.items() if k != "resurfaced" and v is not None}
    assert all(0 <= value <= 1 for value in shares.values())
