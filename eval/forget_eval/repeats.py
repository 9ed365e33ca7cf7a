"""Several runs of one system on one dataset, for systems that do not answer alike every time.

A folder of repeats holds `repeat-1`, `repeat-2`, …, each a complete run, and `repeats.json`, the summary over them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forget_datasets.errors import UserError
from forget_datasets.rows import FAMILIES, LEVELS
from forget_eval import runs, scores
from forget_eval.bootstrap import SEED, cluster_interval
from forget_eval.stats import Z, score_interval, stratified_variance

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

FILE = "repeats.json"


@dataclass(frozen=True, slots=True)
class Components:
    """Where the variance of single outcomes comes from.

    Method of moments (ANOVA) on the two-way table of rows by repeats without replication, negative estimates taken as 0
    (Searle, Casella and McCulloch 1992, Variance Components, chapter 4).

    Attributes:
        cases: between the rows of the dataset, within fixed strata where there are any.
        repeats: between the means of whole repeats, beyond what single rows explain.
        noise: of one row from repeat to repeat.
    """

    cases: float
    repeats: float
    noise: float


@dataclass(frozen=True, slots=True)
class Repeated:
    """A rate or mean over `n` rows and several repeats, its interval for both, and the components of its variance.

    Attributes:
        each: the value of every repeat.
        disagree: rows that do not end alike in all repeats.
    """

    value: float | None
    low: float
    high: float
    n: int
    each: list[float]
    disagree: int
    components: Components | None


def summarise(folder: Path) -> dict[str, Any]:
    """Writes the summary over the scored runs of a folder of repeats, `repeats.json`, and returns it.

    The same runs give the same bytes. Its keys: task, adapter, repeats (how many), seed, then for ForgetEval `rates`
    with a `Repeated` by metric and family (and overall), for MemBehave `metrics` by metric and level (and all); last
    `disagree`, the ids of rows that do not end alike, by metric.

    Raises:
        UserError: it holds fewer than two repeats, one of them has not been scored, or they are not of one system on
            one dataset.
        EnvironmentFault: the disk refuses.
    """
    found = runs.repeats_in(folder)
    if len(found) < 2:
        raise UserError(
            f"{folder} holds {len(found)} repeats, and a summary over them needs two: {runs.REPEAT}1, {runs.REPEAT}2."
        )
    manifests = [runs.read(run) for run in found]
    _require_alike(found, manifests)
    first, *_ = [scores.read_summary(run) for run in found]
    task, adapter = manifests[0]["task"], manifests[0]["adapter"]["name"]
    about = {"task": task, "adapter": adapter, "repeats": len(found)}
    summary = about | (_forgeteval(found) if task == "forgeteval" else _membehave(found, manifests[0], first["bounds"]))
    runs.write_json(folder / FILE, summary)
    return summary


def components(outcomes: "Matrix", strata: Sequence[str] | None = None) -> Components:
    """The components of variance of a table.

    Args:
        outcomes: shape (rows, repeats), two of each at least.
        strata: the fixed stratum of each row; without, all are one. Differences between strata are in no component.
    """
    import numpy as np

    n, r = outcomes.shape
    names = sorted(set(strata or ("",)))
    if len(names) == n:  # one row a stratum shows nothing of the variance within: that between counts for it
        strata, names = None, [""]
    of_row, of_repeat, mean = outcomes.mean(axis=1), outcomes.mean(axis=0), outcomes.mean()
    residual = outcomes - of_row[:, None] - of_repeat[None, :] + mean
    between = 0.0
    for name in names:
        inner = of_row[[s == name for s in strata]] if strata else of_row
        between += float(((inner - inner.mean()) ** 2).sum())
    noise = float((residual**2).sum()) / ((n - 1) * (r - 1))
    cases = r * between / max(1, n - len(names))
    repeats = n * float(np.sum((of_repeat - mean) ** 2)) / (r - 1)
    return Components(
        cases=round(max(0.0, (cases - noise) / r), 12),
        repeats=round(max(0.0, (repeats - noise) / n), 12),
        noise=round(noise, 12),
    )


def rate(outcomes: "Matrix", strata: Sequence[str]) -> Repeated:
    """A rate over cases of fixed strata and repeats.

    For a system that always answers alike the interval is that of one run (`stats.stratified_wilson`). Else the
    variance of the cases is smaller by the part of it that is noise and averages out over repeats, and that between
    repeats comes on top: Wilson's interval at the effective sample size, stretched for the repeats (`_stretch`).

    Args:
        outcomes: 1.0 for a pass and else 0.0, shape (cases, repeats).
        strata: the template of each case.
    """
    n, r = outcomes.shape
    if n == 0:
        return Repeated(None, 0.0, 1.0, 0, [], 0, None)
    value = float(outcomes.mean())
    found = components(outcomes, strata) if n > 1 else Components(0.0, 0.0, 0.0)
    counts = {name: [0.0, 0] for name in sorted(set(strata))}
    for name, passed in zip(strata, outcomes.mean(axis=1), strict=True):
        counts[name][0] += float(passed)
        counts[name][1] += 1
    mean, variance = stratified_variance([(passed, int(size)) for passed, size in counts.values()])
    whole = found.cases + found.noise
    variance *= (found.cases + found.noise / r) / whole if whole else 1.0
    low, high = score_interval(value, mean * (1 - mean) / variance)
    return _repeated(outcomes, value, low, high, variance, found, (0.0, 1.0))


def mean(outcomes: "Matrix", clusters: Sequence[Sequence[str]], seed: int = SEED, bound: float = 1.0) -> Repeated:
    """A mean over items and repeats: each item's mean over its repeats is bootstrapped by cluster (`bootstrap`), and
    the interval stretched for the repeats (`_stretch`).

    Args:
        outcomes: values from 0 to `bound`, shape (items, repeats).
        clusters: the cluster of each item, in one way or several, of which the widest interval counts.
        seed: of the bootstrap.
        bound: the largest possible value.
    """
    n = len(outcomes)
    if n == 0:
        return Repeated(None, 0.0, bound, 0, [], 0, None)
    values = [min(bound, max(0.0, float(value))) for value in outcomes.mean(axis=1)]
    intervals = [cluster_interval(values, ids, seed=seed, bounds=(0.0, bound)) for ids in clusters]
    widest = max(intervals, key=lambda interval: interval.high - interval.low)
    found = components(outcomes) if n > 1 else Components(0.0, 0.0, 0.0)
    variance = ((widest.high - widest.low) / (2 * Z)) ** 2
    return _repeated(outcomes, math.fsum(values) / n, widest.low, widest.high, variance, found, (0.0, bound))


def _repeated(
    outcomes: "Matrix",
    value: float,
    low: float,
    high: float,
    variance: float,
    found: Components,
    bounds: tuple[float, float],
) -> Repeated:
    stretch = _stretch(variance, found.repeats, outcomes.shape[1])
    low, high = max(bounds[0], value - stretch * (value - low)), min(bounds[1], value + stretch * (high - value))
    unlike = int((outcomes.max(axis=1) != outcomes.min(axis=1)).sum())
    each = [round(float(one), 12) for one in outcomes.mean(axis=0)]
    value = round(value, 12)
    return Repeated(value, round(min(low, value), 12), round(max(high, value), 12), len(outcomes), each, unlike, found)


def _stretch(variance: float, between: float, repeats: int) -> float:
    """By how much an interval grows for the variance between repeats.

    The squares of the two half-widths add up (Zou and Donner 2008, Statistics in Medicine 27(10)), the second with
    Student's quantile for the few repeats. From two repeats on this covers 95% where repeats are alike or differ
    little; where they differ as much as cases do, about 91% with two, 94% with three, 95% with five.
    """
    if between == 0:
        return 1.0
    from scipy.stats import t

    quantile = float(t.ppf(0.975, repeats - 1))
    return math.sqrt(1 + quantile**2 * between / repeats / (Z**2 * variance))


def _forgeteval(found: Sequence[Path]) -> dict[str, Any]:
    import numpy as np

    from forget_eval.scoring.forgeteval import METRICS

    rates: dict[str, Any] = {}
    disagree: dict[str, list[str]] = {}
    for metric in METRICS:
        columns = [scores.read_scores(run, ("case", "family", "template", "status"), metric) for run in found]
        rows = _aligned(found, columns, "case")
        table = np.array([[float(one["status"] == "pass") for one in row] for row in rows])
        of_family = [row[0]["family"] for row in rows]
        strata = [f"{row[0]['family']}__{row[0]['template']}" for row in rows]
        rates[metric] = {}
        for place in ("overall", *FAMILIES):
            chosen = [i for i, family in enumerate(of_family) if place in ("overall", family)]
            rates[metric][place] = asdict(rate(table[chosen], [strata[i] for i in chosen]))
        disagree[metric] = _unlike(rows, table, "case")
    return {"rates": rates, "disagree": disagree}


def _membehave(found: Sequence[Path], manifest: runs.Manifest, bounds: Mapping[str, float]) -> dict[str, Any]:
    import numpy as np

    from forget_eval.membehave.scores import SCHEMA
    from forget_eval.scoring.membehave import METRICS

    seed = manifest.get("seeds", {}).get("bootstrap", SEED)
    metrics: dict[str, Any] = {}
    disagree: dict[str, list[str]] = {}
    for metric in METRICS:
        names = ("item", "level", "target", "triplet", "value")
        columns = [scores.read_scores(run, names, metric, SCHEMA) for run in found]
        rows = _aligned(found, columns, "item")
        known = [row for row in rows if all(one["value"] is not None for one in row)]
        table = np.array([[one["value"] for one in row] for row in known]).reshape(len(known), len(found))
        metrics[metric] = {}
        for place in ("all", *LEVELS):
            chosen = [i for i, row in enumerate(known) if place in ("all", row[0]["level"])]
            ways = ("target", "triplet") if place == "all" else ("target",)
            clusters = [[known[i][0][way] for i in chosen] for way in ways]
            excluded = sum(place in ("all", row[0]["level"]) for row in rows) - len(chosen)
            found_here = mean(table[chosen], clusters, seed, bounds[metric])
            metrics[metric][place] = asdict(found_here) | {"excluded": excluded}
        disagree[metric] = _unlike(known, table, "item")
    return {"seed": seed, "metrics": metrics, "disagree": disagree}


def _aligned(
    found: Sequence[Path], columns: Sequence[Sequence[dict[str, Any]]], key: str
) -> list[tuple[dict[str, Any], ...]]:
    """The rows of all repeats side by side."""
    ids = [row[key] for row in columns[0]]
    for run, column in zip(found, columns, strict=True):
        if [row[key] for row in column] != ids:
            raise UserError(f"the scores of {found[0]} and {run} are of different rows. Score both again.")
    return list(zip(*columns, strict=True))


def _unlike(rows: Sequence[tuple[dict[str, Any], ...]], table: "Matrix", key: str) -> list[str]:
    return [row[0][key] for row, one in zip(rows, table, strict=True) if one.max() != one.min()]


def _require_alike(found: Sequence[Path], manifests: Sequence[runs.Manifest]) -> None:
    for run, manifest in zip(found, manifests, strict=True):
        for name, (one, other) in runs.differences(manifests[0], manifest).items():
            raise UserError(f"{found[0]} and {run} are no repeats: {name} {one} and {other}. Remove one of them.")
