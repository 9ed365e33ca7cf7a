"""Mem0 (PyPI `mem0ai`): its store and its operations by id, without a language model."""

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

from forget_datasets.rows import OPERATIONS
from forget_eval.adapters.by_id import BatchStore, HidingStore, Id
from forget_eval.adapters.scratch import Scratch
from forget_eval.embedding import width
from forget_eval.packages import require
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale

_USER = "user"
_LONG_AGO = "2000-01-01"
_ALL = 1_000_000


class Mem0Memory(HidingStore, BatchStore):
    """Facts are added as they are (`infer=False`); a reset is Mem0's own. Ids are chosen by the shared policies.

    A supersede updates a memory, a release lets it expire, a purge deletes it. A recall keeps Mem0's own threshold, so
    it may return fewer than k; the policies see every score. Mem0's keyword search and entities need further packages,
    one of which fetches a model: without them its scores are cosines.
    """

    name = "mem0"
    distribution = "mem0ai"
    extra = "mem0"
    tried = "2.2.1"
    needs = ""
    operations: ClassVar = dict.fromkeys(OPERATIONS, Kind.NATIVE)
    parallel = True
    choosers: ClassVar = dict.fromkeys(OPERATIONS, Chooser.POLICY)
    score_scale = Scale.COSINE

    def __init__(self, embed: Embedder, on_disk: bool = False) -> None:
        self._on_disk = on_disk
        logging.getLogger("mem0").setLevel(logging.ERROR)  # each reset would warn that it resets
        self._scratch = Scratch()
        with self._scratch.home(MEM0_DIR=self._scratch.folder):
            mem0 = require("mem0", "mem0", "adapter 'mem0'")
            self._memory = mem0.Memory.from_config(_config(width(embed), self.stored_in()))
        self._memory.embedding_model = _model(embed)

    def reset(self) -> None:
        """Empties Mem0's collection and its history."""
        self._memory.reset()

    def inscribe_many(self, texts: Sequence[str]) -> list[str]:
        """Adds one memory for each text."""
        messages = [{"role": "user", "content": text} for text in texts]
        added = self._memory.add(messages, user_id=_USER, infer=False)["results"]
        return [memory["id"] for memory in added]

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        """Mem0's search, with its default threshold."""
        found = self._memory.search(query, filters={"user_id": _USER}, top_k=k)["results"]
        return [memory["memory"] for memory in found]

    def stored_in(self) -> str | None:
        """Where its files are."""
        return self._scratch.folder if self._on_disk else None

    def close(self) -> None:
        """Closes Mem0, the store below it and the folder."""
        self._memory.close()
        self._memory.vector_store.client.close()
        self._scratch.close()

    def _nearest(self, query: str, k: int) -> list[Hit]:
        found = self._memory.search(query, filters={"user_id": _USER}, top_k=k, threshold=0.0)["results"]
        return [Hit(memory["id"], memory["memory"], memory["score"]) for memory in found]

    def _stored(self) -> list[tuple[Id, str]]:
        stored = self._memory.get_all(filters={"user_id": _USER}, top_k=_ALL, show_expired=True)["results"]
        return [(memory["id"], memory["memory"]) for memory in stored]

    def _replace(self, id: Id, text: str) -> None:
        self._memory.update(id, text=text)

    def _hide(self, hits: Sequence[Hit]) -> None:
        for hit in hits:
            self._memory.update(hit.id, expiration_date=_LONG_AGO)

    def _delete(self, ids: Sequence[Id]) -> None:
        for id in ids:
            self._memory.delete(id)


def _config(dim: int, folder: str | None) -> dict[str, Any]:
    """All in memory or in a folder; Mem0 wants clients of a model and an embedder, though nothing asks them."""
    facts, history = (f"{folder}/facts", f"{folder}/history.db") if folder else (":memory:", ":memory:")
    unused = {"provider": "openai", "config": {"api_key": "unused"}}
    store = {"collection_name": "facts", "path": facts, "embedding_model_dims": dim}
    vector_store = {"provider": "qdrant", "config": store}
    return {"vector_store": vector_store, "llm": unused, "embedder": unused, "history_db_path": history}


def _model(embed: Embedder) -> Any:
    base = require("mem0.embeddings.base", "mem0", "adapter 'mem0'")

    class Model(base.EmbeddingBase):  # type: ignore[misc, name-defined]
        def __init__(self) -> None: ...

        def embed(self, text: str, memory_action: str | None = None) -> list[float]:
            vector: list[float] = embed([text])[0].tolist()
            return vector

    return Model()
