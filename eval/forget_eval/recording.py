"""How what a system returned or raised is written down: checked, as plain data, without secrets."""

import operator
import traceback
from collections.abc import Callable
from itertools import islice
from time import perf_counter
from typing import Any

from forget_eval.guest import message
from forget_eval.redaction import brief

_FRAMES = 6  # of a traceback, from its end
_LONGEST = 4000  # characters of a traceback, or of a text that an operation returned
_INT64 = 2**63


class BadAnswerError(Exception):
    """A system returned something else than the protocol says."""


def recalled(answer: object, k: int) -> list[str]:
    """What `recall_texts` returned, copied, so that a memory that changes its list later changes nothing here.

    Raises:
        BadAnswerError: it is not a list of at most `k` strings.
    """
    if not isinstance(answer, list | tuple):
        raise BadAnswerError(f"recall_texts returned {noun(answer)}, not a list of texts")
    texts = list(islice(answer, k + 1))  # gone through once, and not further: a class of its own may lie, or never end
    for text in texts:
        if not isinstance(text, str):
            raise BadAnswerError(f"recall_texts returned a list that holds {noun(text)}, not texts alone")
    if len(texts) > k:
        raise BadAnswerError(f"recall_texts returned {max(len(texts), len(answer))} texts, more than k = {k}")
    return [str.__str__(text) for text in texts]


def noun(value: object) -> str:
    """What a value is, for a message."""
    return (
        "None" if value is None else "a string" if isinstance(value, str) else f"a value of type {type(value).__name__}"
    )


def plain(value: object) -> bool | int | float | str | None:
    """What an operation returned, as JSON holds it; of a foreign object only the type, for its repr may vary."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return brief(str.__str__(value), _LONGEST)
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except Exception:
        return f"<{type(value).__name__}>"
    return number if -_INT64 <= number < _INT64 else "<int>"


def described(error: BaseException, during: str) -> dict[str, str]:
    """An error as {kind, message, traceback, during}: the tail of the traceback, secrets redacted."""
    return {
        "kind": brief(str(type(error).__name__), _LONGEST),
        "message": message(error),
        "traceback": brief(_tail(error), -_LONGEST),
        "during": during,
    }


def _tail(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-_FRAMES))
    except Exception:  # an exception class may break whoever looks at it
        return "<no traceback>"


def since(started: float) -> float:
    """Seconds since a reading of `perf_counter`, to a tenth of a microsecond."""
    return round(perf_counter() - started, 7)


class Steps:
    """The step that a replay is at, which an error is blamed on, and the seconds that each step has taken."""

    def __init__(self) -> None:
        self.now = ""
        self.seconds: dict[str, float] = {}

    def timed(self, step: str, action: Callable[[], Any]) -> Any:
        """Does what a step is, takes its time even if it fails, and returns what it returned."""
        self.now = step
        started = perf_counter()
        try:
            return action()
        finally:
            self.seconds[step] = since(started)
