"""The player's side: makes the system of a seat, plays the rows that it is sent, and sends their transcripts."""

import atexit
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from time import sleep
from typing import Any, NoReturn

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval import adapters, guest
from forget_eval.parallel.seats import Seat, Seated
from forget_eval.parallel.vectors import Foreseen
from forget_eval.transcripts import encode

_ENCODER = json.JSONEncoder(separators=(",", ":"))  # made before a system can patch `json`
_TO_CLOSE = 5.0  # seconds that a system has to close when the run has gone


def main(pipe: int) -> NoReturn:
    """Plays until the run says that it is over, or has gone. `pipe` is a file descriptor."""
    with suppress(BaseException):  # whoever listens has been told, or has gone
        _Player(Connection(pipe)).play()
    with suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(0)  # an interpreter that ends waits for whatever threads the system has left


class _Player:
    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._sending, self._asking = threading.Lock(), threading.Lock()
        self._work: SimpleQueue[Any] = SimpleQueue()
        self._vectors: SimpleQueue[Any] = SimpleQueue()
        self._owner = os.getpid()
        self._has_run = True
        self._is_with_system = False
        self._embed: Foreseen | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=pipe.close)  # a child of the system's must not speak for it

    def play(self) -> None:
        """All that a player does, from the first message to the last."""
        seat, introduction = self._pipe.recv()
        warnings.showwarning = self._warn
        signal.signal(signal.SIGINT, self._interrupted)
        threading.Thread(target=self._receive, daemon=True).start()
        if introduction is not None:
            self._embed = Foreseen(introduction, self._ask)
        with guest.apart():
            seated = self._seated(seat)
            if seated is None:
                return
            try:
                self._play_all(seated)
            finally:
                guest.close(seated.played, f"adapter '{seat.name}'")
        self._send(b".")

    def _seated(self, seat: Seat[Any]) -> Seated[Any] | None:
        try:
            with self._with_system():
                seated = seat.take(self._embed)
            self._say(b"m", {"described": adapters.describe(seated.adapter), "made": seated.made})
        except BaseException as error:
            self._fail(error)
            return None
        return seated

    def _play_all(self, seated: Seated[Any]) -> None:
        for units in iter(self._work.get, None):
            for rows, texts, vectors in units:
                if self._embed is not None:
                    self._embed.foresee(texts, vectors)
                for row in rows:
                    if not self._has_run or not self._played(seated, row):
                        return

    def _played(self, seated: Seated[Any], row: Any) -> bool:
        try:
            with self._with_system(), guest.apart():
                transcript = seated.replay(row)
            if os.getpid() != self._owner:  # a child that the system forked came back instead of ending
                os._exit(0)
            self._send(b"r" + encode(transcript))
        except BaseException as error:
            self._fail(error)
            return False
        return True

    @contextmanager
    def _with_system(self) -> Iterator[None]:
        self._is_with_system = True
        try:
            yield
        finally:
            self._is_with_system = False

    def _interrupted(self, *_: object) -> None:
        """An interrupt is for what a system does, not for its closing."""
        if self._is_with_system:
            raise KeyboardInterrupt

    def _fail(self, error: BaseException) -> None:
        """Tells the run what ends it."""
        if not self._has_run:
            raise error
        kinds = {EnvironmentFault: "environment", UserError: "user", KeyboardInterrupt: "interrupt"}
        kind = next((name for known, name in kinds.items() if isinstance(error, known)), "")
        self._say(b"f", {"kind": kind, "message": str(error) if kind else guest.said(error)})

    def _ask(self, texts: list[str]) -> Any:
        if os.getpid() != self._owner:
            raise RuntimeError("a forked child of the system cannot ask for vectors")
        with self._asking:
            self._say(b"e", texts)
            vectors, fault = self._vectors.get()
        if fault is not None:
            raise UserError(fault)
        return vectors

    def _warn(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        self._say(b"w", str(message))

    def _receive(self) -> None:
        """Takes what the run sends, as it comes, so that the run never waits for a system."""
        try:
            while True:
                what, *content = self._pipe.recv()
                if what == "vectors":
                    self._vectors.put(content)
                else:
                    self._work.put(content[0] if what == "play" else None)
        except Exception:  # the run has let go, or the system has closed all files
            self._has_run = False
            self._work.put(None)
            self._end_soon()

    def _end_soon(self) -> NoReturn:
        """Interrupts whatever the system does; if it does not end, the process does."""
        with suppress(Exception):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        sleep(_TO_CLOSE)
        os._exit(1)

    def _say(self, what: bytes, content: Sequence[str] | dict[str, Any] | str) -> None:
        self._send(what + _ENCODER.encode(content).encode("ascii"))

    def _send(self, message: bytes) -> None:
        with self._sending:
            self._pipe.send_bytes(message)
