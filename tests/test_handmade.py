"""The cases written by hand: in number and shape as promised, provable, and winnable by an ordinary store."""

import tomllib
import unicodedata
from importlib.resources import files

import pytest

from forget_datasets.forgeteval import TOP_K, handmade
from forget_datasets.forgeteval.controls import CONTROLS, passes
from forget_datasets.rows import FAMILIES, GeneratedCase, Probe
from forget_eval import embedding

CASES = handmade.load()


def by_id(identifier: str) -> GeneratedCase:
    return next(case for case in CASES if case.id == identifier)


def test_three_a_family_in_order() -> None:
    assert [case.id for case in CASES] == [f"{f}__handmade__{n:03d}" for f in FAMILIES for n in (1, 2, 3)]
    assert {(case.template, case.lang) for case in CASES} == {("handmade", "en")}
    assert [case.family for case in CASES] == [family for family in FAMILIES for _ in range(3)]


def test_what_goes_and_what_stays_is_as_counted_by_hand() -> None:
    """Facts that go, facts of the case that stay, and new texts that go in their turn."""
    counted = {
        case.id: (
            sum(_is_forbidden(text, case) for text in case.setup_facts),
            sum(not _is_forbidden(text, case) for text in case.setup_facts) - case.n_distractors,
            sum(_is_forbidden(text, case) for mutation in case.mutations for text in mutation[2:]),
        )
        for case in CASES
    }
    assert list(counted.values()) == [
        *[(1, 1, 0)] * 3,  # supersession
        *[(1, 1, 0), (1, 2, 0), (1, 3, 0)],  # decay
        *[(3, 2, 0)] * 3,  # amnesia
        *[(2, 2, 0)] * 3,  # purge
        *[(1, 1, 1), (1, 1, 2), (1, 1, 2)],  # drift
    ]


def _is_forbidden(text: str, case: GeneratedCase) -> bool:
    return any(string in text for string in case.must_not_contain)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("k", [TOP_K, None])
def test_only_the_oracle_passes_strictly(case: GeneratedCase, k: int | None) -> None:
    assert {name: passes(name, case, k)[1] for name in CONTROLS} == {
        "null": False,
        "keep-all": False,
        "wipe-all": False,
        "oracle": True,
    }


def test_each_has_a_point_and_a_store_that_an_answer_cannot_cover() -> None:
    data = tomllib.loads((files("forget_datasets.forgeteval") / "handmade.toml").read_text(encoding="utf-8"))
    points = [entry["point"] for family in FAMILIES for entry in data[family]]
    assert len(set(points)) == 15
    assert all(len(case.setup_facts) > TOP_K for case in CASES)


def test_texts_are_in_composed_unicode() -> None:
    for case in CASES:
        for text in [*case.setup_facts, case.final_query, *(m[1] for m in case.mutations)]:
            assert unicodedata.is_normalized("NFC", text)


def test_a_case_as_a_whole() -> None:
    case = by_id("drift__handmade__001")
    assert case.mutations == [
        ("supersede", "the address where Elif lives", "Elif has moved and lives at 7 Mill Road."),
        ("supersede", "the address where Elif lives", "Elif has moved again and lives at 21 Larch Lane."),
    ]
    assert case.final_query == "At which address does Elif live?"
    assert case.must_contain == ["21 Larch Lane"]
    assert case.must_not_contain == ["12 Larch Lane", "7 Mill Road"]
    assert case.probes == [
        Probe("leak", "Who lives at 12 Larch Lane?", [], ["12 Larch Lane"]),
        Probe("leak", "When did Elif move to 7 Mill Road?", [], ["7 Mill Road"]),
        Probe("survivor", "At which address does Piotr live?", ["31 Larch Lane"], []),
    ]
    assert {"Elif lives at 12 Larch Lane.", "Piotr lives at 31 Larch Lane."} < set(case.setup_facts)
    assert (len(case.setup_facts), case.n_distractors) == (26, 24)


def test_a_purge_by_plus_address_leaves_the_plain_address() -> None:
    case = by_id("purge__handmade__001")
    answer = CONTROLS["oracle"](case, case)
    assert "Customer mira@lumen.example pays by yearly invoice." in answer
    assert not any("mira+shop" in text for text in answer)


def test_an_ordinary_dense_store_can_win() -> None:
    embed = embedding.load("minilm-int8", cache=False)
    for case in CASES:
        survivors = _survivors(case)
        vectors = embed(survivors)
        for need in [case, *(probe for probe in case.probes if probe.kind == "survivor")]:
            query = need.final_query if isinstance(need, GeneratedCase) else need.query
            nearest = (-(vectors @ embed([query])[0])).argsort(kind="stable")[:TOP_K]
            blob = " ".join(survivors[i] for i in nearest).lower()
            assert all(string.lower() in blob for string in need.must_contain), (case.id, query)


def test_an_ordinary_store_that_keeps_everything_is_found_out_by_every_leak_query() -> None:
    embed = embedding.load("minilm-int8", cache=False)
    for case in CASES:
        store = [*case.setup_facts, *(m[2] for m in case.mutations if len(m) > 2)]
        vectors = embed(store)
        for probe in case.probes:
            if probe.kind == "leak":
                nearest = (-(vectors @ embed([probe.query])[0])).argsort(kind="stable")[:3]
                assert any(probe.must_not_contain[0] in store[i] for i in nearest), (case.id, probe.query)


def _survivors(case: GeneratedCase) -> list[str]:
    """What a store with perfect deletion holds."""
    texts = [*case.setup_facts, *(m[2] for m in case.mutations if len(m) > 2)]
    return [text for text in texts if not any(s.lower() in text.lower() for s in case.must_not_contain)]
