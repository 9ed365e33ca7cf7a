"""Lethe (PyPI `pylethe`): every fact has a depth, and all three operations are the package's own."""

import sqlite3
import sys
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, ClassVar

from forget_datasets.errors import UserError
from forget_datasets.rows import OPERATIONS
from forget_eval.adapters.by_id import HidingStore, Id
from forget_eval.adapters.scratch import Scratch
from forget_eval.embedding import width
from forget_eval.packages import install_line, require, version
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale


class LetheMemory(HidingStore):
    """A fresh in-memory database for each reset. Ids are chosen by the shared policies over Lethe's own scores.

    Recall is Lethe's own (vectors and BM25 fused by rank). What a supersede or a release touches is decided on its
    `similarity`, which is 1 - d/2 of the unsquared distance. Lethe cannot list what it stores, so the adapter keeps the
    texts of its ids to find what a purge must delete: facts that sank are purged too, which no recall would show.
    """

    name = "lethe"
    distribution = "pylethe"
    extra = "lethe"
    needs = ""
    tried = "1.0.0a0"
    operations: ClassVar = dict.fromkeys(OPERATIONS, Kind.NATIVE)
    parallel = True
    choosers: ClassVar = dict.fromkeys(OPERATIONS, Chooser.POLICY)
    score_scale = Scale.EUCLIDEAN

    def __init__(self, embed: Embedder, on_disk: bool = False) -> None:
        self._scratch = Scratch() if on_disk else None
        self._resets = count()
        self._lethe = _load()
        self._embed = embed
        self._dim = width(embed)
        self._store: Any = None
        self.reset()

    def reset(self) -> None:
        """Opens a new store; nothing of the old one can be left in it."""
        self._close_store()
        self._texts: dict[Id, str] = {}
        self._store = self._lethe.Lethe(
            f"{self._scratch.folder}/{next(self._resets)}.db" if self._scratch else ":memory:",
            vector_dim=self._dim,
            embedder=lambda text: self._embed([text])[0].tolist(),
            embedder_batch=lambda texts: self._embed(texts).tolist(),
        )

    def inscribe(self, text: str) -> int:
        """Adds a fact at the surface."""
        return self._keep(self._store.inscribe(text), text)

    def inscribe_many(self, texts: Sequence[str]) -> list[int]:
        """Adds facts in one transaction."""
        ids = self._store.inscribe_many(list(texts))
        return [self._keep(id, text) for id, text in zip(ids, texts, strict=True)]

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        """Lethe's hybrid recall."""
        return [found.memory.text for found in self._store.recall(query, k=k)]

    def stored_in(self) -> str | None:
        """Where its files are."""
        return self._scratch.folder if self._scratch else None

    def close(self) -> None:
        """Closes the store and removes the folder, if there is one."""
        self._close_store()
        if self._scratch:
            self._scratch.close()

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _nearest(self, query: str, k: int) -> list[Hit]:
        found = self._store.recall(query, k=k, hybrid=False)
        return [Hit(item.memory.id, item.memory.text, item.similarity) for item in found]

    def _stored(self) -> Iterable[tuple[Id, str]]:
        return self._texts.items()

    def _replace(self, id: Id, text: str) -> None:
        self._keep(self._store.surrender({"old": id, "new": text}, mode="supersede"), text)

    def _hide(self, hits: Sequence[Hit]) -> None:
        self._store.surrender([hit.id for hit in hits], mode="release")

    def _delete(self, ids: Sequence[Id]) -> None:
        for id in ids:
            del self._texts[id]
        self._store.surrender(ids, mode="purge")

    def _keep(self, id: int, text: str) -> int:
        self._texts[id] = text
        return id


def _load() -> Any:
    """The package `lethe`, on an SQLite that can load its vector extension."""
    wanted_by = "adapter 'lethe'"
    if version("pylethe") is None:
        # Two other projects own the same import name.
        raise UserError(f"{wanted_by} needs pylethe, which is not installed.\n    {install_line('lethe')}")
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return require("lethe", "lethe", wanted_by)
    stand_in = require("pysqlite3", "lethe", f"{wanted_by}, on a Python whose sqlite3 cannot load extensions,")
    sys.modules["sqlite3"] = stand_in
    try:
        return require("lethe", "lethe", wanted_by)
    finally:
        sys.modules["sqlite3"] = sqlite3
