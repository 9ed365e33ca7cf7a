"""Runs cases through a system: chunk by chunk, texts embedded ahead of the replay, one transcript a case as it ends."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from itertools import islice
from typing import Protocol, TypeVar

from forget_datasets.errors import UserError
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

    What a system prints goes to stderr, so that it cannot mix with our data. While a row is replayed nothing else is
    called than the system.

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
    played = 0
    todo = (row for row in rows if row.id not in transcripts.done)
    for part in _chunks(todo, chunk):
        if embed is not None and texts is not None:
            _embed_ahead(list(dict.fromkeys(text for row in part for text in texts(row))), embed, watch)
        for row in part:
            with redirect_stdout(sys.stderr):
                transcript = replay(row)
            transcripts.append(transcript)
            played += 1
            watch.replayed()
    return played


def _embed_ahead(texts: list[str], embed: Embedder, watch: Watch) -> None:
    watch.embedding(len(texts))
    try:
        embed(texts)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"the embedder failed on {len(texts)} texts: {type(error).__name__}: {error}. What was run is kept."
        ) from error
    watch.replaying()


def _chunks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    rows = iter(rows)
    while part := list(islice(rows, size)):
        yield part
