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
from errno import EBADF
from itertools import count
from multiprocessing.connection import Connection
from queue import SimpleQueue
from time import sleep
from typing import Any, NoReturn

from forget_datasets.errors import PROGRAMMERS_WARNINGS, UserError
from forget_eval import adapters, guest
from forget_eval.parallel import faults
from forget_eval.parallel.seats import Seat, Seated
from forget_eval.parallel.vectors import Foreseen
from forget_eval.transcripts import encode

_ENCODER = json.JSONEncoder(separators=(",", ":"))  # made before a system can patch `json`
_TO_CLOSE = 5.0  # seconds that a system has to close when the run has gone
_INTERRUPTS = 10  # at most, in that time


def main(pipe: int) -> NoReturn:
    """Plays until the run says that it is over, or has gone. `pipe` is a file descriptor."""
    os.set_inheritable(pipe, False)  # what a system starts must not hold it open
    player, status = _Player(Connection(pipe)), 0
    try:
        player.play()
    except BaseException:  # whoever listens has gone, or cannot be told
        status = faults.CUT_OFF
    with suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    player.leave(status)


class _Player:
    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._sending, self._asking = threading.Lock(), threading.Lock()
        self._work: SimpleQueue[Any] = SimpleQueue()
        self._vectors: SimpleQueue[Any] = SimpleQueue()
        self._questions = count()
        self._owner = os.getpid()
        self._has_run = True
        self._is_orphan = False
        self._is_with_system = False
        self._embed: Foreseen | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=pipe.close)  # a child of the system's must not speak for it

    def play(self) -> None:
        """All that a player does, from the first message to the last."""
        try:
            seat, introduction = self._pipe.recv()
        except (EOFError, OSError):  # no crew has taken this player
            return
        except Exception as error:
            self._fail(UserError(f"what is to be played cannot be read in another process: {guest.said(error)}"))
            return
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

    def leave(self, status: int) -> NoReturn:
        """Ends the process at once: an interpreter that ends waits for whatever threads the system has left."""
        if self._is_orphan and os.getpid() == self._owner:  # else the run ends what the system has started
            os.killpg(0, signal.SIGKILL)
        os._exit(status)

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
        self._say(b"f", faults.told(error))

    def _ask(self, texts: list[str]) -> Any:
        if os.getpid() != self._owner:
            raise RuntimeError("a forked child of the system cannot ask for vectors")
        with self._asking:
            number = next(self._questions)
            self._say(b"e", [number, texts])
            # A system may have left an earlier question, say by an alarm: that answer comes first, and is another's.
            vectors, fault = next(rest for answered, *rest in iter(self._vectors.get, None) if answered == number)
        if fault is not None:
            raise UserError(fault)
        return vectors

    def _warn(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if not issubclass(category, PROGRAMMERS_WARNINGS):
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
        except (EOFError, OSError) as error:
            self._let_go(error)
        except Exception as error:  # what was sent cannot be read here
            with suppress(OSError):
                self._fail(error)
        finally:
            self._has_run = False
            self._work.put(None)
            self._end_soon()

    def _let_go(self, error: EOFError | OSError) -> None:
        """Notes whether it is the run that has let go of the socket; else the system has closed all files."""
        self._is_orphan = getattr(error, "errno", None) != EBADF

    def _end_soon(self) -> NoReturn:
        """Interrupts whatever the system does; if it does not end, the process does.

        More than once: what comes in the moment in which it begins to wait, Python would tell it after the wait.
        """
        for _ in range(_INTERRUPTS):
            if self._is_with_system:
                with suppress(Exception):
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            sleep(_TO_CLOSE / _INTERRUPTS)
        self.leave(faults.CUT_OFF)

    def _say(self, what: bytes, content: Sequence[Any] | dict[str, Any] | str) -> None:
        self._send(what + _ENCODER.encode(content).encode("ascii"))

    def _send(self, message: bytes) -> None:
        with self._sending:
            try:
                self._pipe.send_bytes(message)
            except OSError as error:
                self._let_go(error)
                raise
