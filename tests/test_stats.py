"""Intervals: values worked out by hand, and properties. Their coverage is in test_coverage.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_eval.stats import score_interval, stratified_variance, stratified_wilson, wilson

STRATA = st.lists(
    st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=0, max_size=25
)


@pytest.mark.parametrize(
    ("passed", "n", "low", "high"),
    [
        (10, 10, 0.7224672, 1.0),  # 10 / (10 + z^2), z^2 = 3.8414588
        (0, 4, 0.0, 0.4898908),  # z^2 / (4 + z^2)
        (8, 10, 0.4901625, 0.9433178),
        (1, 2, 0.0945312, 0.9054688),
    ],
)
def test_wilson_by_hand(passed: int, n: int, low: float, high: float) -> None:
    rate = wilson(passed, n)
    assert rate.value == passed / n
    assert rate.low == pytest.approx(low, abs=1e-6)
    assert rate.high == pytest.approx(high, abs=1e-6)


@pytest.mark.parametrize(
    ("strata", "low", "high"),
    [
        ([(5, 5), (5, 5)], 0.7224672, 1.0),  # strata that agree are one sample of ten
        ([(5, 5), (0, 5)], 0.3379450, 0.6620550),  # effective size 0.25 / 0.0076389 = 32.727
        ([(9, 10), (1, 4)], 0.4967745, 0.8635984),  # effective size 0.2089544 / 0.0102943 = 20.298
        ([(0, 3), (0, 4), (0, 3)], 0.0, 0.2772372),  # effective size 0.101775 / 0.0101625 = 10.0148
    ],
)
def test_stratified_by_hand(strata: list[tuple[int, int]], low: float, high: float) -> None:
    rate = stratified_wilson(strata)
    assert rate.low == pytest.approx(low, abs=1e-5)
    assert rate.high == pytest.approx(high, abs=1e-5)


def test_a_stratum_without_cases_changes_nothing() -> None:
    assert stratified_wilson([(3, 5), (0, 0), (4, 5)]) == stratified_wilson([(3, 5), (4, 5)])


def test_one_stratum_is_wilson() -> None:
    assert stratified_wilson([(7, 9)]) == wilson(7, 9)


def test_without_cases_nothing_is_known() -> None:
    rate = stratified_wilson([])
    assert (rate.value, rate.low, rate.high, rate.n, rate.passed) == (None, 0.0, 1.0, 0, 0)


@pytest.mark.parametrize("strata", [[(6, 5)], [(-1, 5)], [(2, 3), (4, 3)]])
def test_more_passes_than_cases_is_an_error(strata: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="is no rate"):
        stratified_wilson(strata)


@given(STRATA)
def test_the_interval_holds_the_rate_and_has_width(strata: list[tuple[int, int]]) -> None:
    rate = stratified_wilson(strata)
    assert rate.passed == sum(passed for passed, _ in strata)
    assert 0 <= rate.low < rate.high <= 1
    if rate.value is not None:
        assert rate.low <= rate.value <= rate.high
        assert (rate.high == 1) == (rate.passed == rate.n)
        assert (rate.low == 0) == (rate.passed == 0)


@given(STRATA)
def test_failures_mirror_passes(strata: list[tuple[int, int]]) -> None:
    rate, mirrored = stratified_wilson(strata), stratified_wilson([(n - passed, n) for passed, n in strata])
    assert mirrored.low == pytest.approx(1 - rate.high, abs=1e-9)
    assert mirrored.high == pytest.approx(1 - rate.low, abs=1e-9)


def test_the_variance_of_a_stratified_rate_by_hand() -> None:
    """1 of 3 and 4 of 5 are taken as 1.5/4 and 4.5/6; weights 3/8 and 5/8.

    Mean 0.609375; variance (9/64)(0.375)(0.625)/3 + (25/64)(0.75)(0.25)/5 = 0.010986 + 0.014648.
    """
    mean, variance = stratified_variance([(1, 3), (4, 5)])
    assert mean == pytest.approx(0.609375)
    assert variance == pytest.approx(0.025634766)


def test_a_score_interval_takes_a_sample_size_that_is_not_whole() -> None:
    """Half of 15.3658352 = 4 z²: 1/2 ± sqrt(1/20), for (z² n / 4 + z⁴ / 4) / (n + z²)² is (z⁴ 5/4) / (25 z⁴)."""
    low, high = score_interval(0.5, 4 * 3.841458820694124)
    assert (low, high) == (pytest.approx(0.5 - 0.05**0.5), pytest.approx(0.5 + 0.05**0.5))
