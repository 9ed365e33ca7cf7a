"""How often intervals hold the true value: simulated at true rates from 0.5 to 0.99, with the real numbers of clusters.

Run as a script, this prints the table of all scenarios with more draws, the lowest single figure included:

    python tests/test_coverage.py 1000
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from forget_eval.bootstrap import cluster_interval, difference_interval, pigeonhole_interval
from forget_eval.paired import paired_difference
from forget_eval.repeats import rate
from forget_eval.stats import stratified_wilson

Generator = np.random.Generator
FAMILY = (13, 13, 12, 12)  # 50 cases, four templates
ALL = FAMILY * 5
RATES = np.linspace(0.5, 0.99, 8)
REPLICATES = 800
# 42 items of a level of MemBehave: as many of one target as in the default dataset, and ripple probes of an item.
TARGETS = np.repeat(np.arange(32), [3, 3, *[2] * 6, *[1] * 24])
FEW, MANY = np.resize([1, 1, 1, 2, 2], 42), np.resize([5, 6, 7, 8, 8, 9, 9, 10, 11], 42)


@dataclass(frozen=True)
class Scenario:
    """`covered` says of one draw at a true rate whether the interval held the truth."""

    group: str
    name: str
    covered: Callable[[Generator, float], bool]
    rates: Sequence[float] = field(default=tuple(RATES))

    def figures(self, draws: int) -> list[float]:
        """The coverage at each true rate."""
        random = np.random.default_rng(20261130)
        return [float(np.mean([self.covered(random, r) for _ in range(draws)])) for r in self.rates]


@cache
def family_intervals() -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the interval for every outcome of a family."""
    known: dict[tuple[tuple[int, int], ...], tuple[float, float]] = {}
    ends = []
    for outcome in product(*(range(size + 1) for size in FAMILY)):
        strata = tuple(sorted(zip(outcome, FAMILY, strict=True)))
        if strata not in known:
            found = stratified_wilson(strata)
            known[strata] = (found.low, found.high)
        ends.append(known[strata])
    low, high = np.array(ends).T
    return low, high


def exact(spread: float) -> list[float]:
    """The coverage of a family's interval, summed over all outcomes: nothing is left to chance."""
    low, high = family_intervals()
    return [_exact(rates, low, high) for rates in (_spread(r, spread, 4) for r in np.linspace(0.5, 0.99, 50))]


def _exact(rates: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    chance = np.ones(1)
    for p, size in zip(rates, FAMILY, strict=True):
        chance = np.multiply.outer(chance, binom.pmf(np.arange(size + 1), size, p)).ravel()
    truth = float(rates @ np.array(FAMILY) / sum(FAMILY))
    return float(chance[(low <= truth) & (truth <= high)].sum())


def _spread(mean: float, spread: float, n: int) -> np.ndarray:
    """Rates of n templates around a mean, none above 1."""
    return mean + min(spread, 1 - mean) * np.linspace(-1, 1, n)


def overall(spread: float) -> Callable[[Generator, float], bool]:
    """A rate over twenty templates that differ."""

    def covered(random: Generator, mean: float) -> bool:
        rates = random.permutation(_spread(mean, spread, 20))
        found = stratified_wilson(list(zip(random.binomial(ALL, rates).tolist(), ALL, strict=True)))
        return found.low <= rates @ ALL / sum(ALL) <= found.high

    return covered


def paired(sizes: Sequence[int], gap: float, shared: float) -> Callable[[Generator, float], bool]:
    """A second run that is worse by `gap`, and gains a part `shared` of what it would by chance."""

    def covered(random: Generator, mean: float) -> bool:
        first = random.permutation(_spread(mean, 0.1, len(sizes)))
        second = np.clip(first - gap, 0, 1)
        gains = shared * second * (1 - first)
        losses = first - second + gains
        gained = random.binomial(sizes, gains)
        lost = random.binomial(np.array(sizes) - gained, losses / np.maximum(1 - gains, 1e-12))
        found = paired_difference(list(zip(gained.tolist(), lost.tolist(), sizes, strict=True)))
        return found.low <= (gains - losses) @ sizes / sum(sizes) <= found.high

    return covered


def people(random: Generator, mean: float, alike: float, n: int) -> np.ndarray:
    """Rates of n people around a mean; `alike` is the correlation between answers about one of them."""
    if not alike:
        return np.full(n, mean)
    return random.beta(mean * (1 / alike - 1), (1 - mean) * (1 / alike - 1), n)


def level(probes: np.ndarray, alike: float) -> Callable[[Generator, float], bool]:
    """The mean of a level: shares of right answers of 42 items."""

    def covered(random: Generator, mean: float) -> bool:
        values = random.binomial(probes, people(random, mean, alike, 32)[TARGETS]) / probes
        found = cluster_interval(values.tolist(), TARGETS.tolist(), replicates=REPLICATES)
        return found.low <= mean <= found.high

    return covered


def versus(probes: np.ndarray, gap: float, alike: float, nested: bool) -> Callable[[Generator, float], bool]:
    """A second system on the same items, which loses a part `gap`; nested: of the answers that the first had right."""

    def covered(random: Generator, mean: float) -> bool:
        rates = people(random, mean, alike, 32)[TARGETS]
        first = random.binomial(probes, rates)
        second = random.binomial(first, 1 - gap) if nested else random.binomial(probes, rates * (1 - gap))
        values = (first - second) / probes
        found = difference_interval(values.tolist(), TARGETS.tolist(), replicates=REPLICATES)
        return found.low <= mean * gap <= found.high

    return covered


def levels(gap: float, alike: float) -> Callable[[Generator, float], bool]:
    """A difference between two levels, whose targets are drawn from the same 76 people."""

    def covered(random: Generator, mean: float) -> bool:
        rates = people(random, mean, alike, 76)
        low, high = np.random.default_rng(3).integers(0, 76, (2, 42))
        values = random.binomial(MANY, rates[high]) / MANY - random.binomial(FEW, rates[low] * (1 - gap)) / FEW
        found = pigeonhole_interval(values.tolist(), high.tolist(), low.tolist(), replicates=REPLICATES)
        return found.low <= mean * gap <= found.high

    return covered


def repeated(repeats: int, alike: float) -> Callable[[Generator, float], bool]:
    """A rate over 250 cases and some repeats, of a system that is right with a chance of its own at every case."""

    def covered(random: Generator, mean: float) -> bool:
        rates = people(random, mean, alike, sum(ALL))
        outcomes = (random.random((sum(ALL), repeats)) < rates[:, None]).astype(float)
        found = rate(outcomes, [str(i) for i, size in enumerate(ALL) for _ in range(size)])
        return found.low <= mean <= found.high

    return covered


SCENARIOS = [
    *(Scenario("ForgetEval, overall", f"templates ± {s:.0%}", overall(s)) for s in (0.0, 0.2)),
    *(
        Scenario("ForgetEval, two runs", f"n = {sum(sizes)}, {gap:.0%} worse, {word}", paired(sizes, gap, shared))
        for sizes in (FAMILY, ALL)
        for gap, shared, word in ((0.02, 1.0, "independent"), (0.1, 0.3, "alike"), (0.1, 0.0, "nested"))
    ),
    *(
        Scenario("MemBehave, a level", f"{word}, correlation {alike}", level(probes, alike))
        for probes, word in ((FEW, "1 or 2 answers an item"), (MANY, "5 to 11 answers"))
        for alike in (0.0, 0.2)
    ),
    Scenario("MemBehave, a level", "right or wrong", level(np.ones(42, dtype=int), 0.0)),
    Scenario("MemBehave, two runs", "5 to 11 answers, 20% worse", versus(MANY, 0.2, 0.1, False)),
    Scenario("MemBehave, two runs", "1 or 2 answers, 5% worse", versus(FEW, 0.05, 0.1, False)),
    Scenario("MemBehave, two runs", "5 to 11 answers, 2% lost", versus(MANY, 0.02, 0.1, True)),
    *(
        Scenario("MemBehave, levels", f"{gap:.0%} worse, correlation {alike}", levels(gap, alike))
        for gap, alike in ((0.0, 0.0), (0.2, 0.2), (0.01, 0.0))
    ),
    Scenario("repeats", "3, deterministic", repeated(3, 0.999999)),
    Scenario("repeats", "3, correlation 0.5", repeated(3, 0.5)),
    Scenario("repeats", "2, correlation 0.1", repeated(2, 0.1)),
]
GROUPS = {
    "ForgetEval, overall": (120, 0.90),
    "ForgetEval, two runs": (60, 0.85),
    "MemBehave, a level": (80, 0.86),
    "MemBehave, two runs": (60, 0.86),
    "repeats": (40, 0.85),
}
"""How many draws at a rate, and what no single figure is below: some five standard errors under 95%."""


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.2, 0.4])
def test_a_family_is_covered_as_promised(spread: float) -> None:
    """The lowest figure, at 0.99, is as low as that of Wilson's interval for one sample: 50 cases fail by steps."""
    figures = exact(spread)
    assert 0.93 <= np.mean(figures) <= 0.97
    assert min(figures) >= 0.90


@pytest.mark.parametrize("group", GROUPS)
def test_intervals_cover_on_average_what_they_promise(group: str) -> None:
    draws, least = GROUPS[group]
    figures = np.array([s.figures(draws) for s in SCENARIOS if s.group == group])
    assert 0.93 <= figures.mean() <= 0.97
    assert figures.mean(axis=1).min() >= 0.925
    assert figures.min() >= least


def test_the_pigeonhole_bootstrap_covers_at_least_as_much_as_promised() -> None:
    figures = np.array([s.figures(40) for s in SCENARIOS if s.group == "MemBehave, levels"])
    assert figures.mean(axis=1).min() >= 0.93
    assert figures.min() >= 0.90


def lines(draws: int) -> Iterator[str]:
    """The table, as Markdown."""
    yield "| intervals | scenario | mean | lowest | at a true rate of |"
    yield "| --- | --- | ---: | ---: | ---: |"
    found = [("ForgetEval, a family", f"templates ± {s:.0%}, exact", exact(s), np.linspace(0.5, 0.99, 50))
             for s in (0.0, 0.1, 0.2, 0.4)]  # fmt: skip
    found += [(s.group, s.name, s.figures(draws), np.array(s.rates)) for s in SCENARIOS]
    for group, name, figures, rates in found:
        worst = int(np.argmin(figures))
        yield f"| {group} | {name} | {np.mean(figures):.1%} | {figures[worst]:.1%} | {rates[worst]:.2f} |"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
        print(line, flush=True)
