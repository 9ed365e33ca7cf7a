"""Two systems on the same cases: which is better, by how much, and how small a difference could have been seen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from forget_eval.stats import Z

POWER = 0.8
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two rates on the same `n` cases with its 95% interval, all from -1 to 1.

    `gained` cases pass in the second run alone, `lost` ones in the first alone. Without cases the value is None.
    """

    value: float | None
    low: float
    high: float
    n: int
    gained: int
    lost: int


def mcnemar(gained: int, lost: int) -> float:
    """The two-sided p-value of McNemar's test in its exact form, from scipy's binomial test.

    If two systems are equally good, a case on which they differ favours either with probability 1/2 (McNemar 1947,
    Psychometrika 12(2); exact: Fagerland, Lydersen and Laake 2013, BMC Medical Research Methodology 13:91). That holds
    within every template, so their sum needs no stratification.

    Args:
        gained: cases that pass in the second run alone.
        lost: cases that pass in the first run alone.
    """
    from scipy.stats import binomtest

    return round(float(binomtest(gained, gained + lost).pvalue), 12) if gained + lost else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for being several, in the order given (Holm 1979, Scandinavian Journal of Statistics 6(2)).

    The chance that any true null hypothesis has an adjusted value of at most 5% is at most 5%, however they depend on
    each other.
    """
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = round(least, 12)
    return adjusted


def paired_difference(strata: Sequence[tuple[int, int, int]]) -> Difference:
    """The difference of two rates on the same cases, with an interval that is stratified over fixed strata.

    Tango's score interval (1998, Statistics in Medicine 17(8)), which agrees with McNemar's statistic and keeps its
    width where no case differs, at the effective sample size S / V (Korn and Graubard 1998, Survey Methodology 24). S
    is the variance of one case's difference over all strata together, V that of the stratified estimate; both are taken
    at (count + 1/2) / (n + 1) of each stratum, as in `stats.stratified_wilson`.

    Args:
        strata: (gained, lost, n) of each; those without cases are ignored.

    Raises:
        ValueError: a stratum's counts are negative, or more than its n.
    """
    for gained, lost, n in strata:
        if min(gained, lost) < 0 or gained + lost > n:
            raise ValueError(f"{gained} gained and {lost} lost of {n} are no pairs")
    filled = [stratum for stratum in strata if stratum[2]]
    if not filled:
        return Difference(None, -1.0, 1.0, 0, 0, 0)
    gained, lost, n = (sum(stratum[i] for stratum in filled) for i in range(3))
    sureness = _effective_size(filled, n) if len(filled) > 1 else n
    low, high = _tango(gained / n, lost / n, sureness)
    value = (gained - lost) / n
    return Difference(
        round(value, 12), round(min(low, value), 12), round(max(high, value), 12), n, gained, lost
    )  # fmt: skip


def smallest_difference(n: int, differing: float, power: float = POWER, alpha: float = ALPHA) -> float | None:
    """The smallest true difference that the exact McNemar test finds on `n` cases with a given power.

    The power is exact: summed over how many cases differ, a binomial number, and over how many of them favour the
    better system (Duffy 1984, Biometrics 40(4)). It depends on how many cases differ at all, so a share has
    to be given; a difference larger than that share is one where every case that differs favours the same system.

    Args:
        n: the number of cases.
        differing: the share of cases on which the systems differ, from 0 to 1; the observed one, as a rule.
        power: the chance to find the difference.
        alpha: the level of the two-sided test.

    Returns:
        From 0 to 1; None if not even a difference of 1 is found so surely.
    """
    from scipy.optimize import brentq

    if n == 0 or _power(1.0, n, differing, alpha) < power:
        return None
    return round(float(brentq(lambda d: _power(d, n, differing, alpha) - power, 0.0, 1.0, xtol=1e-9)), 6)


def _power(difference: float, n: int, differing: float, alpha: float) -> float:
    """The power of the exact McNemar test against a true difference."""
    import numpy as np
    from scipy.stats import binom

    share = max(differing, difference)
    if share == 0:
        return 0.0
    unlike = np.arange(n + 1)
    critical = binom.ppf(alpha / 2, unlike, 0.5)
    critical = np.where(binom.cdf(critical, unlike, 0.5) <= alpha / 2, critical, critical - 1)  # -1: never rejects
    better = (share + difference) / (2 * share)
    found = binom.cdf(critical, unlike, better) + binom.sf(unlike - critical - 1, unlike, better)
    return float(binom.pmf(unlike, n, share) @ found)


def _effective_size(strata: Sequence[tuple[int, int, int]], total: int) -> float:
    shrunk = [(n / total, (gained + 0.5) / (n + 1), (lost + 0.5) / (n + 1), n) for gained, lost, n in strata]
    gained = math.fsum(weight * g for weight, g, _, _ in shrunk)
    lost = math.fsum(weight * b for weight, _, b, _ in shrunk)
    variance = math.fsum(weight**2 * (g + b - (g - b) ** 2) / n for weight, g, b, n in shrunk)
    return (gained + lost - (gained - lost) ** 2) / variance


def _tango(gained: float, lost: float, n: float) -> tuple[float, float]:
    """Tango's interval for shares of `n` pairs, which need not be whole."""
    return _tango_low(gained, lost, n), -_tango_low(lost, gained, n)


def _tango_low(gained: float, lost: float, n: float) -> float:
    """Where the score statistic of a smaller difference reaches the 97.5% point."""
    from scipy.optimize import brentq

    found = gained - lost

    def excess(d: float) -> float:
        # q: the likeliest share of lost pairs, if the true difference is d (Tango 1998, equations 4 and 5)
        b = (2 - found) * d - gained - lost
        q = (math.sqrt(max(0.0, b * b + 8 * lost * d * (1 - d))) - b) / 4
        return found - d - Z * math.sqrt(max(0.0, 2 * q + d * (1 - d)) / n)

    top = found - 1e-9  # at the estimate itself the spread may vanish, which is no bound
    if excess(-1.0) <= 0 or top <= -1:
        return -1.0
    return float(brentq(excess, -1.0, top, xtol=1e-14))
