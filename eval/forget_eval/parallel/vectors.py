"""The embedder of a player: the vectors that were sent with its rows, and for other texts the run's own embedder."""

from collections.abc import Callable, Sequence
from itertools import chain
from threading import Lock
from typing import Any

import numpy as np

from forget_datasets.errors import UserError
from forget_eval.embedding import Embedder, Vectors, width
from forget_eval.guest import hosting
from forget_eval.protocols import Embedder as AnyEmbedder
from forget_eval.runner import Options, Row, embed_ahead

_MOST_ASKED = 10_000  # vectors kept of texts that nobody foresaw: 15 MB at 384 dimensions


def introduced(embed: AnyEmbedder | None) -> dict[str, Any] | None:
    """What a player is told of the run's embedder."""
    if embed is None:
        return None
    said = {name: getattr(embed, name, "") for name in ("name", "weights_sha256", "settings")}
    return {**said, "dim": width(embed)}


def foreseen(groups: Sequence[Sequence[Row]], how: Options[Row]) -> list[tuple[Sequence[str], Any]]:
    """What groups of rows may embed: of each its texts, and their vectors, shape (len(texts), dim).

    A text is embedded once, however many groups have it. Without an embedder there are neither texts nor vectors.

    Raises:
        UserError: the embedder fails.
    """
    texts_of, embed = how.texts, how.embed
    if embed is None or texts_of is None:
        return [((), ()) for _ in groups]
    texts = [list(dict.fromkeys(text for row in rows for text in texts_of(row))) for rows in groups]
    place = {text: number for number, text in enumerate(dict.fromkeys(chain.from_iterable(texts)))}
    vectors = np.asarray(embed_ahead(list(place), embed, how.watch)) if place else None
    return [(some, vectors[[place[text] for text in some]] if vectors is not None and some else ()) for some in texts]


def answer(embed: AnyEmbedder | None, texts: list[str]) -> tuple[Any, str | None]:
    """The vectors that a player asks for, shape (len(texts), dim), and None; or None and why there are none."""
    try:
        with hosting(f"the embedder failed on {len(texts)} texts"):
            if embed is None:
                raise UserError("there is no embedder")
            return np.asarray(embed(texts), dtype=np.float32), None
    except UserError as error:
        return None, str(error)


class Foreseen(Embedder):
    """Answers as the run's embedder does, without a model.

    Args:
        introduction: as `introduced` makes it.
        ask: asks the run for the vectors of texts, shape (len(texts), dim).
    """

    def __init__(self, introduction: dict[str, Any], ask: Callable[[list[str]], Vectors]) -> None:
        self.name, self.dim = introduction["name"], introduction["dim"]
        self.weights_sha256, self.settings = introduction["weights_sha256"], introduction["settings"]
        self._ask = ask
        self._lock = Lock()
        self._recent: dict[str, Vectors] = {}
        self._asked: dict[str, Vectors] = {}

    def foresee(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Takes the vectors of the rows that are played next, in place of those before."""
        self._recent = {**self._asked, **dict(zip(texts, vectors, strict=True))}

    def close(self) -> None:
        """Nothing is open."""

    def _rows(self, texts: list[str]) -> dict[str, Vectors]:
        rows = {text: self._recent[text] for text in texts if text in self._recent}
        missing = [text for text in texts if text not in rows]
        fresh = dict(zip(missing, self._ask(missing), strict=True))
        if len(self._asked) > _MOST_ASKED:
            self._asked.clear()
        self._asked |= fresh
        self._recent |= fresh
        return rows | fresh
