"""Intervals over clusters: small cases worked out by hand. Their coverage is in test_coverage.py."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from forget_eval.bootstrap import (
    cluster_interval,
    difference_interval,
    pigeonhole_interval,
    smallest_mean,
    unanimous,
)


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

    Below, Wilson's intervals reach further. All pairs have the target a, so there is one cluster, of which nothing is
    lost: up to z² / (1 + z²) = 0.7935. The half that is gained could be as little as 0.5 - z / (2 sqrt(1 + z²)) =
    0.0546; so the end is 0.5 - sqrt(0.4454² + 0.7935²) = -0.4099.
    """
    found = pigeonhole_interval([1.0, 0.0], ["a", "a"], ["b", "c"])
    assert (found.value, found.high, found.n) == (0.5, 1.0, 2)
    assert found.low == pytest.approx(-0.4099, abs=1e-4)


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


def test_one_item_of_42_that_gained_could_be_as_few_as_none_and_as_many_as_wilson_says() -> None:
    """Gained 1 of 42: Wilson 0.0042 to 0.1232; lost none: up to 0.0838.

    Below 0.0238 by sqrt((0.0238 - 0.0042)² + 0.0838²) = 0.0861, above it by 0.1232 - 0.0238.
    """
    found = difference_interval([1.0] + [0.0] * 41, range(42))
    assert found.value == pytest.approx(0.0238, abs=5e-5)
    assert found.low == pytest.approx(-0.0622, abs=2e-4)
    assert found.high == pytest.approx(0.1232, abs=2e-4)


def test_no_item_that_differs_is_no_certainty() -> None:
    """Wilson's interval for 0 of 42 ends at 0.0838, on either side."""
    found = difference_interval([0.0] * 42, range(42))
    assert (found.low, found.high) == (pytest.approx(-0.0838, abs=5e-5), pytest.approx(0.0838, abs=5e-5))


def test_a_difference_between_runs_is_less_sure_within_few_targets() -> None:
    values = [0.5, -0.25, 0.0] * 14
    alone, in_sixes = (difference_interval(values, [i // size for i in range(42)]) for size in (1, 6))
    swapped = difference_interval([-value for value in values], range(42))
    assert alone.high - alone.low < 1
    assert in_sixes.value == alone.value
    assert (swapped.low, swapped.high) == (pytest.approx(-alone.high, abs=0.02), pytest.approx(-alone.low, abs=0.02))


@given(st.lists(st.tuples(st.sampled_from([-1.0, -0.25, 0.0, 0.5, 1.0]), st.integers(0, 9)), min_size=1, max_size=30))
def test_intervals_of_differences_hold_their_value_and_have_a_width(items: list[tuple[float, int]]) -> None:
    found = difference_interval([v for v, _ in items], [c for _, c in items], replicates=200)
    assert found.value is not None
    assert -1.0 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1.0
    assert found.low < found.high


def test_the_smallest_mean_that_so_many_clusters_show() -> None:
    """0 and 1, five clusters each: the variance of the mean is 10 / 4 / 100 * 10 / 9 = 0.027778, its root 0.166667.

    Student's quantiles for 9 degrees of freedom are 2.262157 (97.5%) and 0.883404 (80%).
    """
    assert smallest_mean([0.0, 1.0] * 5, range(10)) == pytest.approx(0.166667 * (2.262157 + 0.883404), abs=1e-5)
    assert smallest_mean([0.5] * 10, range(10)) is None
    assert smallest_mean([0.0, 1.0], ["maya", "maya"]) is None
