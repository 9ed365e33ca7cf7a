"""Runs cases through a system: chunk by chunk, texts embedded ahead of the replay, one transcript a case as it ends."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, Generic, Protocol, TypeVar

from forget_eval.guest import apart, hosting
from forget_eval.protocols import Embedder
from forget_eval.transcripts import Transcript, Writer

CHUNK = 256
"""How many cases hand their texts to the embedder together."""


class Keyed(Protocol):
    """A dataset row that is known by its id."""

    @property
    def id(self) -> str: ...


Row = TypeVar("Row", bound=Keyed)


class Watch:
    """Is told how far a run has come. This one does nothing; a progress bar does."""

    def embedding(self, texts: int) -> None:
        """So many texts are about to be embedded."""

    def replaying(self) -> None:
        """All texts of the chunk have their vectors."""

    def replayed(self) -> None:
        """One more row has its transcript."""


@dataclass(frozen=True)
class Options(Generic[Row]):
    """How rows are run, wherever they are played.

    Attributes:
        texts: all texts of a row that the system may embed.
        embed: the embedder that the system shares with the runner; it is called once a chunk, so that the replay finds
            every vector in its cache.
        watch: is told of every step.
        chunk: rows whose texts are embedded together.
        together: rows for which it is equal follow each other, stay in one chunk and are played by one system.
    """

    texts: Callable[[Row], Iterable[str]] | None = None
    embed: Embedder | None = None
    watch: Watch = field(default_factory=Watch)
    chunk: int = CHUNK
    together: Callable[[Row], object] | None = None


def run(
    rows: Iterable[Row], replay: Callable[[Row], Transcript], transcripts: Writer, how: Options[Row] | None = None
) -> int:
    """Replays the rows that have no transcript yet and appends theirs, in the order of the rows.

    What a system prints goes to stderr, so that it cannot mix with our data (`guest.apart`). While a row is replayed
    nothing else is called than the system.

    Args:
        rows: read once, a chunk at a time.
        replay: plays one row against the system under test; it catches what the system raises.
        transcripts: where answers go; its `done` says which rows are there already.
        how: embedding, watching and the size of chunks.

    Returns:
        The number of rows replayed.
    """
    how = how or Options()
    played, here = 0, os.getpid()
    for part in chunks(rows, transcripts, how):
        if how.embed is not None and how.texts is not None:
            embed_ahead(list(dict.fromkeys(text for row in part for text in how.texts(row))), how.embed, how.watch)
        for row in part:
            with apart():
                transcript = replay(row)
            _end_child(here)
            transcripts.append(transcript)
            played += 1
            how.watch.replayed()
    return played


def chunks(rows: Iterable[Row], transcripts: Writer, how: Options[Row]) -> Iterator[list[Row]]:
    """The rows that have no transcript yet, in chunks, none of which ends between rows that belong together.

    If others have a transcript, the first row is named on stderr: what ended the run before may end it there again.
    """
    done = frozenset(transcripts.done)
    todo = (row for row in rows if row.id not in done)
    for number, part in enumerate(_chunks(todo, how)):
        if done and not number:
            _say_going_on(len(done), part[0].id)
        yield part


def _chunks(rows: Iterator[Row], how: Options[Row]) -> Iterator[list[Row]]:
    if how.together is None:
        while part := list(islice(rows, how.chunk)):
            yield part
        return
    part = []
    for _, group in groupby(rows, how.together):
        part.extend(group)
        if len(part) >= how.chunk:
            yield part
            part = []
    if part:
        yield part


def embed_ahead(texts: list[str], embed: Embedder, watch: Watch) -> Any:
    """The vectors of the texts of a chunk. Raises UserError if the embedder fails."""
    watch.embedding(len(texts))
    with hosting(f"the embedder failed on {len(texts)} texts", "What was run is kept."):
        vectors = embed(texts)
    watch.replaying()
    return vectors


def _say_going_on(done: int, row: str) -> None:
    print(
        f"going on after {done}, with {row}. Should the system end this process there again, --isolate makes that an"
        " error of the one.",
        file=sys.stderr,
    )


def _end_child(here: int) -> None:
    """A child that the system forked, and that came back instead of ending, must not go on with the run as well."""
    if os.getpid() != here:
        os._exit(0)
