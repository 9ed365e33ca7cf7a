"""A client of any OpenAI-compatible endpoint: retries with backoff, replies kept on disk by the full request.

The key comes from the environment and goes into one header; it is in no cache, no message and no representation.
"""

import json
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.rows import canonical
from forget_eval.packages import require
from forget_eval.redaction import redact

KEY_VARIABLE = "OPENAI_API_KEY"
OPTIONS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 512}
LONGEST = 100_000
"""Bytes of a reply that are read; a longer one is an error."""

_ATTEMPTS = 5
_FIRST_WAIT = 1.0  # seconds; doubles with every attempt
_LONGEST_WAIT = 60.0
_TIMEOUT = 120.0
_PASSING = frozenset({408, 409, 425, 429})  # and all 5xx: worth another try
_OUR_FAULT = frozenset({400, 413, 422})  # this one request is refused, the next may not be


class EndpointError(EnvironmentFault):
    """The endpoint is down, or takes no request of ours. The run stops and can be resumed."""


class ReplyError(Exception):
    """The endpoint answered this request with something that is no reply. Only the item at hand is lost."""


class _PassingError(Exception):
    """Worth another try. `down` says whether nothing like a reply came at all."""

    def __init__(self, reason: str, down: bool) -> None:
        super().__init__(reason)
        self.down = down


class Chat:
    """Sends conversations to `<base_url>/chat/completions` and returns what the model says.

    Args:
        base_url: as other clients take it, such as http://127.0.0.1:8080/v1. A user or key in it is sent, not shown.
        model: the model's name at that endpoint.
        options: further fields of the request; None takes temperature 0 and at most 512 tokens.
        key_variable: the environment variable that holds the key; without it none is sent.
        cache: the folder of kept replies, None to keep none.
        attempts, first_wait, timeout: how often a request is tried, seconds before the second try (doubling, at most
            60), and seconds that a try may take.

    Raises:
        UserError: the URL is not http or https, or a package is missing.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        options: Mapping[str, Any] | None = None,
        key_variable: str = KEY_VARIABLE,
        cache: Path | None = None,
        attempts: int = _ATTEMPTS,
        first_wait: float = _FIRST_WAIT,
        timeout: float = _TIMEOUT,
    ) -> None:
        self._http = require("httpx2", "chat", "a chat model")
        self._retry = require("tenacity", "chat", "a chat model")
        self.model = model
        self.base_url, self.host = _public(base_url)
        self.options = dict(OPTIONS if options is None else options)
        self._url = _endpoint(base_url)
        self._cache = cache
        self._key_variable = key_variable
        self._attempts, self._first_wait = attempts, first_wait
        key = os.environ.get(key_variable)
        if key and not (key.isascii() and key.isprintable()):
            raise UserError(f"${key_variable} holds characters that no key has, a line break perhaps. Set it anew.")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = self._http.Client(timeout=timeout, headers=headers)

    def __repr__(self) -> str:
        return f"Chat({self.base_url!r}, {self.model!r})"

    def say(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The model's reply to a conversation of {role, content} messages; from the cache if it was asked before.

        Raises:
            EndpointError: the endpoint cannot be reached, keeps failing, or refuses us.
            ReplyError: what came is no reply: not JSON, without a text, too long, or this request was refused.
        """
        payload = {"model": self.model, "messages": [dict(m) for m in messages], **self.options}
        request = {"url": self.base_url, "payload": payload}
        kept = self._kept(request)
        if kept is not None:
            return kept
        reply: str = redact(self._ask(payload))  # an endpoint may echo the key
        self._keep(request, reply)
        return reply

    def close(self) -> None:
        """Closes connections."""
        self._client.close()

    def _ask(self, payload: Mapping[str, Any]) -> str:
        retry = self._retry
        attempts = retry.Retrying(
            stop=retry.stop_after_attempt(self._attempts),
            wait=retry.wait_exponential(multiplier=self._first_wait, max=_LONGEST_WAIT),
            retry=retry.retry_if_exception_type(_PassingError),
            reraise=True,
        )
        try:
            reply: str = attempts(self._send, payload)
        except _PassingError as error:
            if error.down:
                raise self._stop(f"{error}, after {self._attempts} tries") from None
            raise ReplyError(f"{self.host}: {error}") from None
        return reply

    def _send(self, payload: Mapping[str, Any]) -> str:
        try:
            with self._client.stream("POST", self._url, json=payload) as response:
                self._check(response.status_code)
                body = self._read(response)
        except self._http.RequestError as error:
            raise _PassingError(_reason(error), down=True) from None
        return _text(body)

    def _check(self, status: int) -> None:
        if status in _PASSING or status >= 500:
            raise _PassingError(f"it answers with HTTP {status}", down=True)
        if status in _OUR_FAULT:
            raise ReplyError(f"{self.host} refuses this request with HTTP {status}")
        if status != 200:
            barred = status in (401, 403)
            hint = f"does ${self._key_variable} hold a valid key?" if barred else "are URL and model right?"
            raise self._stop(f"it answers with HTTP {status}; {hint}")

    def _read(self, response: Any) -> bytes:
        body = bytearray()
        for part in response.iter_bytes():
            body += part
            if len(body) > LONGEST:
                raise ReplyError(f"{self.host} sent a reply of more than {LONGEST:,} bytes")
        return bytes(body)

    def _stop(self, reason: str) -> EndpointError:
        return EndpointError(
            f"the model at {self.host} does not answer: {reason}. What was done is kept: run the same command to go on."
        )

    def _kept(self, request: Mapping[str, Any]) -> str | None:
        if self._cache is None:
            return None
        try:
            kept = json.loads(_place(self._cache, request).read_bytes())
            return str(kept["reply"]) if kept["request"] == request else None
        except (OSError, ValueError, KeyError, TypeError):  # absent or damaged: ask again
            return None

    def _keep(self, request: Mapping[str, Any], reply: str) -> None:
        if self._cache is None:
            return
        from forget_eval.runs import write_json

        path = _place(self._cache, request)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"request": request, "reply": reply})


def _place(folder: Path, request: Mapping[str, Any]) -> Path:
    key = sha256(canonical(request)).hexdigest()
    return folder / key[:2] / f"{key}.json"


def _endpoint(base_url: str) -> str:
    """Where conversations go: below the base URL, with its user and its query (some hosts want a version there)."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + "/chat/completions", fragment=""))


def _public(base_url: str) -> tuple[str, str]:
    """The URL without user, query and fragment, and its host with the port."""
    wanted = "the base URL of a chat model looks like https://host/v1 or http://127.0.0.1:8080/v1."
    try:
        parts = urlsplit(base_url)
    except ValueError:
        raise UserError(wanted) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(wanted)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise UserError(f"the base URL of a chat model at {parts.hostname} has a port that is no number.") from None
    host = f"[{parts.hostname}]{port}" if ":" in parts.hostname else f"{parts.hostname}{port}"
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")), host


def _text(body: bytes) -> str:
    """The text of the first choice; a model that says nothing gives the empty text."""
    try:
        choice = json.loads(body)["choices"][0]
        content = choice["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise _PassingError("it sent something that is no reply of a chat model", down=False) from None
    if content is None:
        return ""
    if not isinstance(content, str):
        raise _PassingError("it sent a reply that is no text", down=False)
    return content


def _reason(error: Exception) -> str:
    """Why a connection failed, without the address, which may hold a key."""
    name = type(error).__name__
    if name.startswith("Connect"):
        return "no connection"
    return "no whole answer in time" if "Timeout" in name else f"the connection broke ({name})"
