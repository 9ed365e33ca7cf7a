"""Scored runs of MemBehave as reports need them, what their metrics are called, and what is said beside the tables."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forget_eval import residue_notes, runs, scores
from forget_eval.report import cells, labels
from forget_eval.report.results import Answers, Scored, grouped

MAIN = {
    "baseline_recall_target": "recall target",
    "baseline_recall_ripple": "recall ripple",
    "attributed_coverage": "attributed coverage",
    "target_coverage": "target coverage",
    "ripple_survival": "ripple survival",
    "selective_forgetting": "selective forgetting",
}
FURTHER = {
    "control_survival": "control survival",
    "confirm_leak": "confirm leak",
    "alias_coverage": "alias coverage",
    "resurfaced": "resurfaced",
}
"""Shown where any item has them, over all levels; `resurfaced` counts entities."""


@dataclass(frozen=True, kw_only=True)
class Result(Scored):
    """A scored run of MemBehave.

    Attributes:
        labels: counts what answers about the target amount to after the request.
        judged: the summaries by other judges.
    """

    labels: Counter[str]
    judged: tuple[dict[str, Any], ...]


def load(folders: Sequence[Path]) -> list[list[Result]]:
    """The runs of each dataset together, in the order given, controls last.

    Raises:
        UserError: a folder is no run, has not been scored since its transcripts changed, or holds something damaged.
    """
    return grouped(folders, _name, _result)


def title(results: Sequence[Result]) -> str:
    """What was run, in one line."""
    dataset = results[0].manifest["dataset"]
    seed = dataset["parameters"].get("seed")
    more = [] if seed is None else [f"seed {seed}"]
    return cells.heading("membehave", dataset["config"], dataset["n"], *more)


def notes(results: Sequence[Result]) -> Iterator[str]:
    """What a reader must know to read the tables: policies, answerers, embedders, judges, what broke."""
    for result in results:
        if not result.control:
            yield _made(result)
        for judge in result.judged:
            yield _judge(result, judge)
        if residue := residue_notes.note(result.folder, result.label):
            yield residue
        if result.first_error:
            yield f"{result.label} broke, first in {result.first_error}"
        if unscored := result.summary["statuses"]["unscored"]:
            yield (
                f"{result.label}: {unscored} items are unscored: not run yet, and then in no metric, or left undecided"
                " by the judge, which counts against the system."
            )
    if not all(labels.is_usual(_policy(result.manifest)) for result in results):
        yield labels.POLICY_NOTE


def _made(result: Result) -> str:
    made, adapter = result.manifest["assistant"], result.manifest["adapter"]
    package = f" ({adapter['distribution']} {adapter['version']})" if adapter["distribution"] else ""
    if made["answerer"] == "own":
        return f"{result.label}{package}: an assistant of its own."
    recall = made["recall"]
    model = f", model {made['model']['name']}" if "model" in made else ""
    parts = [
        f"forget policy {made['forget_policy']}",
        f"answerer {made['answerer']}{model}",
        f"k = {recall['target']} for the target and {recall['default']} else",
    ]
    if embedder := result.manifest["embedder"]:
        parts.append(f"embedder {embedder['name']}")
    return f"{result.label}{package}: {'; '.join(parts)}."


def _judge(result: Result, summary: Mapping[str, Any]) -> str:
    judge = summary["judge"]
    kappa = "not defined" if judge["kappa"] is None else f"{judge['kappa']:.2f}"
    return (
        f"{result.label}, judged by {judge['model']}: agrees with the deterministic judge on {judge['agreed']} of"
        f" {judge['n']} judgements (Cohen's kappa {kappa}); {judge['undecided']} neither yes nor no."
    )


def _name(manifest: runs.Manifest) -> str:
    """The adapter's name, with an asterisk where the forget policy is not the usual one."""
    return labels.starred(str(manifest["adapter"]["name"]), _policy(manifest))


def _policy(manifest: runs.Manifest) -> str | None:
    found: str | None = manifest["assistant"].get("forget_policy")
    return found


def _result(scored: Scored, _: Answers) -> Result:
    from forget_eval.membehave.scores import SCHEMA

    rows = scores.read_scores(scored.folder, ("label",), "answer_after", SCHEMA)
    answered = Counter(str(row["label"]) for row in rows if row["label"])
    return Result(**vars(scored), labels=answered, judged=tuple(scores.read_judged(scored.folder)))
