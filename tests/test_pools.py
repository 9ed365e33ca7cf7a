"""Pools and mixed radix, by hand."""

from math import perm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.forgeteval.pools import Listed, Patterned, distinct, skip


def test_a_pattern_spells_digits_and_letters_least_significant_first() -> None:
    pool = Patterned(["a#*", "##"])
    assert pool.size == 10 * 36 + 100
    assert pool.value(0) == "a0a"
    assert pool.value(13) == "a3b"  # 13 = 1 * 10 + 3
    assert pool.value(359) == "a99"
    assert pool.value(360) == "00"
    assert pool.value(360 + 42) == "24"
    with pytest.raises(IndexError, match="no value 460"):
        pool.value(460)


def test_what_a_pattern_could_spell_is_found_in_text() -> None:
    assert Patterned(["K-##"]).expression.search("see k-07 there")
    assert not Patterned(["K-##"]).expression.search("see k-x7 there")


def test_skip_counts_what_is_left() -> None:
    assert [skip(i, [4, 1]) for i in range(4)] == [0, 2, 3, 5]


@given(st.data())
def test_all_combinations_are_distinct(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 6))
    slots = data.draw(st.integers(1, size))
    count = perm(size, slots)
    combinations = {tuple(distinct([("p", size)] * slots, rank)) for rank in range(count)}
    assert len(combinations) == count
    assert all(len({place for _, place in c}) == slots for c in combinations)


def test_listed() -> None:
    pool = Listed(["x", "y"])
    assert (pool.size, pool.value(1)) == (2, "y")
