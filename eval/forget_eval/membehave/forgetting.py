"""Policies by which a request to forget somebody becomes operations of a memory. They see the request and no dataset.

Tables of different policies do not compare, so a report says which one was used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forget_datasets.errors import unknown
from forget_datasets.membehave.metrics import mentions
from forget_eval.membehave.names import people, spoken
from forget_eval.protocols import Memory
from forget_eval.recording import recalled

DEPTH = 50
"""How many texts are recalled for a name."""
ROUNDS = 200
"""How often a name is recalled at most."""
_NOBODY = "Nobody"
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


class Deletion:
    """An operation by which a memory deletes; adds up what it returns."""

    def __init__(self, memory: Memory, operation: str) -> None:
        self.operation = operation
        self.returned: int | None = None
        self._delete: Callable[[str], object] = getattr(memory, operation)

    def __call__(self, text: str) -> None:
        """Deletes. Raises RuntimeError if the memory, which had the operation when it was empty, has it no longer."""
        try:
            count = self._delete(text)
        except NotImplementedError as error:
            what = f"{self.operation} raised NotImplementedError, but not when the memory was empty"
            raise RuntimeError(what) from error
        if isinstance(count, int) and not isinstance(count, bool) and abs(count) < _BELIEVABLE:
            self.returned = (self.returned or 0) + count


@dataclass(frozen=True, slots=True)
class Policy:
    """How a request is served.

    Attributes:
        operations: those by which a memory may delete, the preferred one first; with none of them it cannot forget.
        serve: from the memory, the request and the deletion to what was done.
    """

    operations: tuple[str, ...]
    serve: Callable[[Memory, str, Deletion], Forgotten]

    def choose(self, memory: Memory) -> str | None:
        """The first of the operations that a memory has, None if it has none; `memory` must be empty.

        Each is tried on it, since one that raises NotImplementedError is none: what the memory holds later, and
        whether it recalls the person, has no say.
        """
        return next((name for name in self.operations if _has(memory, name)), None)


def policy(name: str) -> Policy:
    """The policy of a name. Raises UserError for an unknown one."""
    if name not in POLICIES:
        raise unknown("forget policy", name, POLICIES)
    return POLICIES[name]


def _named(memory: Memory, request: str, delete: Deletion) -> Forgotten:
    """Recalls each name of the request, full and then first, and deletes every recalled text that holds a name.

    A text counts if it holds one of the names as scoring would find it. This goes on until no such text is recalled, or
    the same ones are as before, for at most `ROUNDS` rounds a name.
    """
    forms = [form for name in people(request) for form in spoken(name)]
    rounds, handed, left = 0, set[str](), set[str]()
    for form in forms:
        found, before = _naming(memory, form, forms), list[str]()
        for _ in range(ROUNDS):
            if not found or sorted(found) == sorted(before):
                break
            for text in dict.fromkeys(found):
                delete(text)
            handed.update(found)
            rounds, found, before = rounds + 1, _naming(memory, form, forms), found
        left.update(found)
    return Forgotten(delete.operation, forms, rounds, delete.returned, len(handed - left))


def _naming(memory: Memory, form: str, forms: Sequence[str]) -> list[str]:
    """The texts that are recalled under one form of a name and hold any of its forms."""
    return [text for text in recalled(memory.recall_texts(form, k=DEPTH), DEPTH) if mentions(text, forms)]


def _single(memory: Memory, request: str, delete: Deletion) -> Forgotten:
    """One release of the whole request, as ForgetEval mutates."""
    delete(request)
    return Forgotten(delete.operation, [], 1, delete.returned, None)


named = Policy(("purge", "release"), _named)
single = Policy(("release",), _single)
POLICIES = {"named": named, "single": single}


def _has(memory: Memory, operation: str) -> bool:
    method = getattr(memory, operation, None)
    if method is None:
        return False
    try:
        method(_NOBODY)
    except NotImplementedError:
        return False
    except KeyboardInterrupt:
        raise
    except BaseException:  # it is there, and breaks: what that costs is seen when it is needed
        return True
    return True
