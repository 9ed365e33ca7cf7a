"""Hands pieces out to actors, and appends what they have played in the order of the rows."""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, Generic

from forget_datasets.errors import UserError
from forget_eval.on_ray.actors import Said
from forget_eval.on_ray.pieces import Piece, pieces
from forget_eval.on_ray.shards import Shards
from forget_eval.on_ray.troupe import Actor, Troupe
from forget_eval.parallel import faults
from forget_eval.runner import Options, Row
from forget_eval.transcripts import Writer

_AT_A_TIME = 2  # pieces that an actor has: one that it plays, and one that waits
_AHEAD = 8  # pieces for every actor that may be played before one that takes long
_TRIES = 4  # of a piece at which actors are lost: it may be the system that ends them


def run(rows: Iterable[Row], troupe: Troupe, shards: Shards, transcripts: Writer, how: Options[Row], size: int) -> int:
    """Has the rows played that have no transcript yet and appends theirs, in the order of the rows.

    What ends a run for a single process ends this one, at the same row: all rows before it are written, none after. A
    system that ends its process ends the run before the piece at which it has done so several times.

    Args:
        rows: all of the dataset.
        troupe: who plays.
        shards: where actors write; what is there already is taken.
        transcripts: where answers go; its `done` says which rows are there already.
        how: as for `runner.run`.
        size: rows of a piece.

    Returns:
        The number of rows that were appended.

    Raises:
        UserError: the embedder fails, or a system cannot be made, or always ends its process.
        EnvironmentFault: the disk, the place of the shards, a chat model or the cluster is in the way.
        KeyboardInterrupt: a system has raised it.
    """
    names = shards.names()

    def is_played(piece: Piece[Row]) -> bool:
        if piece.name not in names:
            return False
        try:
            shards.read(piece.name, piece.ids)
        except UserError:  # torn, or of other rows
            return False
        return True

    todo = pieces(rows, frozenset(transcripts.done), how, is_played, size)
    return _Dispatch(troupe, todo, shards, transcripts, how).run()


class _Dispatch(Generic[Row]):
    def __init__(
        self, troupe: Troupe, todo: Iterator[Piece[Row]], shards: Shards, transcripts: Writer, how: Options[Row]
    ) -> None:
        self._troupe, self._todo, self._shards, self._transcripts, self._how = troupe, todo, shards, transcripts, how
        self._numbers: dict[str, int] = {}  # of pieces that are not merged, by name
        self._loaded: dict[str, Any] = {}
        self._tries: dict[str, int] = {}
        self._again: list[tuple[int, Piece[Row]]] = []
        self._played: dict[int, tuple[str, list[str]]] = {}  # but for one before them: name and ids of a piece
        self._made = 0  # pieces
        self._merged = 0
        self._written = 0  # rows
        self._end: int | None = None  # pieces that will be merged, as soon as that is known
        self._lines: list[tuple[str, bytes]] = []  # of the piece at the end, before what ended it
        self._failure: BaseException | None = None

    def run(self) -> int:
        while True:
            self._merge()
            self._hand_out()
            if self._merged == self._end:
                break
            for actor, piece, said in self._troupe.heard():
                self._hear(actor, piece, said)
        for id, line in self._lines:
            self._append(id, line)
        if self._failure is not None:
            raise self._failure
        return self._written

    def _hand_out(self) -> None:
        for waiting in range(_AT_A_TIME):
            for actor in self._troupe.seated:
                if len(actor.in_flight) == waiting and (piece := self._next()):
                    if piece.name not in self._loaded:
                        self._loaded[piece.name] = self._troupe.load(piece)
                    self._troupe.play(actor, self._shards.url, piece, self._loaded[piece.name])

    def _next(self) -> Piece[Row] | None:
        """The next piece to be played, unless it is far ahead of one that takes long; those played before are noted."""
        while self._again:
            number, piece = heappop(self._again)
            if self._end is None or number < self._end:
                return piece
        while self._end is None and self._made - self._merged < _AHEAD * len(self._troupe.seated):
            try:
                piece = next(self._todo)
            except StopIteration:
                self._end_at(self._made, None)
                return None
            except Exception as error:  # the embedder's, or of rows that cannot be read
                self._end_at(self._made, error)
                return None
            number, self._made = self._made, self._made + 1
            if not piece.is_played:
                self._numbers[piece.name] = number
                return piece
            self._played[number] = piece.name, piece.ids
            self._merge()
        return None

    def _hear(self, actor: Actor, piece: Piece[Row], said: Said | None) -> None:
        if said is None:
            self._lost(actor)
            return
        actor.in_flight.remove(piece)
        number = self._numbers.pop(piece.name)
        del self._loaded[piece.name]
        if said.fault is None:
            self._played[number] = piece.name, piece.ids
        else:
            before = list(zip(piece.ids, said.lines, strict=False))
            self._end_at(number, faults.raised(said.fault), before)

    def _lost(self, actor: Actor) -> None:
        """Gives what an actor had to others; it may be that the first piece, which it played, has ended it."""
        first = actor.in_flight[0]
        self._tries[first.name] = self._tries.get(first.name, 0) + 1
        for piece in actor.in_flight:
            heappush(self._again, (self._numbers[piece.name], piece))
        actor.in_flight.clear()
        if self._tries[first.name] == _TRIES:
            ids = first.ids
            where = ids[0] if len(ids) == 1 else f"one of the {len(ids)} rows from {ids[0]} to {ids[-1]}"
            failure = faults.ended(self._troupe.name, f"has ended {_TRIES} times", where)
            self._end_at(self._numbers[first.name], failure)

    def _merge(self) -> None:
        while self._merged in self._played and self._merged != self._end:
            name, ids = self._played.pop(self._merged)
            for id, line in zip(ids, self._shards.read(name, ids), strict=True):
                self._append(id, line)
            self._merged += 1

    def _append(self, id: str, line: bytes) -> None:
        self._transcripts.append_encoded(id, line)
        self._written += 1
        self._how.watch.replayed()

    def _end_at(self, piece: int, failure: BaseException | None, lines: list[tuple[str, bytes]] | None = None) -> None:
        if self._end is None or piece < self._end:
            self._end, self._failure, self._lines = piece, failure, lines or []
