"""Keeps secrets out of files, logs and the terminal."""

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

HIDDEN = "[redacted]"
_SECRET_NAME = re.compile(
    r"(?:^|[_\W])(?:api_?key|key|token|secret|passw(?:or)?d|pwd|passphrase|credentials?|auth|authorization|bearer)(?:$|[_\W\d])",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_USER_IN_URL = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_SECRET_IN_QUERY = re.compile(
    r"([?&;](?:[\w.-]*[_.-])?(?:key|token|secret|password|sig|signature|auth)=)[^&#\s\"']+", re.I
)
_FOLDERS = {"PWD", "OLDPWD"}  # every shell has them, and they hold no password
_SHORTEST = 8  # a shorter value of the environment would blot out ordinary words


def redact(value: Any) -> Any:
    """A copy of plain data in which secrets are hidden.

    Hidden are values under names like `api_key`, users and keys in URLs, and the values of environment variables with
    such names, wherever they stand.
    """
    if isinstance(value, str):
        return _redact_text(value)
    if isinstance(value, Mapping):
        return {k: HIDDEN if _is_secret(k) and isinstance(v, str) else redact(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [redact(v) for v in value]
    return value


def _redact_text(text: str) -> str:
    for secret in _environment():
        text = text.replace(secret, HIDDEN)
    return _SECRET_IN_QUERY.sub(rf"\1{HIDDEN}", _USER_IN_URL.sub(HIDDEN, text))


def _is_secret(name: object) -> bool:
    return isinstance(name, str) and _SECRET_NAME.search(_CAMEL.sub("_", name)) is not None


def _environment() -> tuple[str, ...]:
    named = ((k, v) for k, v in os.environ.items() if len(v) >= _SHORTEST and k not in _FOLDERS)
    return _longest_first(tuple(v for k, v in named if _is_secret(k)))


@cache
def _longest_first(secrets: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(secrets), key=len, reverse=True))
