"""Keeps secrets out of files, logs and the terminal."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "[redacted]"
_SECRET_NAME = re.compile(
    r"(?:^|[_\W])(?:api_?key|key|token|secret|passw(?:or)?d|pwd|passphrase|credentials?|auth|authorization|bearer)(?:$|[_\W\d])",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_USER_IN_URL = re.compile(
    r"(?<=://)(?:[^/\s:@]*:(?!\d+/)[^\s\"'<>]{0,200}|[^/\s]+)(?=@)"
)  # a password may hold "/" or "@"
_SECRET_IN_QUERY = re.compile(
    r"([?&;](?:[\w.-]*[_.-])?(?:key|token|secret|password|sig|signature|auth)=)[^&#\s\"']+", re.I
)
_FOLDERS = {"PWD", "OLDPWD"}  # every shell has them, and they hold no password
_LONG, _SHORTEST = 8, 4
_MOST = 1 << 20  # characters that are looked through for a brief text
_AT_START = dict(os.environ)  # a system that has taken its key from the environment may remove it there


def redact(value: Any) -> Any:
    """A copy of plain data in which secrets are hidden.

    It is meant for what is free text: messages and tracebacks, the configuration that a system declares, URLs, what an
    operation returned, what goes to the terminal. Fields by which files and rows are found and compared (tasks, names,
    paths, ids, hashes, versions, statuses) must not go through it: a password may be a common word, and a run whose
    task reads "[redacted]" is lost.

    Hidden are
    - texts under names like `api_key`;
    - users and keys in URLs;
    - the values of environment variables with such names, now or when this process began, and as URLs, JSON and Python
      write them: one of eight characters and more wherever it stands, common word or not; one of four to seven where it
      stands alone, and only if it mixes letters, digits and signs, for "test" or "8080" as a password is also a word of
      any message; a shorter one never.
    """
    if isinstance(value, str):
        return _redact_text(value)
    if isinstance(value, Mapping):
        return {k: HIDDEN if _is_secret(k) and isinstance(v, str) else redact(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [redact(v) for v in value]
    return value


def brief(text: str, length: int) -> str:
    """The first characters of a text, or with a negative `length` the last ones, without secrets.

    They are hidden before the text is cut, for half a secret would not be known as one.
    """
    whole = _redact_text(text[:_MOST] if length > 0 else text[-_MOST:])
    return whole[:length] if length > 0 else whole[length:]


def _redact_text(text: str) -> str:
    secrets = _in_environment(_environment())
    if secrets is not None:
        text = secrets.sub(HIDDEN, text)
    return _SECRET_IN_QUERY.sub(rf"\1{HIDDEN}", _USER_IN_URL.sub(HIDDEN, text))


def _is_secret(name: object) -> bool:
    return isinstance(name, str) and _SECRET_NAME.search(_CAMEL.sub("_", name)) is not None


def _environment() -> tuple[str, ...]:
    pairs = (*_AT_START.items(), *os.environ.items())
    named = ((k, v) for k, v in pairs if len(v) >= _SHORTEST and k not in _FOLDERS)
    return tuple(v for k, v in named if _is_secret(k) and (len(v) >= _LONG or not (v.isalpha() or v.isdigit())))


@cache
def _in_environment(secrets: tuple[str, ...]) -> re.Pattern[str] | None:
    """Finds each of the secrets, the longest first, for one may hold another."""
    ordered = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
    parts = [re.escape(s) if len(s) >= _LONG else rf"(?<!\w){re.escape(s)}(?!\w)" for s in ordered]
    return re.compile("|".join(parts)) if parts else None


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, and as it stands in a URL, in JSON, and in a Python representation."""
    yield secret
    plain = secret.encode("utf-8", "surrogateescape")  # as the variable's bytes are
    yield from (quote(plain, safe=""), quote_plus(plain))
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1])
