"""The engine on a language of a few words, and the proofs on rows that were broken by hand."""

from dataclasses import replace

import pytest

from forget_datasets.errors import UserError
from forget_datasets.forgeteval import engine, languages, screening
from forget_datasets.forgeteval.controls import CONTROLS, passes
from forget_datasets.rows import FAMILIES, GeneratedCase, Probe
from forget_datasets.verdicts import Reason, failures, strict_reasons

_TEMPLATE = """
[templates.{family}.job]
slots = {{ who = "person", old = "firm", new = "firm" }}
extras = {{ peer = "person", code = "code" }}
facts = [["{{who}} works at {{old}}.", "{{old}} employs {{who}}."]]
bystander = [["{{peer}} has locker {{code}}."]]
mutations = [{{ op = "supersede", query = ["the job of {{who}}"], text = ["{{who}} now works at {{new}}."] }}]
question = ["Where does {{who}} work?"]
require = ["{{new}}"]
forbid = ["{{old}}"]
survivors = [{{ question = ["Which locker does {{peer}} have?"], require = "{{code}}" }}]
"""
TINY = (
    'tag = "xx"\nname = "Tiny"\ndistractors = ["The lift is slow.", "Initech sponsors the fair.", "It rains."]\n'
    '[pools]\nperson = ["Alma", "Bodo", "Cleo"]\nfirm = ["Acme", "Initech", "Hooli"]\n[patterns]\ncode = "##"\n'
    + "".join(_TEMPLATE.format(family=family) for family in FAMILIES)
)


def tiny() -> languages.Language:
    return languages.parse(TINY, source="xx.toml")


def job(language: languages.Language) -> languages.Template:
    return language.templates["supersession"]["job"]


def test_capacity_counts_slots_alone() -> None:
    language = tiny()
    assert language.capacity(job(language)) == 3 * 3 * 2
    made = {
        (case.mutations[0], case.must_not_contain[0])
        for i in range(18)
        for case in [engine.expand(language, job(language), i, 42, 0)]
    }
    assert len(made) == 18


def test_more_than_the_capacity_or_the_distractors_is_an_error() -> None:
    language = tiny()
    with pytest.raises(UserError, match="makes 18 distinct cases; number 19"):
        engine.expand(language, job(language), 18, 42, 0)
    with pytest.raises(UserError, match="has 3 distractors; 4 were asked for"):
        engine.expand(language, job(language), 0, 42, 4)


def test_a_distractor_never_holds_a_string_of_the_case() -> None:
    language = tiny()
    for i in range(18):
        case = engine.expand(language, job(language), i, 42, 2)
        if "Initech" in (*case.must_contain, *case.must_not_contain):
            assert "Initech sponsors the fair." not in case.setup_facts
        assert screening.prove(case) == []


def test_the_screen_finds_what_the_file_hides() -> None:
    problems = screening.screen_language(tiny())
    assert "3 distinct distractors, fewer than 200" in problems
    assert "'Initech' of pool firm is in 'Initech sponsors the fair.'" in problems
    assert len(problems) == 2
    hidden = languages.parse(TINY.replace('"Alma"', '"Hool"').replace("It rains.", "Room 17."), source="xx.toml")
    found = screening.screen_language(hidden)
    assert "pool code could spell a part of 'Room 17.'" in found
    assert not any("Hool" in problem for problem in found)  # a name that no verdict looks for may be part of a value


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('person = ["Alma"', 'people = ["Alma"', "slot 'who' names the pool 'person'"),
        ('question = ["Where does {who}', 'question = ["Where does {whom}', "uses the slot 'whom'"),
        ('op = "supersede"', 'op = "erase"', "unknown op 'erase'"),
        ('op = "supersede"', 'op = "purge"', "a purge must not"),
        ("question =", "questoin =", "unknown key 'questoin'"),
        ("forbid = ", "aligned = true\nforbid = ", "aligned, but"),
        ("[pools]", "[pools", "xx.toml"),
    ],
)
def test_a_broken_language_file_says_where(old: str, new: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        languages.parse(TINY.replace(old, new), source="xx.toml")


PROVEN = GeneratedCase(
    id="supersession__job__001",
    family="supersession",
    setup_facts=["Alma works at Acme.", "Bodo has locker 17.", "It rains."],
    mutations=[("supersede", "the job of Alma", "Alma now works at Hooli.")],
    final_query="Where does Alma work?",
    must_contain=["Hooli"],
    must_not_contain=["Acme"],
    template="job",
    probes=[Probe("leak", "Acme", [], ["Acme"]), Probe("survivor", "Which locker has Bodo?", ["17"], [])],
    n_distractors=1,
)


def test_the_proven_case_is_proven_and_survives_a_round_trip() -> None:
    assert screening.prove(PROVEN) == []
    assert GeneratedCase.from_row(PROVEN.to_row()) == PROVEN


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"final_query": "Does Alma work at HOOLI?"}, "'Hooli' is in the final query"),
        ({"must_not_contain": ["Acme", "Initech"]}, "not exactly one leak probe"),
        ({"setup_facts": ["Alma left.", "Bodo has locker 17.", "It rains."]}, "'Acme' is in no fact that goes"),
        ({"setup_facts": [*PROVEN.setup_facts, "Hooli bought Acme."]}, "'Hooli' is in a fact that goes"),
        ({"mutations": [("supersede", "the job", "Alma left Acme for Hooli.")]}, "the last new text holds a forbidden"),
        ({"mutations": [("supersede", "the job", "Alma 17 works at Hooli.")]}, "no survivor probe requires a string"),
        ({"mutations": [("purge", "Bodo")], "must_contain": []}, "or in one that survives"),
        ({"n_distractors": 2}, "2, but 1 facts hold none"),
        ({"setup_facts": [*PROVEN.setup_facts, "it rains."], "n_distractors": 2}, "two facts are the same"),
        ({"must_not_contain": [], "probes": PROVEN.probes[1:]}, "nothing is forbidden"),
        ({"probes": [PROVEN.probes[0], Probe("survivor", "Is it 17?", ["17"], [])]}, "is in its own query"),
        ({"probes": [PROVEN.probes[0], Probe("survivor", "Acme", ["17"], [])]}, "two queries are the same"),
        ({"probes": [PROVEN.probes[0], Probe("witness", "x", ["17"], [])]}, "neither 'leak' nor 'survivor'"),
    ],
)
def test_a_broken_row_is_not_proven(change: dict[str, object], problem: str) -> None:
    assert any(problem in found for found in screening.prove(replace(PROVEN, **change)))


def test_controls_on_the_proven_case() -> None:
    assert CONTROLS["keep-all"](PROVEN, PROVEN) == [
        "Alma works at Acme.",
        "Bodo has locker 17.",
        "It rains.",
        "Alma now works at Hooli.",
    ]
    assert CONTROLS["wipe-all"](PROVEN, PROVEN) == ["Alma now works at Hooli."]
    assert CONTROLS["oracle"](PROVEN, PROVEN.probes[1])[0] == "Bodo has locker 17."
    assert {name: passes(name, PROVEN, None) for name in CONTROLS} == {
        "null": (False, False),
        "keep-all": (False, False),
        "wipe-all": (True, False),  # the spec's rule alone is gamed by a store that forgot everything else
        "oracle": (True, True),
    }


def test_a_wiped_store_holds_what_was_written_last() -> None:
    moved = replace(
        PROVEN,
        mutations=[*PROVEN.mutations, ("supersede", "the job of Alma", "Alma has moved on to Initech.")],
        must_contain=["Initech"],
        must_not_contain=["Acme", "Hooli"],
    )
    assert CONTROLS["wipe-all"](moved, moved) == ["Alma has moved on to Initech."]
    assert passes("wipe-all", moved, None)[0]
    purged = replace(moved, mutations=[*moved.mutations, ("purge", "Alma")])
    assert CONTROLS["wipe-all"](purged, purged) == []


def test_a_forbidden_string_does_not_hide_a_lost_one() -> None:
    assert failures(PROVEN, ["Alma works at ACME."]) == [Reason.STALE, Reason.LOST]
    assert failures(PROVEN, ["Alma now works at hooli."]) == []


def test_strict_reasons_name_each_kind_once() -> None:
    right = ["Alma now works at Hooli.", "Bodo has locker 17."]
    assert strict_reasons(PROVEN, right, [right, right], [right]) == []
    assert strict_reasons(PROVEN, right, [right, []], [right]) == [Reason.COLLATERAL]
    assert strict_reasons(PROVEN, right, [right, right], [["Acme!"]]) == [Reason.LEAK]
    with pytest.raises(ValueError, match="shorter"):
        strict_reasons(PROVEN, right, [right], [right])
