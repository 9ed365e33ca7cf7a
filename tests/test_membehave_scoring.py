"""Scores of MemBehave, worked out by hand."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.errors import UserError
from forget_datasets.rows import Item
from forget_eval.membehave.controls import ControlAssistant
from forget_eval.membehave.disclosure import Label
from forget_eval.membehave.replay import Replay
from forget_eval.scoring.membehave import METRICS, ItemScore, score, summarise, tidy
from forget_eval.transcripts import Transcript

ITEM = Item.from_row(json.loads((Path(__file__).parent / "membehave_item.json").read_text(encoding="utf-8")))
CLUB = "Maya Okonkwo, my cousin, joined the Harbor Book Club."
LABS = "Maya started at Lindqvist Labs on Monday."
POTTERY = "Maya and Hugo Petit both take the course at Quill Street Pottery."
TOMASZ = "Tomasz Baran has been in the Harbor Book Club for years."
NIAMH = "Niamh Doyle dances at the Vela Dance Studio."
SOUP = "Soup again."


def transcript(before: Sequence[str] | None, after: Sequence[str] | None, **more: Any) -> Transcript:
    return {"id": ITEM.item_id, "before": before, "after": after, "status": "ok", "answerer": "extractive", **more}


def lines(*messages: str) -> str:
    return "\n".join(messages)


def test_a_clean_forgetting_that_costs_one_shared_fact() -> None:
    """Probes: target, ripple through Tomasz, ripple through Hugo, control, confirm, alias.

    Before: three of four entities mentioned, all tied to Maya; both ripples, the control and the confirm right; two of
    four under the alias. After: the club is mentioned because of Tomasz alone (1 of 3 mentioned, 0 of 3 tied); pottery,
    told in one message with Maya's, is gone (1 of 2 ripples survives). Harmonic mean of 1 - 0 and 1/2: 2/3.
    """
    before = [lines(CLUB, LABS, POTTERY, TOMASZ), TOMASZ, POTTERY, NIAMH, LABS, lines(CLUB, LABS)]
    after = [lines(TOMASZ, SOUP), TOMASZ, SOUP, NIAMH, SOUP, TOMASZ]
    found = score(ITEM, transcript(before, after))
    assert (found.status, found.label, found.most) == ("scored", Label.DONT_KNOW, 4)
    assert found.values == {
        "baseline_recall_target": 0.75,
        "baseline_recall_ripple": 1.0,
        "target_coverage": pytest.approx(1 / 3),
        "attributed_coverage": 0.0,
        "resurfaced": 0.0,
        "ripple_survival": 0.5,
        "control_survival": 1.0,
        "confirm_leak": 0.0,
        "alias_coverage": 0.5,
        "selective_forgetting": pytest.approx(2 / 3),
    }


def test_what_surfaces_only_afterwards_is_counted() -> None:
    before = [CLUB, SOUP, SOUP, SOUP, SOUP, SOUP]
    after = [lines(LABS, POTTERY), SOUP, SOUP, SOUP, SOUP, SOUP]
    found = score(ITEM, transcript(before, after))
    assert found.values["resurfaced"] == 2.0
    assert found.values["attributed_coverage"] == 0.0
    assert found.label is Label.DISCLOSED
    assert [found.values[m] for m in ("ripple_survival", "control_survival", "confirm_leak", "alias_coverage")] == [
        None
    ] * 4
    assert found.values["selective_forgetting"] is None


def test_a_written_answer_is_cut_into_sentences() -> None:
    written = "Maya is your cousin. Tomasz Baran is in the Harbor Book Club."
    other = [SOUP] * 5
    found = score(ITEM, transcript([written, *other], [written, *other], answerer="chat"))
    assert found.values["attributed_coverage"] is None  # the club is Tomasz's
    assert found.values["target_coverage"] == 1.0
    assert found.label is Label.WRONG
    recalled = score(ITEM, transcript([written, *other], [written, *other]))
    assert recalled.values["attributed_coverage"] == 1.0  # one message, which names Maya


def test_a_system_that_cannot_forget_keeps_everything_and_selects_nothing() -> None:
    before = [CLUB, TOMASZ, SOUP, NIAMH, LABS, SOUP]
    found = score(ITEM, transcript(before, None, status="n/a"))
    assert (found.status, found.label) == ("n/a", None)
    assert [found.values[m] for m in ("attributed_coverage", "selective_forgetting")] == [1.0, 0.0]
    assert [found.values[m] for m in ("target_coverage", "ripple_survival", "confirm_leak")] == [1.0, 1.0, 1.0]
    assert found.values["baseline_recall_ripple"] == 0.5
    ignorant = score(ITEM, transcript([SOUP] * 6, None, status="n/a"))
    assert [ignorant.values[m] for m in ("attributed_coverage", "selective_forgetting")] == [1.0, 0.0]
    assert ignorant.values["ripple_survival"] is None


def test_a_system_that_broke_has_the_worst_of_what_was_not_measured() -> None:
    before = [CLUB, TOMASZ, SOUP, NIAMH, LABS, SOUP]
    found = score(ITEM, transcript(before, None, status="error"))
    assert found.status == "error"
    assert [found.values[m] for m in METRICS] == [0.25, 0.5, 1.0, 1.0, None, 0.0, 0.0, 1.0, 1.0, 0.0]
    assert [score(ITEM, transcript(None, None, status="error")).values[m] for m in METRICS[:2]] == [0.0, 0.0]


def test_a_broken_item_has_no_metric_of_a_family_that_it_lacks() -> None:
    plain = replace(ITEM, probes=ITEM.probes[:3])
    found = score(plain, transcript(None, None, status="error"))
    assert [found.values[m] for m in ("control_survival", "confirm_leak", "alias_coverage")] == [None] * 3


def test_an_item_that_was_not_run_is_unscored() -> None:
    found = score(ITEM, None)
    assert (found.status, found.label) == ("unscored", None)
    assert set(found.values.values()) == {None}


def test_answers_to_other_probes_are_refused() -> None:
    with pytest.raises(UserError, match="does not answer the probes"):
        score(ITEM, transcript([SOUP] * 5, [SOUP] * 5))


@pytest.mark.parametrize(
    ("control", "expected"),
    [
        (
            "null",
            {
                "baseline_recall_target": 0.0,
                "attributed_coverage": None,
                "ripple_survival": None,
                "selective_forgetting": None,
            },
        ),
        (
            "keep-all",
            {
                "baseline_recall_target": 1.0,
                "attributed_coverage": 1.0,
                "ripple_survival": 1.0,
                "selective_forgetting": 0.0,
            },
        ),
        (
            "wipe-all",
            {"target_coverage": 0.0, "attributed_coverage": 0.0, "ripple_survival": 0.0, "selective_forgetting": 0.0},
        ),
        # of the two ripples the pottery is told in one message with Maya's
        (
            "redactor",
            {"attributed_coverage": 0.0, "ripple_survival": 0.5, "control_survival": 1.0, "confirm_leak": 0.0},
        ),
        (
            "oracle",
            {"attributed_coverage": 0.0, "ripple_survival": 1.0, "confirm_leak": 0.0, "selective_forgetting": 1.0},
        ),
    ],
)
def test_controls_land_where_they_should(control: str, expected: dict[str, float | None]) -> None:
    played = Replay(ControlAssistant(control), answerer="control")(ITEM)
    found = score(ITEM, played)
    assert {metric: found.values[metric] for metric in expected} == expected


def scored(triplet: int, level: str, target: str, survival: float | None, status: str = "scored") -> ItemScore:
    """An item of which only ripple_survival is known."""
    values = {metric: survival if metric == "ripple_survival" else None for metric in METRICS}
    return ItemScore(f"u{triplet}#{target}", f"u{triplet}#0", level, target, status, values, 12, None)


SCORES = [
    scored(0, "low", "Maya", 1.0),
    scored(0, "med", "Hugo", 0.5),
    scored(0, "high", "Orla", 0.25),
    scored(1, "low", "Hugo", 0.5),
    scored(1, "med", "Niamh", 0.5, "n/a"),
    scored(1, "high", "Maya", None, "error"),
]


def test_a_summary_has_rates_by_level_and_differences_within_triplets() -> None:
    """low: (1 + 1/2) / 2; med: (1/2 + 1/2) / 2; high: 1/4 alone.

    med - low: (-1/2 + 0) / 2; high - low and high - med: the first triplet alone, -3/4 and -1/4.
    """
    found = summarise("lethe", SCORES)
    survival = found["metrics"]["ripple_survival"]
    assert {level: (survival[level]["value"], survival[level]["n"]) for level in survival} == {
        "all": (0.55, 5),
        "low": (0.75, 2),
        "med": (0.5, 2),
        "high": (0.25, 1),
    }
    paired = {pair: found["paired"][pair]["ripple_survival"] for pair in found["paired"]}
    assert {pair: (entry["value"], entry["n"]) for pair, entry in paired.items()} == {
        "med-low": (-0.25, 2),
        "high-low": (-0.75, 1),
        "high-med": (-0.25, 1),
    }
    assert found["statuses"] == {"scored": 4, "n/a": 1, "error": 1, "unscored": 0}
    assert (found["task"], found["adapter"], found["n"]) == ("membehave", "lethe", 6)
    assert found["excluded"]["ripple_survival"] == 1
    assert found["excluded"]["selective_forgetting"] == 6
    assert found["metrics"]["selective_forgetting"]["all"] == {"value": None, "low": 0.0, "high": 1.0, "n": 0}


def test_a_summary_has_exactly_these_parts_and_every_rate_has_a_width() -> None:
    found = summarise("lethe", SCORES)
    assert list(found) == ["task", "adapter", "n", "statuses", "excluded", "metrics", "paired", "bounds"]
    assert tuple(found["metrics"]) == tuple(found["excluded"]) == METRICS
    entries = [e for levels in found["metrics"].values() for e in levels.values()]
    entries += [e for pair in found["paired"].values() for e in pair.values()]
    assert all(set(e) == {"value", "low", "high", "n"} and e["low"] < e["high"] for e in entries)
    assert json.dumps(found) == json.dumps(summarise("lethe", SCORES))


def test_scores_are_tidy_rows() -> None:
    rows = tidy("run-1", SCORES[:1])
    assert len(rows) == len(METRICS) + 1
    assert {"run": "run-1", "item": "u0#Maya", "triplet": "u0#0", "level": "low", "target": "Maya"}.items() <= rows[
        0
    ].items()
    assert [(r["metric"], r["value"]) for r in rows if r["value"] is not None] == [("ripple_survival", 1.0)]
