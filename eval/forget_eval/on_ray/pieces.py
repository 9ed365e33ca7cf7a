"""The rows of a run in pieces, each of which one actor plays; their texts are embedded many pieces at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Generic

from forget_eval.parallel.vectors import foreseen
from forget_eval.runner import Options, Row

ROWS = 32
"""Rows of a piece: few, so that a lost worker costs little and many are busy to the end of a run."""


@dataclass(frozen=True)
class Piece(Generic[Row]):
    """Rows that one actor plays one after the other.

    Attributes:
        name: of its shard, made of the place and the number of all its rows in the dataset.
        rows: those of them that have no transcript yet.
        texts, vectors: what they embed, vectors of shape (len(texts), dim); none for a piece that was played before.
        is_played: whether its shard is there from an earlier run.
    """

    name: str
    rows: Sequence[Row]
    texts: Sequence[str] = ()
    vectors: Any = ()
    is_played: bool = False

    @property
    def ids(self) -> list[str]:
        """Of its rows."""
        return [row.id for row in self.rows]


def pieces(
    rows: Iterable[Row],
    done: frozenset[str],
    how: Options[Row],
    is_played: Callable[[Piece[Row]], bool],
    size: int = ROWS,
) -> Iterator[Piece[Row]]:
    """What is left of a run, in order.

    Args:
        rows: all of the dataset, read as they are needed.
        done: ids of rows that have a transcript.
        how: embedding; how many rows are embedded together, and which stay in one piece.
        is_played: whether the shard of a piece is there and holds its rows.
        size: rows of a piece, or a few more if they belong together.

    Raises:
        UserError: the embedder fails.
    """
    batch: list[Piece[Row]] = []
    for piece in _cut(rows, done, how, min(size, how.chunk)):
        batch.append(piece)
        if sum(len(one.rows) for one in batch) >= how.chunk:
            yield from _embedded(batch, how, is_played)
            batch = []
    yield from _embedded(batch, how, is_played)


def _cut(rows: Iterable[Row], done: frozenset[str], how: Options[Row], size: int) -> Iterator[Piece[Row]]:
    first, part = 0, list[Row]()

    def piece() -> Iterator[Piece[Row]]:
        if todo := [row for row in part if row.id not in done]:
            yield Piece(f"{first:010}+{len(part)}.jsonl", todo)

    for _, group in groupby(rows, how.together or attrgetter("id")):
        part.extend(group)
        if len(part) >= size:
            yield from piece()
            first, part = first + len(part), []
    yield from piece()


def _embedded(
    batch: Sequence[Piece[Row]], how: Options[Row], is_played: Callable[[Piece[Row]], bool]
) -> Iterator[Piece[Row]]:
    played = [is_played(piece) for piece in batch]
    groups = [() if there else piece.rows for piece, there in zip(batch, played, strict=True)]
    for piece, (texts, vectors), there in zip(batch, foreseen(groups, how), played, strict=True):
        yield Piece(piece.name, piece.rows, texts, vectors, there)
