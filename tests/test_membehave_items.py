"""Rows of MemBehave as they are built: addressed, consistent, in the promised shape, the same bytes everywhere."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from forget_datasets.errors import UserError
from forget_datasets.membehave import Parameters, Triplet, generate, generate_triplet
from forget_datasets.membehave.items import same_message
from forget_datasets.membehave.metrics import attributed, mentions, target_names
from forget_datasets.membehave.screening import check_item, check_triplet
from forget_datasets.membehave.triplets import PEOPLE_SHARE, PHRASE_SHARE, make_history
from forget_datasets.rows import LEVELS, Item, Message, content_hash

GOLDEN = json.loads((Path(__file__).parent / "golden" / "membehave.json").read_text(encoding="utf-8"))
"""By config, and the hash of the extended rows of two triplets. Only scripts/regenerate_goldens.py rewrites it."""

HASHING = """
from forget_datasets.membehave import generate
from forget_datasets.rows import content_hash
print(content_hash(item.to_row() for triplet in generate(2) for item in triplet.extended))
"""


@pytest.fixture(scope="module")
def built() -> list[Triplet]:
    return list(generate(42))


@pytest.fixture(scope="module")
def items(built: list[Triplet]) -> list[Item]:
    return [item for triplet in built for item in triplet.extended]


def test_every_row_and_triplet_is_consistent(built: list[Triplet], items: list[Item]) -> None:
    assert [problem for item in items for problem in check_item(item)] == []
    assert [problem for t in built for item in t.default for problem in check_item(item)] == []
    assert [problem for t in built for problem in check_triplet(t.default)] == []


def test_the_published_form_has_the_shape_of_the_spec(items: list[Item]) -> None:
    assert len(items) == 126
    assert len({item.user for item in items}) == 42
    for level, mean in (("low", 1.4), ("med", 3.6), ("high", 8.6)):
        shared = [item.shared for item in items if item.level == level]
        assert len(shared) == 42
        assert sum(shared) / 42 == pytest.approx(mean, abs=0.25)
    assert {item.degree for item in items} == {11, 12, 13}


def test_people_recur_as_targets(items: list[Item]) -> None:
    assert len({item.target for item in items}) < len(items)


def test_targets_of_a_triplet_are_mentioned_equally_often(built: list[Triplet]) -> None:
    for triplet in built:
        assert set(triplet.figures.mentions.values()) == {20}
        by_both = [
            sum(mentions(m.content, target_names(item)) for s in item.sessions for m in s.messages)
            for item in triplet.default
        ]
        assert max(by_both) <= 1.15 * min(by_both), triplet.index


def test_facts_are_a_minority_and_no_phrase_is_worn_out(built: list[Triplet]) -> None:
    makeups = [t.figures.makeup for t in built]
    assert max(m.people_share for m in makeups) <= PEOPLE_SHARE
    assert max(m.fact_share for m in makeups) < 0.25
    assert max(m.phrase_share for m in makeups) <= PHRASE_SHARE


def test_a_quarter_of_the_shared_entities_is_told_jointly(items: list[Item]) -> None:
    share = sum(map(same_message, items)) / sum(item.shared for item in items)
    assert share == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize(("wanted", "low", "high"), [(0.0, 0.0, 0.0), (0.5, 0.35, 0.65), (1.0, 1.0, 1.0)])
def test_the_share_told_jointly_can_be_chosen(wanted: float, low: float, high: float) -> None:
    rows = [item for triplet in generate(6, same_message=wanted) for item in triplet.default]
    assert low <= sum(map(same_message, rows)) / sum(item.shared for item in rows) <= high
    assert [problem for item in rows for problem in check_item(item)] == []


def test_histories_run_over_a_year_in_order_and_fit_the_bounds(items: list[Item]) -> None:
    for item in items[::3]:
        starts = [datetime.fromisoformat(s.start_time) for s in item.sessions]
        assert starts == sorted(starts)
        assert starts[-1] - starts[0] >= timedelta(days=365)
        assert len(item.sessions) == 80
        assert {len(s.messages) for s in item.sessions} <= {6, 8, 10, 12, 14}


def test_messages_are_single_lines_without_open_slots(items: list[Item]) -> None:
    for item in items[::3]:
        for message in (m.content for s in item.sessions for m in s.messages):
            assert len(message.splitlines()) == 1
            assert message == message.strip()
            assert "{" not in message
            assert not message.startswith("~")
            assert "  " not in message
            assert not message.startswith("<")
            assert '?".' not in message


def test_nobody_else_of_a_user_has_a_name_or_relation_of_a_target() -> None:
    for index in range(5):
        gold = make_history(index, 42, Parameters()).gold
        for target in gold.targets:
            others = {alias for known in gold.known if known != target.who for alias in known.aliases}
            assert not others & set(target.who.aliases)


def test_the_target_appears_under_full_name_first_name_and_relation(items: list[Item]) -> None:
    for item in items[:30]:
        told = [m.content for s in item.sessions for m in s.messages if m.role == "user"]
        full, first, _, relation, _ = item.probes[0].aliases
        without = [text.replace(full, "") for text in told]
        assert mentions(" ".join(told), [full])
        assert mentions(" ".join(without), [first])
        assert any(mentions(text, [relation]) and not mentions(text, [first]) for text in told)


def test_the_share_that_names_the_target_by_a_relation_alone_is_the_one_that_the_readme_states(
    items: list[Item], root: Path
) -> None:
    told, unnamed, left = 0, 0, []
    for item in items:
        evidence = {e.quote for e in item.evidence if e.person == item.target}
        kept = [quote for quote in evidence if not mentions(quote, [item.target, item.target.split()[0]])]
        told, unnamed = told + len(evidence), unnamed + len(kept)
        probe = item.probes[0]
        tied = attributed(item, probe, "\n".join(evidence))
        left.append(len(attributed(item, probe, "\n".join(kept))) / len(tied))
    assert round(told / unnamed) == 13
    assert f"{sum(left) / len(left):.1%}" == "7.8%"
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    assert "One evidence message in thirteen names the person by a relation alone" in readme
    assert "an attributed coverage of 7.8%" in readme


def test_extended_adds_probes_and_changes_nothing_else(built: list[Triplet]) -> None:
    for triplet in built:
        for plain, more in zip(triplet.default, triplet.extended, strict=True):
            assert replace(more, probes=plain.probes) == plain
            assert more.probes[: len(plain.probes)] == plain.probes
            assert {p.family for p in plain.probes} == {"target", "ripple"}
            assert {p.family for p in more.probes[len(plain.probes) :]} == {"control", "confirm", "alias"}


def test_control_probes_ask_about_people_who_share_nothing_with_the_target(items: list[Item]) -> None:
    for item in items:
        sharing = {person for n in item.neighbors for person in n.shared_with}
        entities = {n.entity for n in item.neighbors}
        controls = [p for p in item.probes if p.family == "control"]
        assert len(controls) >= 3
        assert not {p.asked_through for p in controls} & (sharing | {item.target})
        assert not {p.entity for p in controls} & entities


def test_confirm_probes_state_the_value_and_alias_probes_use_another_name(items: list[Item]) -> None:
    for item in items:
        for p in item.probes:
            if p.family == "confirm":
                assert mentions(p.question, [p.entity or ""])
                assert mentions(p.question, [item.target])
            if p.family == "alias":
                assert not mentions(p.question, [item.target])
                assert mentions(p.question, target_names(item))


def test_a_triplet_made_alone_is_the_same(built: list[Triplet]) -> None:
    for index in (0, 8, 41):
        assert generate_triplet(index) == built[index]


def test_triplets_of_one_user_share_its_history_and_are_addressed_too() -> None:
    parameters = Parameters(triplets_per_user=2)
    third, fourth = (generate_triplet(i, parameters=parameters) for i in (2, 3))
    assert [t.default[0].triplet_id for t in (third, fourth)] == ["user-0002#0", "user-0002#1"]
    assert third.default[0].sessions == fourth.default[0].sessions
    assert len({item.target for t in (third, fourth) for item in t.default}) == 6
    assert [problem for t in (third, fourth) for i in t.extended for problem in check_item(i)] == []
    assert list(generate(4, triplets_per_user=2))[2:] == [third, fourth]


def test_another_seed_gives_other_people_and_other_words() -> None:
    one, other = generate_triplet(0), generate_triplet(0, seed=7)
    assert {i.target for i in one.default} != {i.target for i in other.default}
    assert one.default[0].sessions[0] != other.default[0].sessions[0]


def test_noise_changes_what_is_recorded_and_not_what_is_told() -> None:
    spurious = dropped = 0
    for triplet in generate(4, noise=0.15):
        gold = make_history(triplet.index, 42, Parameters(noise=0.15)).gold
        told = {(t.who.person.name, e.entity.name) for t in gold.targets for e in t.edges}
        recorded = {(i.target, n.entity) for i in triplet.default for n in i.neighbors}
        assert sum(e.spurious for e in triplet.figures.edges.values()) == len(recorded - told)
        assert sum(e.dropped for e in triplet.figures.edges.values()) == len(told - recorded)
        assert sum(e.right for e in triplet.figures.edges.values()) == len(told & recorded)
        spurious, dropped = spurious + len(recorded - told), dropped + len(told - recorded)
        assert check_triplet(triplet.default) == []
        assert [problem for i in triplet.extended for problem in check_item(i)] == []
    assert spurious > 0
    assert dropped > 0


def test_without_noise_every_edge_is_right(built: list[Triplet]) -> None:
    for triplet in built:
        for item in triplet.default:
            assert triplet.figures.edges[item.level] == (item.degree, 0, 0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"triplets_per_user": 4}, "1 to 3 triplets"),
        ({"sessions_per_user": 20}, "must be 60 to 120"),
        ({"sessions_per_user": 121}, "must be 60 to 120"),
        ({"same_message": 1.5}, "a share from 0 to 1"),
        ({"noise": -0.1}, "a share from 0 to 1"),
    ],
)
def test_parameters_outside_their_bounds_are_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Parameters(**wrong)  # type: ignore[arg-type]


def test_figures_add_up(built: list[Triplet]) -> None:
    for triplet in built:
        for item in triplet.extended:
            tally = triplet.figures.questions[item.level]
            kept = sum(p.family in ("ripple", "control") for p in item.probes)
            assert tally.written == kept + sum(tally.dropped.values())
            assert tally.rephrased <= kept
        assert list(triplet.figures.questions) == list(LEVELS)


def test_some_questions_were_rephrased_and_some_dropped(built: list[Triplet]) -> None:
    tallies = [tally for t in built for tally in t.figures.questions.values()]
    assert sum(t.rephrased for t in tallies) > 0
    assert sum(t.dropped["guessable"] for t in tallies) > 0


@pytest.mark.parametrize("config", ["default", "extended"])
def test_the_published_form_is_golden(built: list[Triplet], config: str) -> None:
    rows = [item.to_row() for triplet in built for item in getattr(triplet, config)]
    golden = GOLDEN[config]
    assert golden["rows"] == len(rows)
    for record, row in zip(golden["records"], (rows[0], rows[8], rows[-1]), strict=True):
        assert record == {**row, "sessions": row["sessions"][:1]}
    assert golden["content_hash"] == content_hash(rows)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_bytes_are_the_same_on_every_python(version: str, run_on_python: Callable[[str, str], str]) -> None:
    assert run_on_python(version, HASHING) == GOLDEN["two triplets"]


def broken(item: Item, **changes: object) -> Item:
    return replace(item, **changes)  # type: ignore[arg-type]


def test_a_level_that_contradicts_shared_is_reported(items: list[Item]) -> None:
    assert check_item(broken(items[0], level="high"))[0].startswith(f"{items[0].item_id}: level: 'high' contradicts")


def test_counts_that_are_off_are_reported(items: list[Item]) -> None:
    found = check_item(broken(items[0], shared=2 + items[0].shared, degree=5))
    assert any("shared:" in problem for problem in found)
    assert any("degree: 5, but there are" in problem for problem in found)
    assert any("entanglement_ratio:" in problem for problem in found)


def test_missing_evidence_is_reported(items: list[Item]) -> None:
    item = items[2]
    ripple = next(p for p in item.probes if p.family == "ripple")
    left = [e for e in item.evidence if (e.person, e.entity) != (ripple.asked_through, ripple.entity)]
    found = check_item(broken(item, evidence=left))
    assert f"{item.item_id}: evidence: none for {ripple.asked_through} and {ripple.entity}" in found
    assert any("the evidence of the ripple probe for" in problem for problem in found)


def test_a_quote_that_stands_elsewhere_is_reported(items: list[Item]) -> None:
    item = items[0]
    moved = [replace(item.evidence[0], message_index=item.evidence[0].message_index + 1), *item.evidence[1:]]
    assert any("evidence: the quote for" in problem for problem in check_item(broken(item, evidence=moved)))


def test_sessions_are_checked(items: list[Item]) -> None:
    item, session = items[0], items[0].sessions[0]

    def found(*messages: Message) -> str:
        first = replace(session, messages=list(messages))
        return "\n".join(check_item(broken(item, sessions=[first, *item.sessions[1:]])))

    hello, hi = Message("user", "Hello."), Message("assistant", "Hi.")
    assert "unknown role 'system' (known: user, assistant)" in found(Message("system", "Hm."), hi, hello, hi, hello, hi)
    assert "do not take turns" in found(hello, hello, hi, hi, hello, hi)
    assert "2 messages, 6 to 14 expected" in found(hello, hi)
    assert "an empty message" in found(Message("user", " "), hi, hello, hi, hello, hi)
    assert "the history is empty" in "\n".join(check_item(broken(item, sessions=[])))
    crowd = [replace(session, session_id=f"s{i}") for i in range(121)]
    assert "121, at most 120 expected" in "\n".join(check_item(broken(item, sessions=crowd)))
    undated = replace(session, start_time="2024-01-01T10:00:00")
    assert "not ISO 8601 with an offset" in "\n".join(check_item(broken(item, sessions=[undated])))


def test_probe_rules_are_checked(items: list[Item]) -> None:
    item = next(i for i in items if i.level == "med")
    ripple = next(i for i, p in enumerate(item.probes) if p.family == "ripple")

    def found(**changes: object) -> str:
        probes = list(item.probes)
        probes[ripple] = replace(probes[ripple], **changes)  # type: ignore[arg-type]
        return "\n".join(check_item(broken(item, probes=probes)))

    first_name = item.target.split()[0]
    assert "names the target" in found(question=f"What did {first_name} join?")
    assert "is in its question" in found(question=f"Who is at {item.probes[ripple].expected}?")
    assert "is not in its source quote" in found(source_quote="Something else.")
    assert "is not shared with" in found(asked_through="Nobody Known")
    assert "unknown family 'riple'" in found(family="riple")
    assert "should be 'answer'" in found(scoring="coverage")
    assert "two probes ask" in found(question=item.probes[0].question)
    without = [p for p in item.probes if p.family != "ripple"]
    assert f"0 ripple probes for {item.shared} shared entities" in "\n".join(check_item(broken(item, probes=without)))
    few = [p for p in item.probes if p.family != "control"]
    assert "0 control probes, at least 3 expected" in "\n".join(check_item(broken(item, probes=few)))


def test_triplets_are_checked(built: list[Triplet]) -> None:
    low, med, high = built[0].default
    assert "level: has low, med where" in check_triplet([low, med])[0]
    assert "user: differs" in "\n".join(check_triplet([low, med, built[1].default[2]]))
    assert "sessions: differ" in "\n".join(check_triplet([low, med, replace(high, sessions=high.sessions[:-1])]))
    assert "degree:" in "\n".join(check_triplet([low, med, replace(high, degree=20)]))
    assert "triplet_id: differs" in "\n".join(check_triplet([low, med, replace(high, triplet_id="user-0001#9")]))
    assert "same person twice" in "\n".join(check_triplet([low, med, replace(high, target=low.target)]))
