"""Reads rows and embeds their texts while others are played, a chunk ahead and no further."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import Pipe
from operator import attrgetter
from queue import Empty, Queue
from threading import Thread
from typing import Any, Generic

from forget_eval.parallel.vectors import foreseen
from forget_eval.runner import Options, Row

_TO_STOP = 10.0  # seconds; a chunk may take that long to embed


@dataclass(frozen=True)
class Unit(Generic[Row]):
    """Rows that one player plays one after the other, with the vectors of their texts, shape (len(texts), dim)."""

    first: int
    rows: Sequence[Row]
    texts: Sequence[str]
    vectors: Any


class Ahead(Generic[Row]):
    """A thread that makes units of rows.

    Attributes:
        bell: rings when units are there, or the thread has ended.
        total: how many rows there were; None while the thread goes on.
        failure: what has ended it before its time.
    """

    def __init__(self, chunks: Iterable[list[Row]], how: Options[Row]) -> None:
        self._chunks, self._how = chunks, how
        self.bell, self._ring = Pipe(duplex=False)
        self._ready: Queue[list[Unit[Row]]] = Queue(maxsize=1)
        self._is_wanted = True
        self._made = 0
        self._has_ended = False
        self.total: int | None = None
        self.failure: BaseException | None = None
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    def take(self) -> list[Unit[Row]]:
        """The units of the next chunk; none if they are not ready."""
        ended = self._has_ended
        try:
            return self._ready.get_nowait()
        except Empty:
            if ended:
                self.total = self._made
            return []

    def stop(self) -> None:
        """Ends the thread as soon as it can be ended."""
        self._is_wanted = False
        with suppress(Empty):
            self._ready.get_nowait()
        self._thread.join(_TO_STOP)

    def _work(self) -> None:
        try:
            for chunk in self._chunks:
                if not self._is_wanted:
                    break
                self._ready.put(self._units(chunk))
                self._made += len(chunk)
                self._ring.send_bytes(b"")
        except BaseException as error:
            self.failure = error
        self._has_ended = True
        self._ring.send_bytes(b"")

    def _units(self, chunk: Sequence[Row]) -> list[Unit[Row]]:
        groups = [list(group) for _, group in groupby(chunk, self._how.together or attrgetter("id"))]
        units, first = list[Unit[Row]](), self._made
        for rows, (texts, vectors) in zip(groups, foreseen(groups, self._how), strict=True):
            units.append(Unit(first, rows, texts, vectors))
            first += len(rows)
        return units
