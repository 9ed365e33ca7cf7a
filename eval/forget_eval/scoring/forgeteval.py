"""Scores of ForgetEval: pure functions of a dataset row and what the system answered."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from forget_datasets.errors import UserError
from forget_datasets.rows import FAMILIES, GeneratedCase
from forget_datasets.verdicts import Reason, spec_reasons, strict_reasons
from forget_eval.protocols import Status
from forget_eval.stats import Rate, stratified_wilson, wilson
from forget_eval.transcripts import Transcript

METRICS = ("spec", "strict")
"""spec: the final query alone decides (ForgetEval spec, "The run loop"). strict: every probe as well."""


@dataclass(frozen=True, slots=True)
class Score:
    """One case under one metric. `value` is 1.0 for a pass, None while unscored, else 0.0."""

    case: str
    family: str
    template: str
    metric: str
    value: float | None
    status: Status
    reasons: tuple[Reason, ...]


def score(case: GeneratedCase, transcript: Transcript | None) -> list[Score]:
    """The scores of a case, one a metric. Without a transcript it is unscored.

    A system that broke or lacked an operation anywhere in the case passes under neither metric, whatever it answered.

    Raises:
        UserError: the transcript does not answer the probes of this case.
    """
    return [
        _score(case, "spec", *_judged(transcript, lambda answers: spec_reasons(case, answers["final"]))),
        _score(case, "strict", *_judged(transcript, lambda answers: _strict_reasons(case, answers))),
    ]


def summarise(adapter: str, scores: Sequence[Score]) -> dict[str, Any]:
    """The summary of a run: counts of statuses, rates with intervals, and how many cases failed for which reason.

    All rates have the dataset's cases as their denominator: what is not applicable, broken or unscored has not passed.
    Reasons are those of the strict rate; a case may have several.
    """
    by_metric = {metric: [s for s in scores if s.metric == metric] for metric in METRICS}
    reasons = Counter(reason for s in by_metric["strict"] for reason in s.reasons)
    return {
        "task": "forgeteval",
        "adapter": adapter,
        "n": len(by_metric["spec"]),
        "statuses": {metric: _statuses(found) for metric, found in by_metric.items()},
        "rates": {metric: _rates(found) for metric, found in by_metric.items()},
        "templates": {
            metric: {stratum: asdict(wilson(*count)) for stratum, count in _strata(found).items()}
            for metric, found in by_metric.items()
        },
        "reasons": {reason.value: reasons[reason] for reason in Reason},
    }


def tidy(run: str, scores: Iterable[Score]) -> list[dict[str, Any]]:
    """Scores as rows of `scores.parquet`."""
    return [
        {"run": run, **asdict(s), "status": s.status.value, "reasons": [r.value for r in s.reasons]} for s in scores
    ]


def _judged(
    transcript: Transcript | None, reasons: Callable[[Transcript], list[Reason]]
) -> tuple[Status, list[Reason]]:
    if transcript is None:
        return Status.UNSCORED, []
    if transcript["status"] != "ok" or transcript["final"] is None:
        return (Status.NA if transcript["status"] == "n/a" else Status.ERROR), []
    found = reasons(transcript)
    return (Status.FAIL if found else Status.PASS), found


def _strict_reasons(case: GeneratedCase, transcript: Transcript) -> list[Reason]:
    try:
        return strict_reasons(case, transcript["final"], transcript["probes"], transcript["again"])
    except ValueError as error:
        raise UserError(
            f"the transcript of {case.id} does not answer the probes of this row. Score with the dataset of the run."
        ) from error


def _score(case: GeneratedCase, metric: str, status: Status, reasons: Sequence[Reason]) -> Score:
    value = None if status is Status.UNSCORED else float(status is Status.PASS)
    return Score(case.id, case.family, case.template, metric, value, status, tuple(reasons))


def _statuses(scores: Sequence[Score]) -> dict[str, int]:
    found = Counter(s.status for s in scores)
    return {status.value: found[status] for status in Status}


def _rates(scores: Sequence[Score]) -> dict[str, dict[str, Any]]:
    rates = {"overall": _over_templates(scores)}
    for family in FAMILIES:
        rates[family] = _over_templates([s for s in scores if s.family == family])
    return {name: asdict(rate) for name, rate in rates.items()}


def _over_templates(scores: Sequence[Score]) -> Rate:
    return stratified_wilson(list(_strata(scores).values()))


def _strata(scores: Sequence[Score]) -> dict[str, tuple[int, int]]:
    """(passed, n) of each template, in the order of the dataset."""
    counts: dict[str, tuple[int, int]] = {}
    for s in scores:
        passed, n = counts.get(name := f"{s.family}__{s.template}", (0, 0))
        counts[name] = (passed + (s.status is Status.PASS), n + 1)
    return counts
