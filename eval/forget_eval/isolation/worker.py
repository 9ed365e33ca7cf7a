"""The worker's side: makes the adapter that it is told to make, and calls its methods as they are asked for.

Imports the standard library and what else is light of ours: the environment may hold nothing but the system.
"""

import faulthandler
import json
import os
import sys
import warnings
from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import count
from threading import Lock
from typing import Any

from forget_datasets.errors import UserError
from forget_eval import adapters
from forget_eval.adapters.declarations import describe
from forget_eval.isolation.messages import line, pack, unpack_sessions
from forget_eval.recording import described

_METHODS = (
    *("reset", "inscribe", "inscribe_many", "recall_texts", "supersede", "release", "purge"),
    *("ingest", "ask", "forget", "close", "stored_in", "maintain"),
)


def serve(requests: int, vectors: int, results: int) -> None:
    """Answers requests, one at a time, until the run closes the pipe. The three are file descriptors."""
    _guard_output()
    run = _Run(vectors, results)
    adapter = _Adapter(run)
    here = os.getpid()
    with os.fdopen(requests, "rb") as lines:
        for request in map(json.loads, lines):
            answer = _answer(adapter, request)
            if os.getpid() != here:  # a child that the system forked came back instead of ending
                os._exit(0)
            run.send(answer)


def _answer(adapter: "_Adapter", request: dict[str, Any]) -> dict[str, Any]:
    try:
        method: Callable[..., Any] = getattr(adapter, "do_" + request["do"])
        return {"value": method(*request.get("arguments", ()), **request.get("keywords", {}))}
    except NotImplementedError as error:
        return {"lacking": str(error)}
    except BaseException as error:  # a system may even exit the interpreter; the worker stays
        return {"fault": described(error, ""), "is_users": isinstance(error, UserError)}


class _Run:
    """The other end. Any thread of the system may ask for vectors; those have a pipe of their own."""

    def __init__(self, vectors: int, results: int) -> None:
        self._vectors = os.fdopen(vectors, "rb")
        self._results = results
        self._writing, self._asking = Lock(), Lock()
        self._questions = count()
        self._owner = os.getpid()

    def send(self, message: dict[str, Any]) -> None:
        """Writes one whole line."""
        rest = memoryview(line(message))
        with self._writing:
            while rest:
                rest = rest[os.write(self._results, rest) :]

    def embed(self, texts: list[str]) -> dict[str, Any]:
        """The run's answer: shape and vectors."""
        if os.getpid() != self._owner:
            raise RuntimeError("a forked child of the worker cannot ask for vectors")
        with self._asking:
            number = next(self._questions)
            self.send({"embed": texts, "number": number})
            answer = self._answer_to(number)
        if "error" in answer:
            raise RuntimeError(f"the embedder failed: {answer['error']}")
        return answer

    def _answer_to(self, number: int) -> dict[str, Any]:
        """The next answer to this question; a system may have left an earlier one, say by an alarm, or half of it."""
        for received in iter(self._vectors.readline, b""):
            with suppress(ValueError):
                answer: dict[str, Any] = json.loads(received)
                if answer["number"] == number:
                    return answer
        raise EOFError("the run has ended")


class _RunsEmbedder:
    """The embedder of the run, which computes and keeps the vectors there."""

    def __init__(self, run: _Run, name: str, dim: int) -> None:
        self.name, self.dim = name, dim
        self._run = run

    def __call__(self, texts: Sequence[str]) -> Any:
        """Vectors of unit length, a float32 array of shape (len(texts), dim)."""
        import numpy as np

        if isinstance(texts, str):
            raise TypeError("an embedder takes a list of texts; put the single text in a list")
        answer = self._run.embed(list(texts))
        flat = np.frombuffer(bytearray(b64decode(answer["vectors"])), dtype="<f4")
        return flat.reshape(answer["shape"])


class _Adapter:
    """What can be asked for: every `do_` method."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._memory: Any = None
        self._states: dict[int, object] = {}
        self._numbers = count()

    def do_inspect(self, name: str, kinds: Sequence[Sequence[str]]) -> dict[str, Any]:
        """What can be said of the class without making one."""
        found = adapters.find(name, kinds)
        return {"wants_embedder": adapters.wants_embedder(found), "may_be_several": adapters.may_be_several(found)}

    def do_greet(self) -> dict[str, Any]:
        """Says who this is."""
        return {"pid": os.getpid()}

    def do_make(
        self, name: str, kinds: Sequence[Sequence[str]], embedder: dict[str, Any] | None, on_disk: bool = False
    ) -> dict[str, Any]:
        """Makes the adapter and says what it is and has."""
        embed = _RunsEmbedder(self._run, **embedder) if embedder else None
        with _OwnWarnings() as said:
            found = adapters.find(name, kinds)
            self._memory = adapters.make(name, found, embed, **adapters.placed(found, on_disk))
        return {
            "described": describe(self._memory),
            "methods": _methods(self._memory),
            "wants_embedder": adapters.wants_embedder(found),
            "warnings": said.messages,
        }

    def do_call(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        """A method of the adapter."""
        return pack(getattr(self._memory, method)(*arguments, **keywords))

    def do_ingest(self, sessions: list[dict[str, Any]]) -> Any:
        """The one method whose arguments are no plain values."""
        return pack(self._memory.ingest(unpack_sessions(sessions)))

    def do_snapshot(self, dropped: list[int]) -> int:
        """Keeps a state here, and forgets those that the run has dropped."""
        for number in dropped:
            self._states.pop(number, None)
        number = next(self._numbers)
        self._states[number] = self._memory.snapshot()
        return number

    def do_restore(self, number: int) -> None:
        """Puts a state back."""
        self._memory.restore(self._states[number])


def _methods(memory: Any) -> list[str]:
    methods = [name for name in _METHODS if callable(getattr(memory, name, None))]
    if all(callable(getattr(memory, name, None)) for name in ("snapshot", "restore")):
        methods += ["snapshot", "restore"]
    return methods


class _OwnWarnings(warnings.catch_warnings):
    """Keeps what our own code warns of, for the run to show; a system's own warnings go to stderr as ever."""

    def __enter__(self) -> "_OwnWarnings":  # type: ignore[override]
        super().__enter__()
        self.messages: list[str] = []
        show = warnings.showwarning

        def keep(message: Any, *rest: Any, **more: Any) -> None:
            if _warner().startswith("forget_eval."):
                self.messages.append(str(message))
            else:
                show(message, *rest, **more)

        warnings.showwarning = keep
        return self


def _warner() -> str:
    """The module that called `warnings.warn`."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") == "warnings":
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))


def _guard_output() -> None:
    """Whatever is printed reaches the file that the run keeps, at once; so does where a crash was."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    faulthandler.enable()
