"""The engine on a language of a few words, and the proofs on rows that were broken by hand."""

from dataclasses import replace

import pytest

from forget_datasets.errors import UserError
from forget_datasets.forgeteval import engine, languages, screening
from forget_datasets.forgeteval.audit import Audit
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
leaks = [["Who is paid by {{old}}?", "Whom does {{old}} pay?", "What does {{who}} do at {{old}}?", "What is {{old}}?"]]
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
        ("leaks = [[", "leaks = [[], [", r"\[\] is no list of phrasings"),
        (
            "leaks = [[",
            'leaks = [["x {old}"], [',
            "leaks has 2 lists of phrasings; it needs one for each string of forbid",
        ),
        ("What is {old}?", "What is it?", r"the leak query 'What is it\?' must name '\{old\}'"),
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
    probes=[
        Probe("leak", "Who is paid by Acme?", [], ["Acme"]),
        Probe("survivor", "Which locker has Bodo?", ["17"], []),
    ],
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
        (
            {"probes": [PROVEN.probes[0], Probe("survivor", "Who is paid by Acme?", ["17"], [])]},
            "two queries are the same",
        ),
        ({"probes": [PROVEN.probes[0], Probe("witness", "x", ["17"], [])]}, "neither 'leak' nor 'survivor'"),
    ],
)
def test_a_broken_row_is_not_proven(change: dict[str, object], problem: str) -> None:
    assert any(problem in found for found in screening.prove(replace(PROVEN, **change)))


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("Acme", "stands in a text of its case"),
        ("works at ACME?", "stands in a text of its case"),
        ("The job of Alma!", "stands in a text of its case"),
        ("Is it so that Alma works at Acme?", "holds a fact of its case"),
        ("Who went from Acme to Hooli?", "holds 'Hooli' as well"),
        ("Who has locker 17 at Acme?", "holds '17' as well"),
        ("Who is paid by Acmeville?", "does not hold 'Acme' as a whole token"),
        ("Who is paid by the firm?", "does not hold 'Acme' as a whole token"),
    ],
)
def test_a_leak_query_asks_for_its_string_and_looks_like_no_stored_text(query: str, problem: str) -> None:
    case = replace(PROVEN, probes=[Probe("leak", query, [], ["Acme"]), PROVEN.probes[1]])
    assert f"probes: the leak query '{query}' {problem}" in screening.prove(case)


def test_the_audit_of_a_row_finds_a_weak_leak_query() -> None:
    row = PROVEN.to_row()
    assert Audit().add(row) == []
    row["probes"][0]["query"] = "Acme"
    assert Audit().add(row) == [("probes", "the leak query 'Acme' stands in a text of its case")]


def test_a_leak_query_may_hold_what_its_own_string_contains() -> None:
    case = replace(
        PROVEN,
        setup_facts=["Alma works at New Acme.", "Alma left Acme.", "Bodo has locker 17."],
        must_not_contain=["Acme", "New Acme"],
        probes=[
            Probe("leak", "Who is paid by Acme?", [], ["Acme"]),
            Probe("leak", "Who is paid by New Acme?", [], ["New Acme"]),
            PROVEN.probes[1],
        ],
        n_distractors=0,
    )
    assert screening.prove(case) == []
    both = replace(case, probes=[Probe("leak", "Is New Acme still Acme?", [], ["New Acme"]), *case.probes[1:]])
    assert "probes: the leak query 'Is New Acme still Acme?' holds 'Acme' as well" in screening.prove(both)


def test_leak_queries_are_screened_for_the_file_as_a_whole() -> None:
    few = languages.parse(TINY.replace(', "What is {old}?"]]', "]]"), source="xx.toml")
    assert "purge.job: 3 leak queries for '{old}', fewer than 4" in screening.screen_language(few)
    told = languages.parse(TINY.replace("What is {old}?", "{who} works at {old}?"), source="xx.toml")
    problem = "drift.job: the leak query '{who} works at {old}?' stands in a text of its case"
    assert problem in screening.screen_language(told)


def test_other_leak_queries_change_nothing_else_of_a_case() -> None:
    plain, other = tiny(), languages.parse(TINY.replace("Who is paid by", "Who lives on"), source="xx.toml")
    differing = 0
    for i in range(18):
        one, two = (engine.expand(language, job(language), i, 42, 2) for language in (plain, other))
        differing += one.probes[0] != two.probes[0]
        assert replace(one, probes=one.probes[1:]) == replace(two, probes=two.probes[1:])
    assert 0 < differing < 18


def test_every_leak_query_of_a_template_is_asked() -> None:
    language = tiny()
    asked = set()
    for i in range(18):
        case = engine.expand(language, job(language), i, 42, 0)
        who = case.mutations[0][1].removeprefix("the job of ")
        asked.add(case.probes[0].query.replace(case.must_not_contain[0], "{old}").replace(who, "{who}"))
    assert asked == set(job(language).leaks[0])


def test_what_a_new_text_repeats_may_be_asked_for() -> None:
    """A clause that a supersede leaves as it was stands in the fact that goes and in the one that stays."""
    retold = replace(
        PROVEN,
        setup_facts=["Alma works at Acme and sings.", *PROVEN.setup_facts[1:]],
        mutations=[("supersede", "the job of Alma", "Alma now works at Hooli and sings.")],
        probes=[*PROVEN.probes, Probe("survivor", "What does Alma do?", ["sings"], [])],
    )
    assert screening.prove(retold) == []
    assert {name: passes(name, retold, None)[1] for name in CONTROLS} == {
        "null": False,
        "keep-all": False,
        "wipe-all": False,
        "oracle": True,
    }
    lost = replace(retold, mutations=PROVEN.mutations)
    assert "must_contain: 'sings' is in a fact that goes" in screening.prove(lost)


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


@pytest.mark.parametrize("shown", ["Ac\u00adme", "A\u200bcme", "\u2060A\ufeffCME", "Acme\ufe0f"])
def test_what_nobody_sees_does_not_hide_a_forbidden_string(shown: str) -> None:
    right = ["Alma now works at Hooli.", "Bodo has locker 17."]
    leaky = [f"Alma works at {shown}."]
    assert strict_reasons(PROVEN, right, [right, right], [leaky]) == [Reason.LEAK]
    assert strict_reasons(PROVEN, [*right, *leaky], [right, right], [right]) == [Reason.STALE]
    assert failures(PROVEN, leaky) == ([Reason.LOST] if shown != "Acme\ufe0f" else [Reason.STALE, Reason.LOST])


def test_a_forbidden_string_is_found_composed_or_not() -> None:
    case = replace(
        PROVEN, must_not_contain=["Caf\u00e9"], probes=[Probe("leak", "What is Caf\u00e9?", [], ["Caf\u00e9"])]
    )
    assert strict_reasons(case, ["Hooli"], [["Alma works at Cafe\u0301."]], [[]]) == [Reason.LEAK]
    assert strict_reasons(case, ["Hooli"], [["Alma works at Cafe."]], [[]]) == []


def test_what_is_required_is_compared_as_the_spec_does() -> None:
    """No case passes strictly that fails the spec's rule."""
    assert strict_reasons(PROVEN, ["Hoo\u00adli"], [[], ["17"]], [[]]) == [Reason.LOST]
