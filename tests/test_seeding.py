"""Addressed randomness: the same on every Python, and a real permutation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.seeding import Bijection, Stream


def test_a_stream_is_known_by_its_address() -> None:
    assert Stream("a", 1).sample(range(50), 9) == Stream("a", 1).sample(range(50), 9)
    assert Stream("a", 1).sample(range(10**6), 5) != Stream("a", 2).sample(range(10**6), 5)
    assert Stream("a1").below(10**9) != Stream("a", 1).below(10**9)


@given(st.integers(1, 300), st.integers())
def test_every_index_has_its_own_place(size: int, seed: int) -> None:
    order = Bijection(size, seed)
    assert sorted(order(i) for i in range(size)) == list(range(size))


@given(st.integers(2**60, 2**90), st.integers(0, 2**60 - 1))
def test_large_ranges_stay_in_range(size: int, index: int) -> None:
    assert 0 <= Bijection(size, "x")(index) < size


def test_outside_the_range_is_an_error() -> None:
    with pytest.raises(IndexError, match="index 3 is outside 0 to 2"):
        Bijection(3, 1)(3)
    with pytest.raises(ValueError, match="at least one element"):
        Bijection(0, 1)


@given(st.lists(st.integers(), unique=True), st.integers())
def test_sample_and_shuffle_keep_the_elements(items: list[int], seed: int) -> None:
    assert sorted(Stream(seed).sample(items, len(items))) == sorted(items)
    shuffled = list(items)
    Stream(seed).shuffle(shuffled)
    assert sorted(shuffled) == sorted(items)


def test_a_sample_larger_than_its_source_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot draw 3 of 2"):
        Stream(1).sample("ab", 3)
