"""Hands rows out to players, and writes what they answer in the order of the rows."""

from collections import deque
from collections.abc import Iterable
from time import perf_counter
from typing import Generic

from forget_eval.parallel.ahead import Ahead, Unit
from forget_eval.parallel.crew import Crew, Player, fault
from forget_eval.runner import Options, Row, chunks
from forget_eval.transcripts import Writer

_FEWEST, _MOST = 2, 32  # units that a player has at a time: one that it plays, and some that wait
_SLACK = 0.1  # seconds of work that shall wait for a player


def run(rows: Iterable[Row], crew: Crew, transcripts: Writer, how: Options[Row]) -> int:
    """Has the rows played that have no transcript yet and appends theirs, in the order of the rows.

    What ends a run for a single process ends this one, at the same row: all rows before it are written, none after.

    Args:
        rows: read once, a chunk at a time.
        crew: who plays.
        transcripts: where answers go; its `done` says which rows are there already.
        how: as for `runner.run`.

    Returns:
        The number of rows played.

    Raises:
        UserError: the embedder fails, or a system ends its process.
        EnvironmentFault: the disk or a chat model is in the way.
        KeyboardInterrupt: a system has raised it.
    """
    ahead = Ahead(chunks(rows, transcripts, how), how)
    try:
        return _Dispatch(crew, ahead, transcripts, how).run()
    finally:
        ahead.stop()


class _Dispatch(Generic[Row]):
    def __init__(self, crew: Crew, ahead: Ahead[Row], transcripts: Writer, how: Options[Row]) -> None:
        self._crew, self._ahead, self._transcripts, self._how = crew, ahead, transcripts, how
        self._units: deque[Unit[Row]] = deque()
        self._handed = 0  # rows
        self._lines: dict[int, tuple[str, memoryview]] = {}  # played, but for one before them
        self._written = 0
        self._end: int | None = None  # rows that will be written, as soon as that is known
        self._failure: BaseException | None = None
        self._began = perf_counter()

    def run(self) -> int:
        while self._written != self._end:
            self._hand_out()
            if self._written != self._end:
                for player, what, content in self._crew.heard(self._crew.players, self._ahead.bell):
                    self._hear(player, what, content)
        if self._failure is not None:
            raise self._failure
        return self._written

    def _hand_out(self) -> None:
        depth = self._depth()
        for player in sorted(self._crew.players, key=lambda player: len(player.in_flight)):
            if self._units_of(player) > depth // 2:
                continue
            units = []
            while self._units_of(player) < depth and (unit := self._next_unit(depth)):
                player.in_flight.extend((unit.first + i, row.id) for i, row in enumerate(unit.rows))
                player.units.append(unit.first + len(unit.rows))
                units.append((unit.rows, unit.texts, unit.vectors))
            if units:
                player.send("play", units)

    def _next_unit(self, depth: int) -> Unit[Row] | None:
        """The next unit, unless the players are far ahead of a row that takes long."""
        if not self._units:
            self._units.extend(self._ahead.take())
            if self._ahead.total is not None:
                self._end_at(self._ahead.total, self._ahead.failure)
        if not self._units or (self._end is not None and self._units[0].first >= self._end):
            return None
        unit = self._units[0]
        if unit.first - self._written > 2 * depth * len(self._crew.players) * len(unit.rows):
            return None
        self._handed += len(unit.rows)
        return self._units.popleft()

    def _depth(self) -> int:
        """How many units a player shall have, so that it never waits, and is not far ahead of others either."""
        played = self._written + len(self._lines)
        if not played:
            return _FEWEST
        pace = (perf_counter() - self._began) * len(self._crew.players) / played
        return max(_FEWEST, min(_MOST, int(_SLACK / pace)))

    @staticmethod
    def _units_of(player: Player) -> int:
        while player.units and (not player.in_flight or player.in_flight[0][0] >= player.units[0]):
            player.units.popleft()
        return len(player.units)

    def _hear(self, player: Player, what: bytes, content: memoryview) -> None:
        index, row = player.in_flight[0] if player.in_flight else (self._handed, "the next row")
        if what != b"r":
            self._crew.players.remove(player)
            self._end_at(index, fault(self._crew.name, what, content, row))
            return
        player.in_flight.popleft()
        self._lines[index] = row, content
        self._write()

    def _write(self) -> None:
        while self._written in self._lines and self._written != self._end:
            self._transcripts.append_encoded(*self._lines.pop(self._written))
            self._written += 1
            self._how.watch.replayed()

    def _end_at(self, row: int, failure: BaseException | None) -> None:
        if self._end is None or row < self._end:
            self._end, self._failure = row, failure
