"""What a memory system offers, what it declares, and how a case can end. Imports nothing heavy."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from forget_datasets.rows import Session

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


class Scale(StrEnum):
    """What the scores of a system are; the gap policy works on them as they come, so a report names the scale."""

    COSINE = "cosine"
    EUCLIDEAN = "1 - d/2, d the Euclidean distance of unit vectors"
    NONE = "none"


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


class Declared(Protocol):
    """What an adapter may say of itself, as class attributes; all of it is optional.

    An operation without an entry in `operations` is printed as undeclared. `distribution` is the package on the index,
    `version` that of one without a package, `extra` the extra of this project that installs it, `needs` what no install
    line can bring. `configuration` is what else decides an answer, as plain data that JSON can hold. `parallel` says
    whether several processes may each make one and run cases side by side: True where every object has a store of its
    own, and no port, server or file that all would share. A class that does not say so runs in one process. `languages`
    are the tags of those that the system is made for: a case in another ends as n/a. Without them it is all.

    Besides the six methods an adapter may have `inscribe_many(texts) -> ids`, with the same effect as one by one;
    `snapshot() -> state` and `restore(state)`; `close()`. A constructor parameter called `embed` is given the embedder.

    For a residue report: `stored_in() -> str | None`, the folder with the store's files and all else that the system
    writes, None if it is in memory; `maintain() -> str`, which tidies the store up as the package does, and says how; a
    constructor parameter `on_disk`, for an adapter that is else in memory.
    """

    operations: Mapping[str, Kind]
    choosers: Mapping[str, Chooser]
    score_scale: Scale
    configuration: Mapping[str, Any]
    distribution: str
    version: str
    extra: str
    needs: str
    parallel: bool
    languages: Sequence[str]


@runtime_checkable
class Assistant(Protocol):
    """An assistant under test (MemBehave card, "How to use it"): it hears a history, answers, and is asked to forget.

    `forget` may raise NotImplementedError: it cannot forget. What it returns is recorded and decides nothing.
    Optional, as on a memory: `snapshot() -> state` and `restore(state)`, so that one ingest serves several items, and
    `close()`.
    """

    name: str

    def ingest(self, sessions: Sequence[Session]) -> None: ...
    def ask(self, question: str) -> str: ...
    def forget(self, request: str) -> object: ...
