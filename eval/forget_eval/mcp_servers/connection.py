"""A connection to an MCP server: the SDK's client in a thread of its own, and the server's end when it is closed."""

import json
import logging
import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from typing import Any

import anyio
import mcp
import pydantic
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, Tool

from forget_eval.guest import said
from forget_eval.isolation import guard
from forget_eval.mcp_servers import answers
from forget_eval.redaction import brief

_TAIL = 1500  # characters of what a server printed last
_TAIL_LINES = 8  # of them in a message of ours
_LONGEST = 200  # characters of a line that was no message
_LONGEST_WORDS = 4000  # characters of an error that a server answers
_MOST_PROBLEMS = 3  # of a message that does not have the form that it should
_CLOSED = "Connection closed"  # the SDK's message for a connection that was lost
_PROBE = 5.0  # seconds that a server has to show that it still speaks
_HANDSHAKE = "the handshake"
Timeouts = tuple[float, float]
_Transport = AbstractAsyncContextManager[Any]

logging.getLogger("mcp").addHandler(logging.NullHandler())  # what it would log on stderr, errors of ours say


class ServerFault(Exception):
    """A server cannot be reached, died, hung, or does not speak the protocol. The connection is of no use any more."""


class LastWords(Exception):
    """The end of what a server printed on stderr; the cause of a `ServerFault`."""


def described(error: ServerFault) -> str:
    """An error with the server's last words, a line each, as a terminal may be given them."""
    from forget_eval.report.results import printable

    tail = str(error.__cause__ or "").strip().splitlines()[-_TAIL_LINES:]
    return "\n    ".join(map(printable, [str(error), *tail]))


class Connection:
    """One server, from its start to its end.

    Args:
        transport: makes the SDK's transport.
        timeouts: seconds for the start and the handshake, and for each call.
        stderr: the file that holds what the server prints, None if it is elsewhere.

    Attributes:
        tools: what it offers, by name.
        server, version: its name and version, as it gives them.
        protocol: the version of the protocol that was agreed on.

    Raises:
        ServerFault: there is no server, or it does not answer as one.
    """

    def __init__(self, transport: Callable[[], _Transport], timeouts: Timeouts, stderr: Any = None) -> None:
        (self._start_timeout, self._timeout), self._stderr = timeouts, stderr
        self._junk = self._garbled = ""
        self._scope: anyio.CancelScope | None = None
        self._fault: ServerFault | None = None
        self.tools: dict[str, Tool] = {}
        self.server = self.version = self.protocol = ""
        self._open = ExitStack()
        if stderr is not None:
            self._open.callback(stderr.close)
        self._portal: BlockingPortal = self._open.enter_context(start_blocking_portal(name="mcp"))
        self._living: Future[None] | None = None
        try:
            self._living, self._stop = self._portal.start_task(self._live, transport)
        except BaseException as error:
            failure = self._failed(error, _HANDSHAKE)
            self.close()
            if isinstance(error, KeyboardInterrupt):
                raise
            raise failure from failure.__cause__

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._fault is None

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The value of what a tool answers (see `answers`).

        Raises:
            AnswerFault: it answers an error.
            ServerFault: it died, hung or was not understood, and is ended.
        """
        if self._fault is not None:
            raise ServerFault(str(self._fault)) from self._fault.__cause__
        try:
            result = self._portal.call(self._call, tool, dict(arguments))
        except KeyboardInterrupt:
            self.close()
            raise
        except (mcp.MCPError, RuntimeError, ValueError) as error:
            if self._portal.call(self._still_speaks):
                raise answers.AnswerFault(_words(error)) from None
            self._give_up(error, tool)
        except BaseException as error:
            self._give_up(error, tool)
        return answers.value(result.content, result.structured_content, result.is_error)

    def close(self) -> None:
        """Ends the connection, and the server if it was started for it. A second time nothing."""
        self._fault = self._fault or ServerFault("it was closed")
        self._end()
        self._open.close()

    async def _live(self, transport: Callable[[], _Transport], *, task_status: Any) -> None:
        """The client's whole life, in one task, as its scopes want it."""
        stop = anyio.Event()
        with anyio.CancelScope(deadline=anyio.current_time() + self._start_timeout) as self._scope:
            async with mcp.Client(transport(), message_handler=self._heard, cache=None) as client:
                self._client = client
                await self._learn()
                self._scope.deadline = math.inf
                self._scope = None
                task_status.started(stop)
                await stop.wait()
                return
        raise TimeoutError

    async def _learn(self) -> None:
        info = self._client.server_info
        if info is not None:
            self.server, self.version = info.name, info.version
        self.protocol = self._client.protocol_version
        cursor = None
        while True:
            page = await self._client.list_tools(cursor=cursor)
            self.tools |= {tool.name: tool for tool in page.tools}
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _call(self, tool: str, arguments: dict[str, Any]) -> mcp.types.CallToolResult:
        with anyio.CancelScope(deadline=anyio.current_time() + self._timeout) as self._scope:
            return await self._client.call_tool(tool, arguments)
        raise TimeoutError

    async def _still_speaks(self) -> bool:
        """Whether an error was an answer, and not the end of the connection."""
        with anyio.move_on_after(_PROBE), suppress(Exception):
            await self._client.list_tools()
            return True
        return False

    async def _heard(self, message: Any) -> None:
        """Lines that are no messages: talk is let pass, what was meant as a message ends the call at once."""
        if not isinstance(message, Exception):
            return
        self._junk, is_answer = _offending(message)
        if is_answer:
            self._garbled = self._junk
            if self._scope is not None:
                self._scope.cancel()

    def _give_up(self, error: BaseException, tool: str) -> None:
        self._fault = self._failed(error, tool)
        raise self._fault from self._fault.__cause__

    def _failed(self, error: BaseException, during: str) -> ServerFault:
        """Ends the server and says what was wrong."""
        self._end()
        tail, ending = guard.parted(self._tail())
        tail = tail.strip()
        what = self._reason(error, during, ending)
        if self._junk and not self._garbled:
            what += f"; on its output it had written {brief(self._junk, _LONGEST)!r}"
        fault = ServerFault(what)
        fault.__cause__ = LastWords(f"\n{tail}") if tail else None
        return fault

    def _reason(self, error: BaseException, during: str, ending: str) -> str:
        """What was wrong. How a server ended says something only if that is why: else we have ended it since."""
        error = _first(error)
        if self._garbled:
            return f"the server wrote {brief(self._garbled, _LONGEST)!r} where a message was due"
        if isinstance(error, TimeoutError | CancelledError):
            seconds = self._start_timeout if during == _HANDSHAKE else self._timeout
            if during == _HANDSHAKE and self.tools:
                return f"the server's list of tools, {len(self.tools)} so far, had not ended after {seconds:g} seconds"
            return f"nothing came from the server for {seconds:g} seconds ({during}), and it was given up"
        if _is_loss(error) and ending:
            return f"the server {ending} ({during})"
        if isinstance(error, mcp.MCPError) and not _is_loss(error):
            return f"the server answered an error ({during}): {_words(error)}"
        if isinstance(error, pydantic.ValidationError):
            return f"what the server answered cannot be read ({during}): {_words(error)}"
        if during == _HANDSHAKE:
            what = "cannot be reached" if self._stderr is None else "does not speak as it should"
            return f"the server {what}: {_words(error)}"
        return f"the connection to the server ended ({during}): {_words(error)}"

    def _end(self) -> None:
        if self._living is None:
            return
        living, self._living = self._living, None
        with suppress(RuntimeError):
            self._portal.call(self._stop.set)
        with suppress(Exception, CancelledError):
            living.result()

    def _tail(self) -> str:
        if self._stderr is None or self._stderr.closed:
            return ""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - 4 * _TAIL))
        return brief(self._stderr.buffer.read().decode("utf-8", "replace"), -_TAIL).rstrip()


def to_command(
    command: Sequence[str], variables: Mapping[str, str], folder: str | None, timeouts: Timeouts
) -> Connection:
    """Starts a command and connects to it over its stdin and stdout.

    Args:
        command: with its arguments.
        variables: its whole environment.
        folder: where it runs; None for the current one.
        timeouts: seconds for the start and the handshake, and for each call.

    Raises:
        ServerFault: it cannot be run, or is no MCP server.
    """
    guarded = [sys.executable, "-I", "-S", str(guard.__file__), *command]
    parameters = mcp.StdioServerParameters(
        command=guarded[0], args=guarded[1:], env=dict(variables), cwd=folder, encoding_error_handler="replace"
    )
    stderr = tempfile.TemporaryFile("a+", encoding="utf-8", errors="replace")  # noqa: SIM115 (closed by `close`)
    return Connection(lambda: mcp.stdio_client(parameters, errlog=stderr), timeouts, stderr)


def to_url(url: str, headers: Mapping[str, str], timeouts: Timeouts) -> Connection:
    """Connects over streamable HTTP.

    Args:
        url: of the server's endpoint.
        headers: sent with each request.
        timeouts: seconds for the start and the handshake, and for each call.

    Raises:
        ServerFault: there is no MCP server.
    """
    import httpx2

    def transport() -> _Transport:
        limits = httpx2.Timeout(timeouts[1], read=None)
        return streamable_http_client(url, http_client=httpx2.AsyncClient(headers=dict(headers), timeout=limits))

    return Connection(transport, timeouts)


def _offending(error: Exception) -> tuple[str, bool]:
    """What could not be read as a message, and whether it was meant as an answer: then no other will come."""
    inputs = [problem["input"] for problem in error.errors()] if isinstance(error, pydantic.ValidationError) else []
    for found in inputs:
        if isinstance(found, dict):  # a line that was JSON
            return json.dumps(found, ensure_ascii=False), "jsonrpc" in found and "method" not in found
    line = next((found for found in inputs if isinstance(found, str)), str(error))
    return line, '"jsonrpc"' in line


def _first(error: BaseException) -> BaseException:
    """Of a group of errors the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_loss(error: BaseException) -> bool:
    """Whether the connection was lost; a server may use the SDK's number for it in an answer of its own."""
    if isinstance(error, mcp.MCPError):
        return error.code == CONNECTION_CLOSED and error.message == _CLOSED
    return isinstance(error, OSError | anyio.BrokenResourceError | anyio.ClosedResourceError | anyio.EndOfStream)


def _words(error: BaseException) -> str:
    """An error in the server's words; what has another form than it should, by its place and what stands there."""
    error = _first(error)
    if isinstance(error, pydantic.ValidationError):
        return "; ".join(map(_problem, error.errors()[:_MOST_PROBLEMS]))
    if not isinstance(error, mcp.MCPError):
        return said(error)
    data = error.data
    if isinstance(data, dict):
        data = data.get("message") or data.get("detail") or data
    return brief(f"{error.message}: {data}" if data else error.message, _LONGEST_WORDS)


def _problem(found: Mapping[str, Any]) -> str:
    place = ".".join(map(str, found["loc"]))
    return f"{place}: {found['msg']}, and it is {brief(json.dumps(found['input'], default=str), _LONGEST)}"
