"""The embedder of a player: the vectors that were sent with its rows, and for other texts the run's own embedder."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from forget_eval.embedding import Embedder, Vectors, width
from forget_eval.protocols import Embedder as AnyEmbedder

_MOST_ASKED = 10_000  # vectors kept of texts that nobody foresaw: 15 MB at 384 dimensions


def introduced(embed: AnyEmbedder | None) -> dict[str, Any] | None:
    """What a player is told of the run's embedder."""
    if embed is None:
        return None
    said = {name: getattr(embed, name, "") for name in ("name", "weights_sha256", "settings")}
    return {**said, "dim": width(embed)}


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
