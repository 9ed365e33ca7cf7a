"""How what a system returned or raised is written down: checked, as plain data, without secrets."""

import operator
import traceback
from time import perf_counter

from forget_eval.redaction import redact

_FRAMES = 6  # of a traceback, from its end
_LONGEST = 4000  # characters of a message or traceback
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
    for text in answer:
        if not isinstance(text, str):
            raise BadAnswerError(f"recall_texts returned a list that holds {noun(text)}, not texts alone")
    if len(answer) > k:
        raise BadAnswerError(f"recall_texts returned {len(answer)} texts, more than k = {k}")
    return [str.__str__(text) for text in answer]


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
        return str(redact(value[:_LONGEST]))
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except Exception:
        return f"<{type(value).__name__}>"
    return number if -_INT64 <= number < _INT64 else "<int>"


def described(error: BaseException, during: str) -> dict[str, str]:
    """An error as {kind, message, traceback, during}: the tail of the traceback, secrets redacted."""
    try:
        message = str(error)
    except Exception:
        message = "<no message>"
    tail = "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-_FRAMES))
    found = {"kind": type(error).__name__, "message": message[:_LONGEST], "traceback": tail[-_LONGEST:]}
    return {**{name: str(redact(text)) for name, text in found.items()}, "during": during}


def since(started: float) -> float:
    """Seconds since a reading of `perf_counter`, to a tenth of a microsecond."""
    return round(perf_counter() - started, 7)
