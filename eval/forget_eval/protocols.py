"""What a memory system offers, what it declares, and how a case can end. Imports nothing heavy."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

Embedder = Callable[[Sequence[str]], Any]
"""Texts in, a float32 array of shape (len(texts), dim) with rows of unit length out."""


class Kind(StrEnum):
    """How a system does an operation: the package has the effect itself, or the adapter composes it of others."""

    NATIVE = "native"
    EMULATED = "emulated"


class Chooser(StrEnum):
    """Who chose the ids that an operation touches."""

    SYSTEM = "system"
    POLICY = "policy"


class Status(StrEnum):
    """How a case ended, for one of the two rates."""

    PASS = "pass"
    FAIL = "fail"
    NA = "n/a"
    ERROR = "error"
    UNSCORED = "unscored"


@runtime_checkable
class Memory(Protocol):
    """A memory system under test (ForgetEval spec, "adapter" protocol): six methods, three of them mandatory.

    `supersede`, `release` and `purge` may raise NotImplementedError; a method that is missing means the same.
    """

    name: str

    def reset(self) -> None: ...
    def inscribe(self, text: str) -> int | str: ...
    def recall_texts(self, query: str, k: int = 5) -> list[str]: ...
    def supersede(self, old_query: str, new_text: str) -> None: ...
    def release(self, query: str) -> int: ...
    def purge(self, query: str) -> int: ...
