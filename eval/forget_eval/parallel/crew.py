"""The run's side: the processes that play, from their start to their end."""

import json
import os
import signal
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any

from forget_datasets.errors import EnvironmentFault
from forget_eval.guest import apart
from forget_eval.isolation.process import ending, require_posix
from forget_eval.parallel import faults
from forget_eval.parallel.seats import Row, Seat
from forget_eval.parallel.vectors import answer, introduced
from forget_eval.protocols import Embedder

_START = (
    "import json, sys; job = json.loads(sys.argv[1]); sys.path[:] = job['path'];"
    " from forget_eval.parallel.player import main; main(job['pipe'])"
)
_LONGEST = 1 << 30  # bytes of a message; text that a system writes into the socket is taken for a greater length
_LOOK = 1.0  # seconds after which a silent player is looked at: what it has started may hold its socket open
_TO_CLOSE = 60.0  # seconds that systems have to close at the end of a run
_TO_STOP = 10.0  # and when the run was cut off
_WAITING: "list[Player]" = []


class PlayerDiedError(Exception):
    """A player has ended, though nobody told it to; the message says how."""


class Player:
    """One process, started; it waits to be given a seat.

    Attributes:
        pipe: the run's end of the socket pair.
        in_flight: (index, id) of the rows that it has and has not played, in their order.
        units: where each of the units ends that these are of.
        made: what it said of its system; None until it has.

    Raises:
        EnvironmentFault: the process cannot be started.
    """

    def __init__(self) -> None:
        self.in_flight: deque[tuple[int, str]] = deque()
        self.units: deque[int] = deque()
        self.made: dict[str, Any] | None = None
        self._has_been_killed = False
        self.pipe, theirs = Pipe()
        job = json.dumps({"path": sys.path, "pipe": theirs.fileno()})
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, job],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # an interrupt at the terminal is for the run
            )
        except OSError as error:
            self.pipe.close()
            raise EnvironmentFault(f"cannot start another process: {error.strerror or error}") from error
        finally:
            theirs.close()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended and nothing that it said is left."""
        return self._process.poll() is not None and not self.pipe.poll()

    def send(self, *message: Any) -> None:
        """Sends a message; that nobody takes it any more, hearing will tell."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.pipe.send(message)

    def hear(self) -> tuple[bytes, memoryview]:
        """The next message: what it is, and what it says. Raises PlayerDiedError."""
        try:
            message = memoryview(self.pipe.recv_bytes(_LONGEST))
        except (EOFError, OSError):
            raise self.died() from None
        return bytes(message[:1]), message[1:]

    def died(self) -> PlayerDiedError:
        """How it has ended; it is made to, should it still be there."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LOOK)
        status = self._process.poll()
        self.kill()
        if status is None or status == faults.CUT_OFF:
            return PlayerDiedError("closed its connection to the run, and was ended")
        return PlayerDiedError(ending(status))

    def wait(self, seconds: float) -> None:
        """Gives the process time to end."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, seconds))

    def kill(self) -> None:
        """Ends the process, and what its system has started, at once. A second time nothing."""
        self.pipe.close()
        if self._has_been_killed:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # the group outlives its leader while anything of it is left
        self._has_been_killed = True
        self._process.wait()


class Crew:
    """Players of one seat, all of which have their system.

    Attributes:
        players: those that are alive.
        described, made: what a manifest says of the system.

    Raises:
        UserError: the system cannot be made, or ends its process meanwhile.
        EnvironmentFault: the machine is in the way of its making.
    """

    def __init__(self, name: str, players: list[Player], embed: Embedder | None) -> None:
        self.name, self.players, self._embed = name, list(players), embed
        while waiting := [player for player in players if player.made is None]:
            for player, what, content in self.heard(waiting):
                if what != b"m":
                    raise fault(name, what, content, "its making")
                player.made = json.loads(bytes(content))
        made: dict[str, Any] = self.players[0].made or {}
        self.described: dict[str, Any] = made["described"]
        self.made: dict[str, Any] = made["made"]

    def heard(
        self, players: Sequence[Player], bell: Connection | None = None
    ) -> Iterator[tuple[Player, bytes, memoryview]]:
        """What players say, once one of them says something, the bell rings or a second is over.

        Warnings are passed on, and vectors that are asked for are sent, before anything is given.
        What is given is b"m", b"r" or b"." as `player` sends it, b"f", a fault, or b"d": the player has died.
        """
        ready = wait([player.pipe for player in players] + ([bell] if bell else []), _LOOK)
        if bell in ready and bell is not None:
            bell.recv_bytes()
        for player in list(players):
            if player.pipe not in ready and (ready or not player.has_ended):
                continue
            try:
                if player.pipe not in ready:
                    raise player.died()
                what, content = player.hear()
            except PlayerDiedError as error:
                yield player, b"d", memoryview(str(error).encode())
                continue
            if what == b"e":
                number, texts = json.loads(bytes(content))
                player.send("vectors", number, *answer(self._embed, texts))
            elif what == b"w":
                warnings.warn(json.loads(bytes(content)), RuntimeWarning, stacklevel=2)
            else:
                yield player, what, content

    def dismiss(self) -> None:
        """Has all systems closed, and waits until they are."""
        latest = monotonic() + _TO_CLOSE
        for player in self.players:
            player.send("end")
        waiting = list(self.players)
        while waiting and monotonic() < latest:
            for player, what, _ in self.heard(waiting):
                if what in b".df":
                    waiting.remove(player)
                    player.wait(latest - monotonic())


def fault(name: str, what: bytes, content: memoryview, row: str) -> BaseException:
    """What ends a run: the last message of a player.

    Args:
        name: of the adapter.
        what, content: the message, b"f" or b"d".
        row: that was played.
    """
    if what == b"d":
        return faults.ended(name, bytes(content).decode(), row)
    return faults.raised(json.loads(bytes(content)))


def prepare(count: int) -> None:
    """Starts processes that the next crew takes, so that they load while this process does.

    Those that no crew takes end with this process.

    Raises:
        EnvironmentFault: a process cannot be started, or this is Windows.
    """
    require_posix()
    with apart():
        _WAITING.extend(Player() for _ in range(count))


@contextmanager
def crew(seat: Seat[Row], embed: Embedder | None, count: int) -> Iterator[Crew]:
    """So many processes, each with the system of the seat, until the block ends; then none is left.

    Raises:
        UserError: the system cannot be made.
        EnvironmentFault: a process cannot be started.
    """
    require_posix()
    players: list[Player] = []
    try:
        introduction = introduced(embed)
        for _ in range(count):
            players.append(_WAITING.pop() if _WAITING else Player())
            players[-1].send(seat, introduction)
        made = Crew(seat.name, players, embed)
        yield made
        made.dismiss()
    finally:
        _stop(players)


def _stop(players: Sequence[Player]) -> None:
    """Ends players that were not dismissed: a moment to close their systems, no more."""
    latest = monotonic() + _TO_STOP
    try:
        for player in players:
            player.pipe.close()
        for player in players:
            player.wait(latest - monotonic())
    finally:
        for player in players:
            player.kill()
