"""A small store in this process that does every operation for real: the floor that a memory system should reach."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from forget_datasets.rows import OPERATIONS
from forget_eval import policies
from forget_eval.adapters.by_id import BatchStore, HidingStore, Id
from forget_eval.adapters.lexical import LexicalIndex
from forget_eval.embedding import width
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale


class ReferenceMemory(HidingStore, BatchStore):
    """Exact dense search, plus a lexical index for identifiers and names.

    A recall ranks by cosine; facts that share rare words with the query move up by as much as `LexicalIndex.weights`
    says. What a supersede or a release touches is decided on the cosines alone; a purge finds its facts through the
    lexical index, hidden ones too. Superseded and purged facts leave memory, released ones stay but are never recalled.
    """

    name = "reference"
    operations: ClassVar = dict.fromkeys(OPERATIONS, Kind.NATIVE)
    parallel = True
    choosers: ClassVar = dict.fromkeys(OPERATIONS, Chooser.POLICY)
    score_scale = Scale.COSINE

    def __init__(self, embed: Embedder) -> None:
        self._embed = embed
        self._dim = width(embed)
        self.reset()

    def reset(self) -> None:
        """Empties the store."""
        self._next = 0
        self._texts: dict[int, str] = {}
        self._index = LexicalIndex()
        self._ids: list[int] = []  # the facts that can be recalled, in the order of the rows
        self._rows = np.empty((16, self._dim), dtype=np.float32)

    def inscribe_many(self, texts: Sequence[str]) -> list[int]:
        """Adds facts and returns their ids."""
        ids = list(range(self._next, self._next + len(texts)))
        self._next += len(texts)
        self._make_room(len(ids))
        if texts:
            self._rows[len(self._ids) : len(self._ids) + len(ids)] = self._embed(texts)
        self._ids.extend(ids)
        for id, text in zip(ids, texts, strict=True):
            self._texts[id] = text
            self._index.add(id, text)
        return ids

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        """The k best facts."""
        scores = self._cosines(query)
        weights = self._index.weights(query)
        ranks = scores + np.array([weights.get(id, 0.0) for id in self._ids], dtype=np.float32)
        return [self._texts[self._ids[row]] for row in _falling(ranks, k)]

    def purge(self, query: str) -> int:
        """Deletes every fact that holds the identifier, hidden or not."""
        candidates = self._index.candidates(query)
        found = policies.holding(query, (self._texts[id] for id in candidates))
        self._delete([candidates[i] for i in found])
        return len(found)

    def snapshot(self) -> Any:
        """A copy of the state, for `restore`."""
        live = self._rows[: len(self._ids)].copy()
        return self._next, dict(self._texts), self._index.copy(), list(self._ids), live

    def restore(self, state: Any) -> None:
        """Puts a snapshot back; it can be put back again."""
        self._next, texts, index, ids, rows = state
        self._texts, self._index, self._ids, self._rows = dict(texts), index.copy(), list(ids), rows.copy()

    def stored_in(self) -> None:
        """In memory."""

    def _cosines(self, query: str) -> NDArray[np.float32]:
        if not self._ids:
            return np.empty(0, dtype=np.float32)
        scores: NDArray[np.float32] = self._rows[: len(self._ids)] @ self._embed([query])[0]
        return scores

    def _nearest(self, query: str, k: int) -> list[Hit]:
        scores = self._cosines(query)
        rows = _falling(scores, k)
        return [Hit(self._ids[row], self._texts[self._ids[row]], float(scores[row])) for row in rows]

    def _make_room(self, count: int) -> None:
        wanted = len(self._ids) + count
        if wanted > len(self._rows):
            grown = np.empty((max(wanted, 2 * len(self._rows)), self._dim), dtype=np.float32)
            grown[: len(self._ids)] = self._rows[: len(self._ids)]
            self._rows = grown

    def _stored(self) -> Iterable[tuple[Id, str]]:
        return self._texts.items()

    def _hide(self, hits: Sequence[Hit]) -> None:
        self._take_out({hit.id for hit in hits})

    def _delete(self, ids: Sequence[Id]) -> None:
        self._take_out(set(ids))
        for id in map(int, ids):
            self._index.remove(id, self._texts.pop(id))

    def _take_out(self, ids: set[Id]) -> None:
        """Of what can be recalled."""
        kept = [row for row, id in enumerate(self._ids) if id not in ids]
        self._rows = self._rows[kept]
        self._ids = [self._ids[row] for row in kept]


def _falling(scores: NDArray[np.float32], k: int) -> list[int]:
    """Rows of the k highest scores; of equals, the older first."""
    rows: list[int] = np.argsort(-scores, kind="stable")[:k].tolist()
    return rows
