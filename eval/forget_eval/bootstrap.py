"""Intervals that know about clusters: items of one target are no independent cases. Every interval covers 95%.

Replicates are drawn by numpy's PCG64 from a recorded seed, through uniform numbers alone (the one method of a
Generator whose sequence follows from the bit stream), and results are rounded to 12 places, so that a rescored run
has the same bytes on another machine.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from forget_eval.stats import Z, score_interval

SEED = 20261130
REPLICATES = 4000
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95% interval over `n` units. Without units the value is None and the interval the whole range."""

    value: float | None
    low: float
    high: float
    n: int


def cluster_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    seed: int = SEED,
    replicates: int = REPLICATES,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """The mean of per-item values, with whole clusters resampled (Davison and Hinkley 1997, section 3.8).

    Percentiles are expanded for few clusters: the tail is that of the normal distribution at sqrt(C / (C - 1)) times
    Student's quantile for C - 1 degrees of freedom (Hesterberg 2015, The American Statistician 69(4), section 4.3),
    which at 42 clusters means 2.0% on each side in place of 2.5%. The interval also takes in Wilson's at the effective
    sample size, for close to a bound resampling shows too little spread. Where all items agree, see `unanimous`.

    Args:
        values: one a unit, within `bounds`.
        clusters: the cluster of each unit (a target person).
        seed: of the resampling.
        replicates: how many times the clusters are drawn.
        bounds: the smallest and the largest value that a unit can have.

    Raises:
        ValueError: there are not as many clusters as values, or a value is out of bounds.
    """
    ids = _checked(values, [clusters], bounds)
    if not values:
        return Interval(None, *bounds, 0)
    size = max(ids[0]) + 1
    if max(values) == min(values):
        return unanimous(values[0], len(values), _effective(ids[0]), bounds)
    weights = _draw(size, seed, replicates)[:, ids[0]]
    effective = _effective(ids[0])
    found = _percentiles(values, weights, size, effective, bounds)
    return _with_wilson(found, _sureness(values, ids[0], effective, bounds), bounds)


def difference_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    seed: int = SEED,
    replicates: int = REPLICATES,
    bound: float = 1.0,
) -> Interval:
    """The mean of per-item differences between two systems, with whole clusters resampled as in `cluster_interval`.

    Where few items differ, resampling shows too little spread. So the interval also takes in the one that adds up the
    Wilson intervals of what the differences gain and of what they lose (the square-and-add rule of Newcombe 1998,
    Statistics in Medicine 17(8)), each at its effective sample size. A change that was not seen is taken to be as large
    as the largest that was, or as the bound times the share of items that do not differ, whichever is larger: few
    differences show little of how large another could be.

    Args:
        values: one difference an item, from -bound to bound.
        clusters: the cluster of each item (a target person).
        seed, replicates: as in `cluster_interval`.
        bound: the largest difference that an item can have.

    Raises:
        ValueError: as `cluster_interval`.
    """
    bounds = (-bound, bound)
    ids = _checked(values, [clusters], bounds)[0]
    if not values:
        return Interval(None, *bounds, 0)
    effective = _effective(ids)
    if max(values) == min(values):
        return unanimous(values[0], len(values), effective, bounds)
    size = max(ids) + 1
    found = _percentiles(values, _draw(size, seed, replicates)[:, ids], size, effective, bounds)
    return _with_gains_and_losses(found, values, ids, effective, bound)


def pigeonhole_interval(
    values: Sequence[float],
    rows: Sequence[Hashable],
    columns: Sequence[Hashable],
    *,
    seed: int = SEED,
    replicates: int = REPLICATES,
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> Interval:
    """The mean of paired differences, each weighed by the product of the bootstrap weights of its two targets.

    The pigeonhole bootstrap (McCullagh 2000, Bernoulli 6(2); Owen 2007, Annals of Applied Statistics 1(2)) covers
    units that share a cluster on either side. It is conservative: noise of the units' own counts up to three times.
    The same people are targets on both sides, so they are drawn from one pool. Where few triplets differ, it shows too
    little spread all the same, so that the interval also takes in that of `difference_interval`. Replicates in which no
    pair is left are passed over; if that is all of them, the interval is the whole range.

    Args:
        values: one difference a triplet, within `bounds`.
        rows: the target on one side of each difference.
        columns: the target on the other side.
        seed, replicates, bounds: as in `cluster_interval`.

    Raises:
        ValueError: the lengths differ, or a value is out of bounds.
    """
    left, right = _checked(values, [rows, columns], bounds)
    if not values:
        return Interval(None, *bounds, 0)
    size = max(*left, *right) + 1
    effective, fewer = min((_effective(left), left), (_effective(right), right))
    if max(values) == min(values):
        return unanimous(values[0], len(values), effective, bounds)
    people = _draw(size, seed, replicates)
    found = _percentiles(values, people[:, left] * people[:, right], math.ceil(effective), effective, bounds)
    return _with_gains_and_losses(found, values, fewer, effective, max(map(abs, bounds)))


def smallest_mean(values: Sequence[float], clusters: Sequence[Hashable], power: float = 0.8) -> float | None:
    """The smallest true mean that a two-sided test at 5% finds with a given power, at the spread that is seen.

    (t_0.975 + t_power) standard errors, with Student's quantiles for C - 1 degrees of freedom and the standard error
    between C clusters (Bloom 1995, Evaluation Review 19(5), with clusters in place of units).

    Args:
        values: one a unit, such as the differences of two runs.
        clusters: the cluster of each unit.
        power: the chance to find it.

    Returns:
        None where nothing varies, or there is one cluster.
    """
    ids = _checked(values, [clusters], (-math.inf, math.inf))[0]
    if not values or not (max(ids) and (variance := _variance(values, ids))):
        return None
    from scipy.stats import t

    return round(float(t.ppf((1 + _LEVEL) / 2, max(ids)) + t.ppf(power, max(ids))) * math.sqrt(variance), 12)


def unanimous(value: float, n: int, effective: float, bounds: tuple[float, float] = (0.0, 1.0)) -> Interval:
    """The interval where all units agree and resampling shows no spread, at 0 and 1 above all.

    Of `effective` clusters none differs, so by Wilson's score interval (Wilson 1927) at most a share z² / (effective
    + z²) of all clusters does; these could lie anywhere within the bounds. At 0 and 1 this is Wilson's interval
    itself.

    Args:
        value: of every unit.
        n: the number of units.
        effective: the number of clusters, (sum of sizes)² / sum of squared sizes (Kish 1965) where their sizes
            differ.
        bounds: the smallest and the largest possible value.
    """
    unlike = Z**2 / (effective + Z**2)
    low, high = value - unlike * (value - bounds[0]), value + unlike * (bounds[1] - value)
    return Interval(round(value, 12), round(low, 12), round(high, 12), n)


def _percentiles(
    values: Sequence[float], weights: Any, clusters: int, effective: float, bounds: tuple[float, float]
) -> Interval:
    import numpy as np

    totals = weights.sum(axis=1)
    kept = totals > 0
    means = (weights[kept] @ np.asarray(values, dtype=float)) / totals[kept]
    value = math.fsum(values) / len(values)
    if not len(means):
        return Interval(round(value, 12), *bounds, len(values))
    cut = int(_tail(clusters) * len(means))
    low, high = (float(q) for q in np.sort(means)[[cut, -1 - cut]])
    if low == high:  # too few clusters to spread
        return unanimous(value, len(values), effective, bounds)
    return Interval(round(value, 12), round(min(low, value), 12), round(max(high, value), 12), len(values))


def _sureness(values: Sequence[float], ids: Sequence[int], effective: float, bounds: tuple[float, float]) -> float:
    """How many yes-or-no units would be as sure of the mean: its binomial variance over its real one, between clusters.

    The effective sample size of surveys (Korn and Graubard 1998), never below the number of clusters: a unit that is
    itself a share of many answers tells more than a yes or a no.
    """
    mean, variance = math.fsum(values) / len(values), _variance(values, ids)
    binomial = (mean - bounds[0]) * (bounds[1] - mean)
    return max(effective, binomial / variance) if variance > 0 else effective


def _variance(values: Sequence[float], ids: Sequence[int]) -> float:
    """The variance of the mean, between clusters (Davison and Hinkley 1997, section 3.8)."""
    mean, size = math.fsum(values) / len(values), max(ids) + 1
    residuals = [0.0] * size
    for value, number in zip(values, ids, strict=True):
        residuals[number] += value - mean
    return math.fsum(r**2 for r in residuals) / len(values) ** 2 * size / max(1, size - 1)


def _with_wilson(found: Interval, sureness: float, bounds: tuple[float, float]) -> Interval:
    """The interval together with Wilson's: near a bound, few clusters differ and resampling shows too little spread."""
    assert found.value is not None
    span = bounds[1] - bounds[0]
    ends = (min(1.0, max(0.0, end)) for end in score_interval((found.value - bounds[0]) / span, sureness))
    low, high = (round(bounds[0] + span * end, 12) for end in ends)
    return Interval(found.value, min(found.low, low), max(found.high, high), found.n)


def _with_gains_and_losses(
    found: Interval, values: Sequence[float], ids: Sequence[int], effective: float, bound: float
) -> Interval:
    """The interval together with that of Newcombe's rule; see `difference_interval`."""
    assert found.value is not None
    size = max(*map(abs, values), bound * sum(value == 0 for value in values) / len(values))
    gains, losses = (_reach([max(0.0, sign * value) for value in values], ids, effective, size) for sign in (1, -1))
    low = max(-bound, found.value - math.hypot(gains[0], losses[1]))
    high = min(bound, found.value + math.hypot(gains[1], losses[0]))
    return Interval(found.value, min(found.low, round(low, 12)), max(found.high, round(high, 12)), found.n)


def _reach(values: Sequence[float], ids: Sequence[int], effective: float, bound: float) -> tuple[float, float]:
    """How far Wilson's interval goes below and above the mean of values from 0 to `bound`."""
    mean = math.fsum(values) / len(values)
    low, high = score_interval(mean / bound, _sureness(values, ids, effective, (0.0, bound)))
    return max(0.0, mean - bound * max(0.0, low)), max(0.0, bound * min(1.0, high) - mean)


@lru_cache(maxsize=8)
def _draw(clusters: int, seed: int, replicates: int) -> Any:
    """How often each cluster is drawn: counts of shape (replicates, clusters), each row adding up to `clusters`."""
    import numpy as np

    uniform = np.random.Generator(np.random.PCG64(seed)).random((replicates, clusters))
    picks = np.minimum((uniform * clusters).astype(np.int64), clusters - 1)
    picks += np.arange(replicates)[:, None] * clusters
    counts = np.bincount(picks.ravel(), minlength=replicates * clusters).reshape(replicates, clusters)
    counts.flags.writeable = False  # it is cached
    return counts


@lru_cache(maxsize=256)
def _tail(clusters: int) -> float:
    """The share that is cut off on each side, smaller for few clusters."""
    if clusters < 2:
        return 0.0
    from scipy.stats import norm, t

    stretched = math.sqrt(clusters / (clusters - 1)) * float(t.ppf((1 + _LEVEL) / 2, clusters - 1))
    return round(float(norm.sf(stretched)), 6)


def _checked(
    values: Sequence[float], sides: Sequence[Sequence[Hashable]], bounds: tuple[float, float]
) -> list[list[int]]:
    """The clusters of each side as numbers from 0, in the order of their first appearance, one numbering for all."""
    if any(len(side) != len(values) for side in sides):
        raise ValueError(f"{len(values)} values need as many clusters, not {[len(side) for side in sides]}")
    for value in values:
        if not bounds[0] <= value <= bounds[1]:
            raise ValueError(f"the value {value} is outside {bounds[0]} to {bounds[1]}")
    numbers: dict[Hashable, int] = {}
    return [[numbers.setdefault(cluster, len(numbers)) for cluster in side] for side in sides]


def _effective(ids: Sequence[int]) -> float:
    """The number of equally large clusters that would be as sure: (sum of sizes)² / sum of squared sizes."""
    sizes: dict[int, int] = {}
    for number in ids:
        sizes[number] = sizes.get(number, 0) + 1
    return len(ids) ** 2 / math.fsum(size**2 for size in sizes.values())
