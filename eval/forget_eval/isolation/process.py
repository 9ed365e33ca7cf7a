"""The run's side: a worker process, its pipes, and its end."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from time import monotonic
from typing import Any
from weakref import WeakSet

import numpy as np

import forget_datasets
import forget_eval
from forget_datasets.errors import EnvironmentFault
from forget_eval.guest import said
from forget_eval.isolation import guard
from forget_eval.isolation.messages import AdapterFault, fault, line
from forget_eval.protocols import Embedder
from forget_eval.quiet import at_home
from forget_eval.redaction import brief

_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_PACKAGES = {package.__name__: os.path.dirname(str(package.__file__)) for package in (forget_datasets, forget_eval)}
_ANSWERS = {"value", "lacking", "fault"}
_BLOCK = 1 << 16
_TAIL = 1500  # characters of what a worker printed last
_LONGEST_WAIT = 2.0**30  # milliseconds that the system can be asked to wait
_MOST_PRINTED = 1 << 24  # bytes kept of what a worker prints
_TO_DUMP, _TO_END = 3.0, 10.0  # seconds that a hung worker has to say where it hangs, and its watcher to end all
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")


@dataclass(frozen=True)
class Limits:
    """What a worker may take.

    Attributes:
        timeout: seconds that one call may last, without what the run's own embedder takes of them.
        memory_mb: megabytes of memory of its own (RLIMIT_DATA, which unlike RLIMIT_AS does not count what a library
            reserves and never uses); None for no limit but that the kernel, when memory is short, kills a worker first.
    """

    timeout: float = 600.0
    memory_mb: int | None = None


class Worker:
    """A process that holds one adapter. Whatever goes wrong in a call ends it, and everything that it has started.

    Args:
        interpreter: the command that runs a Python file.
        embed: answers what the worker wants embedded.
        limits: of each call, and of the process.

    Raises:
        EnvironmentFault: the interpreter cannot be run, or there is no room for pipes and files.
    """

    def __init__(self, interpreter: Sequence[str], embed: Embedder | None, limits: Limits) -> None:
        require_posix()
        self._embed, self._limits = embed, limits
        self._pid = 0
        self._received = bytearray()
        self._fds: dict[str, int] = {}
        self._scratch = ""
        try:
            self._scratch = tempfile.mkdtemp(prefix="forget-eval-")
            self._printed = tempfile.TemporaryFile("a+b", buffering=0)  # noqa: SIM115 (closed by `end`)
            self._process = self._start(interpreter)
        except OSError as error:
            self._close_pipes()
            rmtree(self._scratch, ignore_errors=True)
            raise EnvironmentFault(f"cannot start {interpreter[0]}: {error.strerror or error}") from error
        self._readable = select.poll()
        self._readable.register(self._fds["results"], select.POLLIN)
        os.set_blocking(self._fds["requests"], False)
        os.set_blocking(self._fds["vectors"], False)
        _started.add(self)
        self._pid = int(self.ask("greet")["pid"])

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return bool(self._fds)

    def ask(self, do: str, *arguments: Any, **keywords: Any) -> Any:
        """What the worker answers.

        Raises:
            NotImplementedError: the adapter raised it.
            AdapterFault: the adapter raised something else (`is_users` if that is a UserError), or the worker died,
                hung or was not understood, and is ended.
        """
        if not self.is_alive:
            raise AdapterFault("its worker has ended")
        message = self._exchange(line({"do": do, "arguments": arguments, "keywords": keywords}))
        if "value" in message:
            return message["value"]
        if "lacking" in message:
            raise NotImplementedError(message["lacking"])
        raised = fault(*(message["fault"][part] for part in ("kind", "message", "traceback")))
        raised.is_users = message["is_users"]
        raise raised

    def end(self) -> None:
        """Kills the worker with everything that it has started, and removes its folder. A second time nothing."""
        if not self.is_alive:
            return
        self._close_pipes()  # among them the lifeline, at the end of which its watcher acts
        try:
            self._process.wait(_TO_END)
        except subprocess.TimeoutExpired:
            for group in (self._pid, self._process.pid):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)
            self._process.wait()
        rmtree(self._scratch, ignore_errors=True)
        self._tail = self._read_tail()
        self._printed.close()

    def trim(self) -> None:
        """Forgets what was printed if that has become much."""
        if os.fstat(self._printed.fileno()).st_size > _MOST_PRINTED:
            self._printed.truncate(0)

    def _start(self, interpreter: Sequence[str]) -> subprocess.Popen[bytes]:
        theirs = {}
        for name, ours_writes in (("requests", True), ("vectors", True), ("results", False), ("lifeline", True)):
            read, write = os.pipe()
            self._fds[name], theirs[name] = (write, read) if ours_writes else (read, write)
        job = {
            "packages": _PACKAGES,
            "scratch": self._scratch,
            "pipes": theirs,
            "variables": dict.fromkeys(_TEMPORARY, self._scratch) | at_home(self._scratch) | _offline(),
            "memory": (self._limits.memory_mb or 0) << 20,
        }
        try:
            return subprocess.Popen(
                [*interpreter, str(_BOOTSTRAP), json.dumps(job)],
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=self._printed,
                pass_fds=tuple(theirs.values()),
                start_new_session=True,  # an interrupt at the terminal is for the run
            )
        finally:
            for descriptor in theirs.values():
                os.close(descriptor)

    def _exchange(self, request: bytes) -> dict[str, Any]:
        deadline = monotonic() + self._limits.timeout
        try:
            self._write("requests", request, deadline)
            return self._answer(deadline)
        except TimeoutError:
            failure = self._hung()
        except (EOFError, BrokenPipeError):
            failure = self._died()
        except BaseException:  # an interrupt, say: a call is under way, and nobody will read its answer
            self.end()
            raise
        raise failure

    def _answer(self, deadline: float) -> dict[str, Any]:
        """The answer to a call; what the worker wants embedded meanwhile, it gets."""
        while True:
            received = self._read_line(deadline)
            try:
                message = dict(json.loads(received))
                texts = message.get("embed")
            except (ValueError, TypeError):
                message, texts = {}, None
            if texts is None and not message.keys() & _ANSWERS:
                raise self._garbled(received)
            if texts is None:
                return message
            started = monotonic()
            answer = line({**self._embedded(texts), "number": message.get("number")})
            deadline += monotonic() - started
            self._write("vectors", answer, deadline)

    def _embedded(self, texts: list[str]) -> dict[str, Any]:
        if self._embed is None:
            return {"error": "there is none"}
        try:
            vectors = np.ascontiguousarray(self._embed(texts), dtype="<f4")
        except Exception as error:  # the system has asked for it, and may live with the answer
            return {"error": said(error)}
        return {"vectors": b64encode(vectors.tobytes()).decode("ascii"), "shape": vectors.shape}

    def _read_line(self, deadline: float) -> bytes:
        end, searched = -1, 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if not self._readable.poll(_milliseconds(deadline)):
                raise TimeoutError
            block = os.read(self._fds["results"], _BLOCK)
            if not block:
                raise EOFError
            self._received += block
        found = bytes(self._received[:end])
        del self._received[: end + 1]
        return found

    def _write(self, pipe: str, content: bytes, deadline: float) -> None:
        rest = memoryview(content)
        while rest:
            try:
                rest = rest[os.write(self._fds[pipe], rest) :]
            except BlockingIOError:
                writable = select.poll()
                writable.register(self._fds[pipe], select.POLLOUT)
                if not writable.poll(_milliseconds(deadline)):
                    raise TimeoutError from None

    def _hung(self) -> AdapterFault:
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGABRT)  # it prints where it hangs
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_TO_DUMP)
        self.end()
        what = f"nothing came from its worker for {self._limits.timeout:g} seconds, and it was ended"
        return fault("WorkerTimeout", what, self._tail)

    def _died(self) -> AdapterFault:
        try:
            how = ending(self._process.wait(_TO_END))
        except subprocess.TimeoutExpired:
            how = "closed its connection, and was ended"
        self.end()
        return fault("WorkerDied", f"its worker {how}", self._tail)

    def _garbled(self, received: bytes) -> AdapterFault:
        self.end()
        what = f"its worker wrote {brief(repr(received), 80)} where an answer was due, and was ended"
        return fault("WorkerDied", what, self._tail)

    def _read_tail(self) -> str:
        size = self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, size - 4 * _TAIL))
        return brief(self._printed.read().decode("utf-8", "replace"), -_TAIL).strip()

    def _close_pipes(self) -> None:
        while self._fds:
            os.close(self._fds.popitem()[1])


_started: "WeakSet[Worker]" = WeakSet()


def _let_go() -> None:
    """A child that somebody forks must not keep a worker alive, nor speak to it; it starts its own."""
    for worker in list(_started):
        worker._close_pipes()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_let_go)


def require_posix() -> None:
    """Raises EnvironmentFault on Windows, which has neither the pipes nor the process groups."""
    if sys.platform == "win32":
        raise EnvironmentFault("workers and environments of their own need Linux or macOS (WSL will do).")


def this_interpreter() -> list[str]:
    """The command that runs a file with the Python that runs this, without putting the file's folder on the path."""
    return [sys.executable, "-P"]


def _offline() -> dict[str, str]:
    """Nothing is fetched while a system is measured, unless the user has said so."""
    return {"HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE", "1")}


def _milliseconds(deadline: float) -> int:
    return max(0, int(min(1000 * (deadline - monotonic()), _LONGEST_WAIT)) + 1)


def ending(status: int) -> str:
    """How a process ended, by its return code, as the end of a sentence."""
    return guard.ending(status) + (" (is memory short?)" if status == -signal.SIGKILL else "")
