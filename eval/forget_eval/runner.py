"""Runs cases through a system: chunk by chunk, texts embedded ahead of the replay, one transcript a case as it ends."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Protocol, TypeVar

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


def run(
    rows: Iterable[Row],
    replay: Callable[[Row], Transcript],
    transcripts: Writer,
    *,
    texts: Callable[[Row], Iterable[str]] | None = None,
    embed: Embedder | None = None,
    watch: Watch | None = None,
    chunk: int = CHUNK,
) -> int:
    """Replays the rows that have no transcript yet and appends theirs, in the order of the rows.

    What a system prints goes to stderr, so that it cannot mix with our data (`guest.apart`). While a row is replayed
    nothing else is called than the system.

    Args:
        rows: read once, `chunk` at a time.
        replay: plays one row against the system under test; it catches what the system raises.
        transcripts: where answers go; its `done` says which rows are there already.
        texts: all texts of a row that the system may embed.
        embed: the embedder that the system shares with the runner; it is called once a chunk, so that the replay finds
            every vector in its cache.
        watch: is told of every step.
        chunk: rows whose texts are embedded together.

    Returns:
        The number of rows replayed.
    """
    watch = watch or Watch()
    played, here = 0, os.getpid()
    todo = (row for row in rows if row.id not in transcripts.done)
    for part in _chunks(todo, chunk):
        if embed is not None and texts is not None:
            _embed_ahead(list(dict.fromkeys(text for row in part for text in texts(row))), embed, watch)
        for row in part:
            if transcripts.done and not played:
                _say_going_on(len(transcripts.done), row.id)
            with apart():
                transcript = replay(row)
            _end_child(here)
            transcripts.append(transcript)
            played += 1
            watch.replayed()
    return played


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


def _embed_ahead(texts: list[str], embed: Embedder, watch: Watch) -> None:
    watch.embedding(len(texts))
    with hosting(f"the embedder failed on {len(texts)} texts", "What was run is kept."):
        embed(texts)
    watch.replaying()


def _chunks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    rows = iter(rows)
    while part := list(islice(rows, size)):
        yield part
