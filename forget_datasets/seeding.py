"""Addressed randomness: every case has a stream of its own, and every index its own place in a seeded order."""

import random
from collections.abc import MutableSequence, Sequence
from hashlib import blake2b
from math import isqrt
from typing import TypeVar

T = TypeVar("T")
_ROUNDS = 4  # even, so that the digits end where they began


class Stream:
    """A reproducible source of choices, known by its address alone.

    Built on `random()` of the Mersenne Twister, whose sequence Python keeps from version to version; the helpers of the
    module (choice, shuffle, sample) carry no such promise. Golden hashes hold it to that on every Python we support.
    """

    def __init__(self, *address: object) -> None:
        self._uniform = random.Random("\x1f".join(map(str, address))).random

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1; n must be from 1 to 2**53."""
        return int(self._uniform() * n)

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._uniform() < probability

    def choice(self, options: Sequence[T]) -> T:
        """One of a non-empty sequence."""
        return options[int(self._uniform() * len(options))]

    def sample(self, options: Sequence[T], size: int) -> list[T]:
        """`size` entries in random order, none twice by position. Raises ValueError if there are fewer."""
        if size > len(options):
            raise ValueError(f"cannot draw {size} of {len(options)} without repetition")
        rest = list(options)
        for i in range(size):
            j = i + int(self._uniform() * (len(rest) - i))
            rest[i], rest[j] = rest[j], rest[i]
        return rest[:size]

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Reorders in place (Fisher and Yates)."""
        for i in range(len(items) - 1, 0, -1):
            j = int(self._uniform() * (i + 1))
            items[i], items[j] = items[j], items[i]


class Bijection:
    """A seeded permutation of range(size), computed one index at a time.

    A generalised Feistel network over two digits whose product barely exceeds the size, walked along its cycle until it
    falls into the range (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
    """

    def __init__(self, size: int, *address: object) -> None:
        if size < 1:
            raise ValueError(f"a permutation needs at least one element, not {size}")
        self.size = size
        left = isqrt(size - 1) + 1
        right = -(-size // left)
        self._radices = (left, right)
        self._bytes = min(64, left.bit_length() // 8 + 2)
        key = blake2b("\x1f".join(map(str, address)).encode(), digest_size=32).digest()
        self._rounds = [blake2b(bytes([i]), key=key, digest_size=self._bytes) for i in range(_ROUNDS)]

    def __call__(self, index: int) -> int:
        """The place of `index`. Raises IndexError outside the range."""
        if not 0 <= index < self.size:
            raise IndexError(f"index {index} is outside 0 to {self.size - 1}")
        value = self._encrypt(index)
        while value >= self.size:
            value = self._encrypt(value)
        return value

    def _encrypt(self, value: int) -> int:
        changed, other = divmod(value, self._radices[1])
        radix, radix_of_other = self._radices
        for keyed in self._rounds:
            digest = keyed.copy()
            digest.update(other.to_bytes(self._bytes, "big"))
            mixed = (changed + int.from_bytes(digest.digest(), "big")) % radix
            changed, other, radix, radix_of_other = other, mixed, radix_of_other, radix
        return changed * self._radices[1] + other
