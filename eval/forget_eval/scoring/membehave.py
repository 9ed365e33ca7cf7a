"""Scores of MemBehave: pure functions of an item and what the assistant answered."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from forget_datasets.errors import UserError
from forget_datasets.membehave import metrics
from forget_datasets.rows import LEVELS, Item
from forget_eval.bootstrap import SEED, Interval, cluster_interval, pigeonhole_interval
from forget_eval.membehave.disclosure import Label, label
from forget_eval.membehave.judges import Judged
from forget_eval.transcripts import Transcript

METRICS = (
    "baseline_recall_target",
    "baseline_recall_ripple",
    "target_coverage",
    "attributed_coverage",
    "resurfaced",
    "ripple_survival",
    "control_survival",
    "confirm_leak",
    "alias_coverage",
    "selective_forgetting",
)
PAIRS = (("med", "low"), ("high", "low"), ("high", "med"))
STATUSES = ("scored", "n/a", "error", "unscored")
"""scored; n/a: the system cannot forget; error: it broke; unscored: not run yet, or left open by a judge.

What was not run is in no metric. What a judge left open is in all, and counts against the system (`judges`).
"""

_WORST: Mapping[str, float] = {
    "baseline_recall_target": 0.0,
    "baseline_recall_ripple": 0.0,
    "target_coverage": 1.0,
    "attributed_coverage": 1.0,
    "ripple_survival": 0.0,
    "control_survival": 0.0,
    "confirm_leak": 1.0,
    "alias_coverage": 1.0,
}
_CANNOT_FORGET = {"attributed_coverage": 1.0, "selective_forgetting": 0.0}
_NEEDS = {
    "target": ("baseline_recall_target", "target_coverage", "attributed_coverage"),
    "ripple": ("baseline_recall_ripple", "ripple_survival"),
    "control": ("control_survival",),
    "confirm": ("confirm_leak",),
    "alias": ("alias_coverage",),
}


@dataclass(frozen=True, slots=True)
class ItemScore:
    """One item under every metric; a value is None where the metric's denominator is empty, or nothing was run.

    `label` is what the answer to the target probe after the request amounts to, None where there is none.
    """

    item: str
    triplet: str
    level: str
    target: str
    status: str
    values: Mapping[str, float | None]
    most: int  # entities that the target probe expects: the bound of `resurfaced`
    label: Label | None


def score(item: Item, transcript: Transcript | None, judged: Judged | None = None) -> ItemScore:
    """The scores of an item.

    A system that cannot forget (n/a) is taken at its answers before, for nothing has changed since;
    attributed_coverage is 1 and selective_forgetting 0 whatever it knew. One that broke (error) has the worst value
    of every rate that was not measured before it broke, so that no failure makes a denominator smaller; `resurfaced`,
    a count without a worst value, is then None.

    Args:
        item: the row.
        transcript: of this item, None if it has not been run.
        judged: the answers as a chat judge reads them; None for the deterministic judge.

    Raises:
        UserError: the transcript does not answer the probes of this item.
    """
    if transcript is None:
        return _item_score(item, "unscored", dict.fromkeys(METRICS), None)
    before, after = answers(item, transcript)
    read = judged or (None if before is None else Judged(before, before, before if after is None else after, 0, []))
    sentences = judged is None and in_sentences(transcript)
    if read is None or transcript["status"] == "error":
        return _item_score(item, "error", _broken(item, read, sentences), None)
    values = metrics.measure(item, metrics.Answers(read.before, read.after, read.recalled), sentences)
    if after is None:
        return _item_score(item, "n/a", values | _CANNOT_FORGET, None)
    tied = [metrics.attributed(item, p, answer, sentences) for p, answer in zip(item.probes, read.after, strict=True)]
    status = "unscored" if read.undecided else "scored"
    return _item_score(item, status, values, _label(item, after, tied, transcript))


def answers(item: Item, transcript: Transcript) -> tuple[list[str] | None, list[str] | None]:
    """The answers before and after, one a probe; None for a step that was not finished.

    Raises:
        UserError: there are more or fewer than the item has probes.
    """
    found = transcript["before"], transcript["after"]
    if any(given is not None and len(given) != len(item.probes) for given in found):
        raise UserError(
            f"the transcript of {item.item_id} does not answer the probes of this dataset's row. Score with the dataset"
            " of the run."
        )
    return found


def in_sentences(transcript: Transcript) -> bool:
    """Whether answers are written by a model, and not lists of recalled messages."""
    return transcript.get("answerer") not in ("extractive", "control")


def summarise(adapter: str, scores: Sequence[ItemScore], seed: int = SEED) -> dict[str, Any]:
    """The summary of a run: counts of statuses and exclusions, every metric by level, paired differences of levels.

    Args:
        adapter: its name.
        scores: one an item, in the order of the dataset.
        seed: of the bootstrap.
    """
    return {
        "task": "membehave",
        "adapter": adapter,
        "n": len(scores),
        "statuses": _counts((s.status for s in scores), STATUSES),
        "excluded": {metric: sum(s.values[metric] is None for s in scores) for metric in METRICS},
        "metrics": {metric: _levels(scores, metric, seed) for metric in METRICS},
        "paired": {
            f"{more}-{less}": {metric: asdict(_paired(scores, metric, more, less, seed)) for metric in METRICS}
            for more, less in PAIRS
        },
        "bounds": {metric: _bound(scores, metric) for metric in METRICS},
    }


def tidy(run: str, scores: Iterable[ItemScore]) -> list[dict[str, Any]]:
    """Scores as rows of `scores.parquet`: one an item and metric, and one with the label of the answer afterwards."""
    rows = []
    for s in scores:
        key = {"run": run, "item": s.item, "triplet": s.triplet, "level": s.level, "target": s.target}
        rows += [
            {**key, "metric": metric, "value": s.values[metric], "status": s.status, "label": None}
            for metric in METRICS
        ]
        rows.append({**key, "metric": "answer_after", "value": None, "status": s.status, "label": s.label})
    return rows


def _item_score(item: Item, status: str, values: Mapping[str, float | None], found: Label | None) -> ItemScore:
    most = max((len(p.expected_entities) for p in item.probes if p.family == "target"), default=0)
    ordered = {metric: values.get(metric) for metric in METRICS}
    return ItemScore(item.item_id, item.triplet_id, item.level, item.target, status, ordered, most, found)


def _broken(item: Item, read: Judged | None, sentences: bool) -> dict[str, float | None]:
    """The worst values, of the families that the item has; the baselines as measured, if the system got so far."""
    families = {probe.family for probe in item.probes}
    values: dict[str, float | None] = {m: _WORST[m] for f, names in _NEEDS.items() if f in families for m in names}
    values |= _CANNOT_FORGET
    if read is not None:
        known = metrics.measure(item, metrics.Answers(read.before, read.after, read.recalled), sentences)
        values |= {m: known[m] for m in ("baseline_recall_target", "baseline_recall_ripple")}
    return values


def _label(item: Item, after: Sequence[str], tied: Sequence[set[str]], transcript: Transcript) -> Label | None:
    for probe, answer, entities in zip(item.probes, after, tied, strict=True):
        if probe.family == "target":
            return label(
                answer,
                disclosed=bool(entities),
                names_target=metrics.mentions(answer, metrics.target_names(item)),
                recalled=not in_sentences(transcript),
            )
    return None


def _counts(found: Iterable[str], names: Iterable[str]) -> dict[str, int]:
    counts = Counter(found)
    return {str(name): counts[name] for name in names}


def _levels(scores: Sequence[ItemScore], metric: str, seed: int) -> dict[str, dict[str, Any]]:
    of_level = {level: [s for s in scores if s.level == level] for level in LEVELS}
    levels = {level: asdict(_interval(found, metric, "target", seed)) for level, found in of_level.items()}
    return {"all": asdict(_overall(scores, metric, seed)), **levels}


def _overall(scores: Sequence[ItemScore], metric: str, seed: int) -> Interval:
    """Over all levels, items share a history within a triplet and a target across them: the wider interval counts."""
    found = [_interval(scores, metric, cluster, seed) for cluster in ("target", "triplet")]
    return max(found, key=lambda interval: interval.high - interval.low)


def _interval(scores: Sequence[ItemScore], metric: str, cluster: str, seed: int) -> Interval:
    known = [(value, getattr(s, cluster)) for s in scores if (value := s.values[metric]) is not None]
    values, clusters = [value for value, _ in known], [cluster for _, cluster in known]
    return cluster_interval(values, clusters, seed=seed, bounds=(0.0, _bound(scores, metric)))


def _paired(scores: Sequence[ItemScore], metric: str, more: str, less: str, seed: int) -> Interval:
    """The mean over triplets of the difference between two levels, where both are known."""
    by_level = {level: {s.triplet: s for s in scores if s.level == level} for level in (more, less)}
    differences, targets = list[float](), list[tuple[str, str]]()
    for triplet, upper in by_level[more].items():
        lower = by_level[less].get(triplet)
        values = upper.values[metric], lower.values[metric] if lower else None
        if lower and values[0] is not None and values[1] is not None:
            differences.append(values[0] - values[1])
            targets.append((upper.target, lower.target))
    bound = _bound(scores, metric)
    return pigeonhole_interval(
        differences, [a for a, _ in targets], [b for _, b in targets], seed=seed, bounds=(-bound, bound)
    )


def _bound(scores: Sequence[ItemScore], metric: str) -> float:
    """The largest value of a metric: 1, or for a count of entities how many there are."""
    return 1.0 if metric != "resurfaced" else float(max((s.most for s in scores), default=1))
