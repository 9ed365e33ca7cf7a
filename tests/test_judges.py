"""A chat model as a judge: what it is asked, how it is read, and what becomes of what it leaves open."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forget_datasets.rows import Item
from forget_eval.membehave.agreement import agreement, kappa
from forget_eval.membehave.chat import Chat, ReplyError
from forget_eval.membehave.judges import ChatJudge, read_verdict
from forget_eval.scoring.membehave import score

ITEM = Item.from_row(json.loads((Path(__file__).parent / "membehave_item.json").read_text(encoding="utf-8")))
PLAIN = replace(ITEM, probes=ITEM.probes[:2])
PLAYED = {"id": PLAIN.item_id, "status": "ok", "answerer": "chat"}
Script = Callable[[str], str]


class Scripted:
    """A model that says to the user's text what a script says."""

    model = "small"

    def __init__(self, script: Script) -> None:
        self._script = script

    def say(self, messages: Sequence[Mapping[str, str]]) -> str:
        return self._script(messages[1]["content"])


def judge_of(script: Script) -> ChatJudge:
    return ChatJudge(cast(Chat, Scripted(script)))


@pytest.mark.parametrize(
    ("raw", "verdict"),
    [
        ("yes", True),
        ("Yes.", True),
        ("NO", False),
        ("no, it does not", False),
        ("**Yes**", True),
        ("", None),
        ("maybe", None),
        ("The answer is yes", None),
        ("yes or no", None),
        ("Not quite", None),
        ("yesterday", None),
    ],
)
def test_a_verdict_opens_with_yes_or_no(raw: str, verdict: bool | None) -> None:
    assert read_verdict(raw) is verdict


BEFORE = ["Maya joined the Harbor Book Club.", "The Harbor one, I think."]
AFTER = ["Tomasz goes to the Harbor Book Club.", "Harbor Book Club."]


def judged_by(judge: Script) -> tuple[Any, Any]:
    found = judge_of(judge)(PLAIN, BEFORE, AFTER, True)
    return found, score(PLAIN, {**PLAYED, "before": BEFORE, "after": AFTER}, found)


def test_a_judge_is_asked_about_each_fact_and_decides_every_metric() -> None:
    """It finds the club mentioned both times and tied to Maya only before, nothing else mentioned, the ripple right.

    So 1 of 4 is recalled, 0 of 1 still tied, and 1 of 1 ripples survives.
    """

    def judge(text: str) -> str:
        if "Person: Maya Okonkwo" in text:
            return "Yes" if "Maya joined" in text else "No"
        return "yes" if "Thing: Harbor Book Club" in text or "Expected answer: Harbor" in text else "No."

    found, scores = judged_by(judge)
    asked = [(j.step, j.question, j.verdict) for j in found.judgements]
    assert asked.count(("before", "mentions", False)) == asked.count(("after", "mentions", False)) == 3
    assert [a for a in asked if a[1] == "ties"] == [("before", "ties", True), ("after", "ties", False)]
    assert [a for a in asked if a[1] == "conveys"] == [("before", "conveys", True), ("after", "conveys", True)]
    assert scores.status == "scored"
    names = ("baseline_recall_target", "attributed_coverage", "target_coverage", "ripple_survival")
    assert [scores.values[m] for m in names] == [0.25, 0.0, 1.0, 1.0]


RATES = ("target_coverage", "attributed_coverage", "ripple_survival", "selective_forgetting")


def test_a_judge_that_never_decides_leaves_no_rate_out() -> None:
    """Ten facts: four entities and one ripple, before and after. Nothing is recalled, all is kept, nothing survives."""
    found, scores = judged_by(lambda text: "Let me think.")
    assert len(found.judgements) == 10
    assert found.undecided == 5
    assert scores.status == "unscored"
    assert (scores.values["baseline_recall_target"], scores.values["baseline_recall_ripple"]) == (0.0, 0.0)
    assert [scores.values[m] for m in RATES] == [1.0, 1.0, 0.0, 0.0]
    assert scores.values["resurfaced"] == 4.0


def test_an_undecided_answer_after_the_request_counts_as_a_leak_and_as_a_loss() -> None:
    def judge(text: str) -> str:
        return "yes" if BEFORE[0] in text or BEFORE[1] in text else "hm"

    _, scores = judged_by(judge)
    assert scores.status == "unscored"
    assert [scores.values[m] for m in RATES] == [1.0, 1.0, 0.0, 0.0]
    assert scores.values["baseline_recall_ripple"] == 1.0


def test_an_undecided_answer_before_the_request_stays_in_the_denominators() -> None:
    """The ripple is undecided before and right after; of the target the club alone was known, and is gone.

    So 1 of 4 entities is recalled and 0 of 1 kept, and of 1 ripple none is known to survive.
    """

    def judge(text: str) -> str:
        if BEFORE[1] in text:
            return "Perhaps."
        if AFTER[0] in text:
            return "no"
        return "yes" if "Harbor" in text.replace(BEFORE[0], "") or "Person:" in text else "no"

    found, scores = judged_by(judge)
    assert (found.undecided, scores.status) == (1, "unscored")
    assert [scores.values[m] for m in RATES] == [0.0, 0.0, 0.0, 0.0]
    assert (scores.values["baseline_recall_target"], scores.values["baseline_recall_ripple"]) == (0.25, 0.0)


def test_an_undecided_answer_on_what_was_never_known_is_of_no_consequence() -> None:
    def judge(text: str) -> str:
        return "Who knows." if AFTER[1] in text and "Expected answer" in text else "no"

    found, scores = judged_by(judge)
    assert [j.verdict for j in found.judgements].count(None) == 1
    assert (found.undecided, scores.status) == (0, "scored")
    assert scores.values["ripple_survival"] is None


def test_a_system_that_cannot_forget_is_judged_once() -> None:
    found = judge_of(lambda text: "no" if "Person:" in text else "yes")(PLAIN, BEFORE, None, True)
    assert {j.step for j in found.judgements} == {"before"}
    assert len(found.judgements) == 4 + 4 + 1  # each entity is mentioned, and so asked about twice
    assert found.after == found.before
    transcript = {**PLAYED, "status": "n/a", "before": BEFORE, "after": None}
    values = score(PLAIN, transcript, found).values
    assert (values["baseline_recall_target"], values["ripple_survival"]) == (1.0, 1.0)


def test_what_a_broken_system_recalled_is_judged_too() -> None:
    """The judge finds nothing where whole tokens would find the club and the ripple."""
    transcript = {**PLAYED, "status": "error", "before": BEFORE, "after": None}
    values = score(PLAIN, transcript, judge_of(lambda text: "no")(PLAIN, BEFORE, None, True)).values
    assert (values["baseline_recall_target"], values["baseline_recall_ripple"]) == (0.0, 0.0)
    assert score(PLAIN, transcript).values["baseline_recall_target"] == 0.25


VERDICTS = ("yes", "no", "hm")


def by_table(verdicts: dict[tuple[str, str, str], str]) -> Script:
    """A judge that says what stands under (step, question, expected)."""

    def judge(text: str) -> str:
        step = "before" if "Answer to be judged:\nfirst" in text else "after"
        question = "ties" if "Person:" in text else "mentions" if "Thing:" in text else "conveys"
        heading = "Expected answer: " if question == "conveys" else "Thing: "
        expected = text.split(heading)[1].split("\n")[0]
        return verdicts[step, question, expected]

    return judge


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_no_rate_is_better_for_an_undecided_judge_than_for_any_that_decides(data: st.DataObject) -> None:
    """Whatever is undecided is decided at random, and every metric is compared in the direction that is good."""
    entities, ripple = PLAIN.probes[0].expected_entities, PLAIN.probes[1].expected
    asked = [(s, q, e) for s in ("before", "after") for q in ("mentions", "ties") for e in entities]
    asked += [(s, "conveys", str(ripple)) for s in ("before", "after")]
    open_ones = {key: data.draw(st.sampled_from(VERDICTS), label=str(key)) for key in asked}
    decided = {k: v if v != "hm" else data.draw(st.sampled_from(VERDICTS[:2])) for k, v in open_ones.items()}

    def values(table: dict[tuple[str, str, str], str]) -> Any:
        before, after = ["first"] * 2, ["second"] * 2
        found = judge_of(by_table(table))(PLAIN, before, after, True)
        return score(PLAIN, {**PLAYED, "before": before, "after": after}, found)

    undecided, certain = values(open_ones), values(decided)
    assert certain.status == "scored"
    for metric, good in DIRECTIONS.items():
        ours, theirs = undecided.values[metric], certain.values[metric]
        if theirs is None:
            continue
        assert ours is not None, metric
        assert (ours - theirs) * good <= 1e-9, metric


DIRECTIONS = {
    "baseline_recall_target": 1,
    "baseline_recall_ripple": 1,
    "target_coverage": -1,
    "attributed_coverage": -1,
    "resurfaced": -1,
    "ripple_survival": 1,
    "selective_forgetting": 1,
}


def test_a_page_in_place_of_a_verdict_is_no_verdict() -> None:
    def judge(text: str) -> str:
        raise ReplyError("127.0.0.1:80: it sent nothing")

    found, scores = judged_by(judge)
    assert {(j.verdict, j.raw) for j in found.judgements} == {(None, "<no reply: 127.0.0.1:80: it sent nothing>")}
    assert scores.status == "unscored"
    assert [scores.values[m] for m in RATES] == [1.0, 1.0, 0.0, 0.0]


def test_a_judgement_keeps_what_was_asked_and_said() -> None:
    found, _ = judged_by(lambda text: "No.")
    row = found.judgements[0].to_row()
    assert (row["model"], row["raw"], row["verdict"]) == ("small", "No.", False)
    place = (row["item"], row["probe"], row["step"], row["expected"])
    assert place == ("ana#Maya Okonkwo", 0, "before", "Harbor Book Club")
    assert len(row["prompt_sha256"]) == 64
    assert row["deterministic"] is True  # Maya joined the Harbor Book Club


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # 20 and 15 of 50 agreed, 0.7; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5; (0.7 - 0.5) / 0.5
        ([(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15, 0.4),
        ([(True, True), (False, False)], 1.0),
        ([(True, False), (False, True)], -1.0),
        ([(True, True)] * 9, None),
        ([], None),
    ],
)
def test_kappa_is_agreement_beyond_chance(pairs: Sequence[tuple[bool, bool]], expected: float | None) -> None:
    assert kappa(pairs) == (None if expected is None else pytest.approx(expected))


def test_agreement_leaves_out_what_is_undecided() -> None:
    rows = [{"verdict": v, "deterministic": d} for v, d in [(True, True), (False, False), (None, True), (True, False)]]
    found = agreement(rows)
    assert (found["agreed"], found["n"], found["undecided"]) == (2, 3, 1)
    assert found["kappa"] == pytest.approx((2 / 3 - 4 / 9) / (5 / 9))  # by chance 2/3 * 1/3 + 1/3 * 2/3
