"""Policies by which a request to forget somebody becomes operations of a memory. They see the request and no dataset.

Tables of different policies do not compare, so a report says which one was used.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from forget_datasets.errors import unknown
from forget_datasets.tokens import holds
from forget_eval.membehave.names import people, spoken
from forget_eval.protocols import Memory

DEPTH = 50
"""How many texts are recalled for a name."""
ROUNDS = 200
"""How often a name is recalled at most."""
_BELIEVABLE = 2**31  # a count of removed texts beyond it is no count


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a policy did.

    Attributes:
        operation: "purge" or "release", whichever the memory has.
        names: what was looked for; empty where the policy looks for no name.
        rounds: how often deletions were asked for.
        returned: the sum of what the memory says that it removed; None if it never gave a number.
        removed: how many different texts were handed over for removal and are recalled no more; None if that was not
            looked at.
    """

    operation: str
    names: list[str]
    rounds: int
    returned: int | None
    removed: int | None


Policy = Callable[[Memory, str], Forgotten]


def policy(name: str) -> Policy:
    """The policy of a name. Raises UserError for an unknown one."""
    if name not in POLICIES:
        raise unknown("forget policy", name, POLICIES)
    return POLICIES[name]


def named(memory: Memory, request: str) -> Forgotten:
    """Recalls each name of the request, full and then first, and removes every recalled text that holds a name.

    A text counts if it holds one of the names as a whole token; it is removed by `purge`, or by `release` if the
    memory has no purge. This goes on until no such text is recalled, or the same ones are as before, for at most
    `ROUNDS` rounds a name.

    Raises:
        NotImplementedError: the memory has neither operation.
    """
    forms = [form for name in people(request) for form in spoken(name)]
    deletion = _Deletion(memory, ("purge", "release"))
    rounds, handed, left = 0, set[str](), set[str]()
    for form in forms:
        before: list[str] = []
        for _ in range(ROUNDS):
            found = [text for text in memory.recall_texts(form, k=DEPTH) if _names(text, forms)]
            if not found or sorted(found) == before:
                left.update(found)
                break
            for text in dict.fromkeys(found):
                deletion(text)
            rounds, before = rounds + 1, sorted(found)
            handed.update(found)
    return Forgotten(deletion.operation, forms, rounds, deletion.returned, len(handed - left))


def single(memory: Memory, request: str) -> Forgotten:
    """One release of the whole request, as ForgetEval mutates.

    Raises:
        NotImplementedError: the memory has no release.
    """
    deletion = _Deletion(memory, ("release",))
    deletion(request)
    return Forgotten(deletion.operation, [], 1, deletion.returned, None)


POLICIES: dict[str, Policy] = {"named": named, "single": single}


class _Deletion:
    """The first of some operations that a memory has; one that raises NotImplementedError on its first call is none."""

    def __init__(self, memory: Memory, operations: tuple[str, ...]) -> None:
        self.returned: int | None = None
        self._options: Iterator[tuple[str, Callable[[str], object]]] = (
            (name, method) for name in operations if (method := getattr(memory, name, None)) is not None
        )
        self._used = False
        self._next()

    def __call__(self, text: str) -> None:
        try:
            count = self._delete(text)
        except NotImplementedError:
            if self._used:
                raise
            self._next()
            self(text)
            return
        self._used = True
        if isinstance(count, int) and not isinstance(count, bool) and abs(count) < _BELIEVABLE:
            self.returned = (self.returned or 0) + count

    def _next(self) -> None:
        option = next(self._options, None)
        if option is None:
            raise NotImplementedError("the memory can neither purge nor release")
        self.operation, self._delete = option


def _names(text: str, forms: list[str]) -> bool:
    return any(holds(form, text) for form in forms)
