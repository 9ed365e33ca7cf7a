"""Pools: what a slot can be filled with, by position. A value is addressed, never searched."""

import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import Protocol

_DIGITS = "0123456789"
_ALPHABETS = {"#": _DIGITS, "*": "abcdefghijklmnopqrstuvwxyz" + _DIGITS}


class Pool(Protocol):
    """An addressable, finite supply of distinct values."""

    @property
    def size(self) -> int: ...
    def value(self, index: int) -> str: ...


class Listed:
    """Values written out one by one."""

    def __init__(self, values: Sequence[str]) -> None:
        self.values = tuple(values)
        self.size = len(self.values)

    def value(self, index: int) -> str:
        return self.values[index]


class Patterned:
    """Values spelled by patterns: "#" stands for a digit, "*" for a lower-case letter or digit, the rest for itself."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(patterns)
        alphabets = [[_ALPHABETS.get(c, c) for c in pattern] for pattern in self.patterns]
        self._spelled = [[(each, len(each)) for each in group] for group in alphabets]
        self._sizes = [prod(map(len, group)) for group in alphabets]
        self.size = sum(self._sizes)

    def value(self, index: int) -> str:
        for alphabets, size in zip(self._spelled, self._sizes, strict=True):
            if index < size:
                return _spell(alphabets, index)
            index -= size
        raise IndexError(f"a pool of {self.size} values has no value {index + self.size}")

    @property
    def expression(self) -> re.Pattern[str]:
        """What finds any value of the pool in a folded text."""
        return re.compile("|".join("".join(map(_class, pattern.lower())) for pattern in self.patterns))


def _class(character: str) -> str:
    return {"#": "[0-9]", "*": "[a-z0-9]"}.get(character) or re.escape(character)


def _spell(alphabets: Sequence[tuple[str, int]], index: int) -> str:
    """A digit of `index` in each alphabet, given with its size, lowest first; what is fixed is an alphabet of one."""
    spelled = []
    for alphabet, size in alphabets:
        if size > 1:
            index, place = divmod(index, size)
            spelled.append(alphabet[place])
        else:
            spelled.append(alphabet)
    return "".join(spelled)


def skip(index: int, used: Sequence[int]) -> int:
    """The `index`-th position that is not among `used`."""
    for taken in sorted(used) if len(used) > 1 else used:
        if index >= taken:
            index += 1
    return index


def distinct(sizes: Sequence[tuple[str, int]], rank: int) -> Iterator[tuple[str, int]]:
    """Positions in named pools, distinct within a pool, of the `rank`-th combination (mixed radix).

    Args:
        sizes: pool name and size of each slot, in order.
        rank: from 0 to the product of the falling sizes, minus 1.
    """
    used: dict[str, list[int]] = {}
    for pool, size in sizes:
        taken = used.setdefault(pool, [])
        rank, place = divmod(rank, size - len(taken))
        taken.append(skip(place, taken))
        yield pool, taken[-1]
