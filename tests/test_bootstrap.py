"""Intervals over clusters: small cases worked out by hand, and coverage in simulation."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from forget_eval.bootstrap import cluster_interval, pigeonhole_interval, unanimous


def test_a_mean_counts_items_and_its_interval_clusters() -> None:
    """Two items of one target and one of another: the mean is 2/3, and a draw of two targets shows 1, 0 or 2/3."""
    found = cluster_interval([1.0, 1.0, 0.0], ["maya", "maya", "hugo"])
    assert found.value == pytest.approx(2 / 3)
    assert (found.low, found.high, found.n) == (0.0, 1.0, 3)


def test_percentiles_of_independent_items_are_those_of_the_binomial() -> None:
    """42 targets with an item each, half of them right: a replicate counts Binomial(42, 1/2) right ones.

    Student's 97.5% point for 41 degrees of freedom is 2.0195; times sqrt(42/41) it is 2.0440, beyond which the normal
    distribution has 2.048%.
    """
    found = cluster_interval([1.0] * 21 + [0.0] * 21, range(42), replicates=40_000)
    assert found.low == pytest.approx(binom.ppf(0.02048, 42, 0.5) / 42)
    assert found.high == pytest.approx(binom.ppf(1 - 0.02048, 42, 0.5) / 42)


def test_items_of_one_target_are_no_independent_cases() -> None:
    values = [1.0] * 30 + [0.0] * 30
    alone = cluster_interval(values, range(60))
    in_tens = cluster_interval(values, [i // 10 for i in range(60)])
    assert in_tens.high - in_tens.low > 2 * (alone.high - alone.low)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_unanimous_items_have_wilsons_interval(value: float) -> None:
    """Wilson's interval for 0 of 42 ends at z² / (42 + z²) = 3.8415 / 45.8415 = 0.0838."""
    found = cluster_interval([value] * 42, range(42))
    assert found.value == value
    assert found.high - found.low == pytest.approx(0.0838, abs=5e-5)
    assert value in (found.low, found.high)


def test_the_certainty_of_unanimous_items_is_that_of_their_clusters() -> None:
    """Sizes 3, 1, 1, 1 are worth (6 * 6) / (9 + 1 + 1 + 1) = 3 clusters; z² / (3 + z²) = 0.5615."""
    found = cluster_interval([0.0] * 6, ["maya", "maya", "maya", "hugo", "niamh", "orla"])
    assert (found.low, found.high) == (0.0, pytest.approx(0.5615, abs=5e-5))


def test_unanimous_differences_stretch_towards_both_bounds() -> None:
    """At most a share q = z² / (42 + z²) = 0.0838 of pairs is unlike, and anything from -1 to 1."""
    none = unanimous(0.0, 42, 42, (-1.0, 1.0))
    assert (none.low, none.high) == (pytest.approx(-0.0838, abs=5e-5), pytest.approx(0.0838, abs=5e-5))
    full = unanimous(1.0, 42, 42, (-1.0, 1.0))
    assert (full.low, full.high) == (pytest.approx(1 - 0.1676, abs=5e-5), 1.0)


def test_a_pair_is_weighed_by_the_product_of_its_targets() -> None:
    """Three people a, b, c, pairs (a, b): 1 and (a, c): 0.

    Of the 27 draws of three people, a pair counts only with a in it. Where b and c are both drawn beside a (6 draws),
    the mean is 1/2; where only b is (6), it is 1; where only c is (6), it is 0; the other 9 are passed over.
    """
    found = pigeonhole_interval([1.0, 0.0], ["a", "a"], ["b", "c"])
    assert (found.value, found.low, found.high, found.n) == (0.5, 0.0, 1.0, 2)


def test_pairs_that_share_a_target_are_less_sure_than_pairs_that_do_not() -> None:
    values = [0.5, -0.5] * 20
    apart = pigeonhole_interval(values, [f"l{i}" for i in range(40)], [f"h{i}" for i in range(40)])
    shared = pigeonhole_interval(values, [f"l{i % 2}" for i in range(40)], [f"h{i}" for i in range(40)])
    assert shared.high - shared.low > apart.high - apart.low


def test_no_items_give_no_value_and_the_whole_range() -> None:
    assert cluster_interval([], []).value is None
    found = pigeonhole_interval([], [], [])
    assert (found.value, found.low, found.high, found.n) == (None, -1.0, 1.0, 0)


@pytest.mark.parametrize(("values", "clusters"), [([1.0], []), ([1.5], ["maya"]), ([float("nan")], ["maya"])])
def test_what_is_no_rate_is_refused(values: list[float], clusters: list[str]) -> None:
    with pytest.raises(ValueError, match=r"as many clusters|outside 0\.0 to 1\.0"):
        cluster_interval(values, clusters)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 9)), min_size=1, max_size=30))
def test_intervals_hold_their_value_stay_in_bounds_and_have_a_width(items: list[tuple[float, int]]) -> None:
    found = cluster_interval([v for v, _ in items], [c for _, c in items], replicates=200)
    assert found.value is not None
    assert 0.0 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1.0
    assert found.low < found.high


def test_the_same_seed_gives_the_same_bytes_and_names_of_clusters_do_not_matter() -> None:
    values = [0.0, 0.25, 0.5, 1.0, 1.0, 0.75]
    first = cluster_interval(values, ["a", "b", "b", "c", "d", "e"], seed=3)
    assert first == cluster_interval(values, [9, 4, 4, 1, 0, 7], seed=3)
    seeds = [cluster_interval([i / 97 for i in range(97)], range(97), seed=s, replicates=50) for s in range(5)]
    assert all(a != b for a, b in pairwise(seeds))


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.9, 0.95, 0.97, 0.98])
def test_coverage_of_a_level(rate: float) -> None:
    """42 items of targets drawn from 80 people, one to five probes each, at every rate by itself.

    Of 300 simulations at 95%, fewer than 92% are covered in one case of a hundred.
    """
    random = np.random.default_rng(7)
    covered = [_covered(random, rate) for _ in range(300)]
    assert sum(covered) / len(covered) >= 0.92


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.9, 0.95, 0.97, 0.98])
def test_coverage_of_items_that_are_right_or_wrong(rate: float) -> None:
    """The coverage of 42 items of a target each is a sum over the binomial distribution: nothing is left to chance.

    Counts are few, so that coverage jumps around 95%, as Wilson's own does.
    """
    found = [cluster_interval([1.0] * k + [0.0] * (42 - k), range(42)) for k in range(43)]
    assert sum(binom.pmf(k, 42, rate) for k in range(43) if found[k].low <= rate <= found[k].high) >= 0.92


def test_one_in_42_has_wilsons_upper_end() -> None:
    """Centre (1 / 42 + 3.8415 / 84) / (1 + 3.8415 / 42) = 0.0637, reach 0.0595, so that it ends at 0.1232."""
    assert cluster_interval([1.0] + [0.0] * 41, range(42)).high == pytest.approx(0.1232, abs=5e-5)


@given(st.integers(0, 41), st.sampled_from([7, 20261130, 31]))
def test_one_more_success_never_lowers_a_bound(k: int, seed: int) -> None:
    less, more = (
        cluster_interval([1.0] * n + [0.0] * (42 - n), range(42), seed=seed, replicates=1000) for n in (k, k + 1)
    )
    assert less.low <= more.low
    assert less.high <= more.high


def test_without_a_replicate_that_keeps_a_pair_the_interval_is_the_whole_range() -> None:
    found = pigeonhole_interval([0.1, 0.2], ["a", "c"], ["b", "d"], replicates=1, seed=6)
    assert (found.value, found.low, found.high, found.n) == (pytest.approx(0.15), -1.0, 1.0, 2)


def _covered(random: np.random.Generator, rate: float) -> bool:
    targets = random.integers(0, 80, 42)
    probes = random.integers(1, 6, 42)
    values = random.binomial(probes, rate) / probes
    found = cluster_interval(values.tolist(), targets.tolist(), seed=int(random.integers(1 << 30)), replicates=400)
    return found.low <= rate <= found.high


def test_coverage_of_a_paired_difference() -> None:
    """42 triplets whose targets recur and differ among each other; the pigeonhole bootstrap covers at least 93%."""
    random = np.random.default_rng(8)
    covered = [_covered_pair(random) for _ in range(150)]
    assert sum(covered) / len(covered) >= 0.93


def _covered_pair(random: np.random.Generator) -> bool:
    people = random.normal(0, 0.1, 80)
    lows = random.integers(0, 80, 42)
    highs = (lows + random.integers(1, 80, 42)) % 80
    user = random.normal(0, 0.1, 42)
    noise = random.normal(0, 0.1, (2, 42))
    difference = (0.1 + people[highs] + user + noise[0]) - (0.3 + people[lows] + user + noise[1])
    seed = int(random.integers(1 << 30))
    found = pigeonhole_interval(
        difference.tolist(), lows.tolist(), highs.tolist(), seed=seed, replicates=400, bounds=(-9, 9)
    )
    return found.low <= -0.2 <= found.high and math.isfinite(found.low)
