"""What travels between a run and its worker: JSON, one object a line. Standard library only.

Values keep what a transcript shows of them. Of a foreign object that is the name of its type, so that an answer which
breaks the protocol is refused with the same words wherever the system runs.
"""

import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from forget_datasets.errors import DataFault, EnvironmentFault, UserError
from forget_datasets.rows import Message, Session

_ENCODER = json.JSONEncoder(separators=(",", ":"))  # made before a system can patch `json`
_INT64 = 2**63
_USERS = {kind.__name__: kind for kind in (EnvironmentFault, DataFault)}
_LAST = 8  # lines of what a worker printed


class AdapterFault(Exception):
    """Something that a system raised in its worker, or the end of the worker itself.

    Attributes:
        is_users: whether it was a UserError there.
    """

    is_users = False


class WorkerTraceback(Exception):
    """Where it was raised, or what the worker printed last; the cause of an `AdapterFault`."""


def line(message: Mapping[str, Any]) -> bytes:
    """A message as bytes. Lone surrogates, which UTF-8 lacks, travel as escapes."""
    return _ENCODER.encode(message).encode("ascii") + b"\n"


def pack(value: object, containers: bool = True) -> Any:
    """What a method returned, as JSON: scalars, and lists of them; of anything else the name of its type."""
    if value is None or type(value) in (bool, float):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if containers and isinstance(value, list | tuple):
        items = [pack(item, containers=False) for item in value]
        return items if type(value) is list else _foreign(value, items)
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except Exception:
        return _foreign(value)
    if not -_INT64 <= number < _INT64:
        return _foreign(value)
    return number if type(value) is int else _foreign(value, number)


def unpack(packed: Any) -> Any:
    """The value again; in place of a foreign object one whose type has the same name."""
    if isinstance(packed, list):
        return [unpack(item) for item in packed]
    if not isinstance(packed, dict):
        return packed
    value = unpack(packed["value"])
    base = object if value is None else type(value)
    stand_in = type(packed["type"], (base,), {})
    return stand_in() if value is None else stand_in(value)


def pack_sessions(sessions: Sequence[Session]) -> list[dict[str, Any]]:
    """A history as JSON."""
    return [asdict(session) for session in sessions]


def unpack_sessions(packed: Sequence[Mapping[str, Any]]) -> list[Session]:
    """The history again."""
    return [Session(s["session_id"], s["start_time"], [Message(**m) for m in s["messages"]]) for s in packed]


def fault(kind: str, message: str, traceback: str) -> AdapterFault:
    """The exception that stands for one raised elsewhere: its type has the same name, its cause says where."""
    error: AdapterFault = type(kind, (AdapterFault,), {"__module__": "builtins"})(message)
    error.__cause__ = WorkerTraceback(f"\n{traceback}") if traceback else None
    return error


def users(error: AdapterFault) -> UserError:
    """The UserError that a fault stands for, of the kind that it was there: a command's exit code follows from it."""
    return _USERS.get(type(error).__name__, UserError)(str(error))


def last_words(error: AdapterFault) -> str:
    """The end of what the worker printed, or of where the adapter failed, to stand below a message; often empty."""
    lines = str(error.__cause__ or "").strip().splitlines()[-_LAST:]
    return "".join(f"\n    {each}" for each in lines)


def _foreign(value: object, content: Any = None) -> dict[str, Any]:
    return {"type": type(value).__name__, "value": content}
