"""A client of any OpenAI-compatible endpoint: retries with backoff, replies kept on disk by the full request.

The key comes from the environment and goes into one header; it is in no cache, no message and no representation.
"""

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval.membehave.replies import Replies
from forget_eval.packages import require
from forget_eval.redaction import redact

KEY_VARIABLE = "OPENAI_API_KEY"
OPTIONS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 512}
LONGEST = 100_000
"""Bytes of a reply that are read; a longer one is an error."""

IN_A_ROW = 20
"""After so many answers in a row that are no reply, the endpoint is taken to serve nobody, and the run stops."""

GREETING = [{"role": "user", "content": "Hello. Please say hello."}]
"""What an endpoint is asked that has sent nothing but no replies so far."""

_ATTEMPTS = 5
_FIRST_WAIT = 1.0  # seconds; doubles with every attempt
_LONGEST_WAIT = 60.0
_TIMEOUT = 120.0
_PASSING = frozenset({408, 409, 425, 429})  # and all 5xx: worth another try
_OUR_FAULT = frozenset({400, 413, 422})  # this one request is refused, the next may not be


class EndpointError(EnvironmentFault):
    """The endpoint is down, or takes no request of ours, or replies cannot be kept: the run stops and can go on."""


class ReplyError(Exception):
    """The endpoint answered this request with something that is no reply. Only the item at hand is lost."""


class _PassingError(Exception):
    """Nothing like a reply came; another try may bring one."""


class Chat:
    """Sends conversations to `<base_url>/chat/completions` and returns what the model says.

    Args:
        base_url: as other clients take it, such as http://127.0.0.1:8080/v1. A user or key in it is sent, not shown.
        model: the model's name at that endpoint.
        options: further fields of the request; None takes temperature 0 and at most 512 tokens.
        key_variable: the environment variable that holds the key; without it none is sent.
        cache: the folder of kept replies, None to keep none.
        fresh: whether replies that were kept before are asked for again.
        repeat: which repeat of a run this is; each has replies of its own.
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
        fresh: bool = False,
        repeat: int = 1,
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
        self._replies = Replies(cache, fresh)
        self._of_repeat = {"repeat": repeat} if repeat > 1 else {}
        self._key_variable = key_variable
        self._attempts, self._first_wait, self._timeout = attempts, first_wait, timeout
        self._no_replies = 0  # in a row
        self._has_replied = False
        key = os.environ.get(key_variable)
        if key and not (key.isascii() and key.isprintable()):
            raise UserError(f"${key_variable} holds characters that no key has, a line break perhaps. Set it anew.")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._open = partial(
            self._http.AsyncClient, timeout=timeout, headers=headers, verify=self._http.create_ssl_context()
        )

    def __repr__(self) -> str:
        return f"Chat({self.base_url!r}, {self.model!r})"

    def say(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The model's reply to a conversation of {role, content} messages; from the cache if it was asked before.

        Tried again is what may pass: no connection or a broken one, an answer that takes too long, HTTP 408, 409, 425,
        429 and 5xx. Any other answer is one, a page in place of a reply too, and asking again would bring it again.

        Raises:
            EndpointError: the endpoint cannot be reached, keeps failing or refuses us, does not even reply to a
                greeting, `IN_A_ROW` answers in a row were no replies, or the disk takes no reply.
            ReplyError: what came is no reply: not JSON, without a text, too long, or this request was refused.
        """
        payload = {"model": self.model, "messages": [_encodable(m) for m in messages], **self.options}
        request = {"url": self.base_url, "payload": payload, **self._of_repeat}
        kept = self._replies.get(request)
        if kept is not None:
            return kept
        reply: str = redact(self._ask(payload))  # an endpoint may echo the key
        if reply:  # one that says nothing may have more to say another time
            self._keep(request, reply)
        return reply

    def _keep(self, request: Mapping[str, Any], reply: str) -> None:
        try:
            self._replies.put(request, reply)
        except EnvironmentFault as error:
            raise EndpointError(f"a reply of the model at {self.host} cannot be kept: {error}") from error

    def _ask(self, payload: Mapping[str, Any]) -> str:
        retry = self._retry
        attempts = retry.Retrying(
            stop=retry.stop_after_attempt(self._attempts),
            wait=retry.wait_exponential(multiplier=self._first_wait, max=_LONGEST_WAIT),
            retry=retry.retry_if_exception_type(_PassingError),
            reraise=True,
        )
        try:
            reply = _text(attempts(self._send, payload))
        except _PassingError as error:
            raise self._stop(f"{error}, after {self._attempts} tries") from None
        except ReplyError as error:
            self._no_replies += 1
            if self._no_replies >= IN_A_ROW:
                raise self._stop(f"{self._no_replies} times in a row, {error}") from None
            if not self._has_replied and payload["messages"] != GREETING:
                self._greet()
            raise ReplyError(f"{self.host}: {error}") from None
        self._no_replies, self._has_replied = 0, True
        return reply

    def _greet(self) -> None:
        """Where nothing was a reply so far: raises EndpointError if a greeting gets none either."""
        try:
            self._ask({"model": self.model, "messages": GREETING, **self.options})
        except ReplyError as error:
            raise self._stop(f"{str(error).removeprefix(f'{self.host}: ')}, to a mere greeting too") from None

    def _send(self, payload: Mapping[str, Any]) -> bytes:
        """One exchange, in a loop of its own, since the caller may be in one: nothing else ends a head that drips."""
        from anyio.from_thread import start_blocking_portal

        with start_blocking_portal() as portal:
            body: bytes = portal.call(self._exchange, payload)
        return body

    async def _exchange(self, payload: Mapping[str, Any]) -> bytes:
        from anyio import fail_after

        try:
            with fail_after(self._timeout):
                async with self._open() as client, client.stream("POST", self._url, json=payload) as response:
                    self._check(response.status_code)
                    return await self._read(response)
        except TimeoutError:
            raise _PassingError("no whole answer in time") from None
        except self._http.RequestError as error:
            raise _PassingError(_reason(error)) from None

    def _check(self, status: int) -> None:
        if status in _PASSING or status >= 500:
            raise _PassingError(f"it answers with HTTP {status}")
        if status in _OUR_FAULT:
            raise ReplyError(f"it refuses this request with HTTP {status}")
        if not 200 <= status < 300:
            barred = status in (401, 403)
            hint = f"does ${self._key_variable} hold a valid key?" if barred else "are URL and model right?"
            raise self._stop(f"it answers with HTTP {status}; {hint}")

    async def _read(self, response: Any) -> bytes:
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > LONGEST:
                raise ReplyError(f"it sent a reply of more than {LONGEST:,} bytes")
        return bytes(body)

    def _stop(self, reason: str) -> EndpointError:
        return EndpointError(
            f"the model at {self.host} does not answer: {reason}. What was done is kept: run the same command to go on."
        )


def _endpoint(base_url: str) -> str:
    """Where conversations go: below the base URL, with its user and its query (some hosts want a version there)."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + "/chat/completions", fragment=""))


def _public(base_url: str) -> tuple[str, str]:
    """The URL without user, query and fragment, and its host with the port."""
    wanted = "the base URL of a chat model looks like https://host/v1 or http://127.0.0.1:8080/v1."
    try:
        parts = urlsplit(base_url)
        (parts.hostname or "").encode("idna")  # as it is looked up
    except ValueError:
        raise UserError(wanted) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not _is_plain(base_url):
        raise UserError(wanted)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise UserError(f"the base URL of a chat model at {parts.hostname} has a port that is no number.") from None
    host = f"[{parts.hostname}]{port}" if ":" in parts.hostname else f"{parts.hostname}{port}"
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")), host


def _is_plain(url: str) -> bool:
    return url.isprintable() and " " not in url


def _text(body: bytes) -> str:
    """The text of the first choice; a model that says nothing gives the empty text."""
    try:
        content = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        what = "nothing" if not body.strip() else "something that is no reply of a chat model"
        raise ReplyError(f"it sent {what}") from None
    if not isinstance(content, str | None):
        raise ReplyError("it sent a reply that is no text")
    return content or ""


def _encodable(message: Mapping[str, str]) -> dict[str, str]:
    """A message without lone surrogates, which UTF-8 lacks; a memory may recall one."""
    return {field: text.encode("utf-8", "replace").decode() for field, text in message.items()}


def _reason(error: Exception) -> str:
    """Why a connection failed, without the address, which may hold a key."""
    name = type(error).__name__
    if name.startswith("Connect"):
        return "no connection"
    return "no whole answer in time" if "Timeout" in name else f"the connection broke ({name})"
