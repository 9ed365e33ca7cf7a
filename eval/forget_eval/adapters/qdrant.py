"""Qdrant (PyPI `qdrant-client`), in its local mode: the plain vector store, exact search in this process."""

from collections.abc import Sequence
from itertools import count
from typing import ClassVar

from forget_datasets.rows import OPERATIONS
from forget_eval.adapters.by_id import BatchStore, HidingStore, Id
from forget_eval.adapters.scratch import Scratch
from forget_eval.embedding import width
from forget_eval.packages import require
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale

_NAME = "facts"


class QdrantMemory(HidingStore, BatchStore):
    """One collection in memory, made anew by each reset. Ids are chosen by the shared policies over Qdrant's cosines.

    A supersede writes over the point of the old fact and a purge deletes points. Qdrant has no notion of hiding, so a
    release sets a flag in the payload, which every search filters by.
    """

    name = "qdrant"
    distribution = "qdrant-client"
    extra = "qdrant"
    tried = "1.20.0"
    needs = ""
    operations: ClassVar = {"supersede": Kind.NATIVE, "release": Kind.EMULATED, "purge": Kind.NATIVE}
    parallel = True
    choosers: ClassVar = dict.fromkeys(OPERATIONS, Chooser.POLICY)
    score_scale = Scale.COSINE

    def __init__(self, embed: Embedder, on_disk: bool = False) -> None:
        self._scratch = Scratch() if on_disk else None
        place = {"path": self._scratch.folder} if self._scratch else {"location": ":memory:"}
        self._client = require("qdrant_client", "qdrant", "adapter 'qdrant'").QdrantClient(**place)
        self._models = require("qdrant_client.models", "qdrant", "adapter 'qdrant'")
        self._embed = embed
        self._shape = self._models.VectorParams(size=width(embed), distance=self._models.Distance.COSINE)
        released = self._models.FieldCondition(key="released", match=self._models.MatchValue(value=True))
        self._live = self._models.Filter(must_not=[released])
        self.reset()

    def reset(self) -> None:
        """Drops the collection and makes an empty one."""
        self._ids = count()
        self._client.delete_collection(_NAME)
        self._client.create_collection(_NAME, vectors_config=self._shape)

    def inscribe_many(self, texts: Sequence[str]) -> list[int]:
        """Adds points in one upsert."""
        ids = [next(self._ids) for _ in texts]
        self._write(ids, texts)
        return ids

    def stored_in(self) -> str | None:
        """Where its files are."""
        return self._scratch.folder if self._scratch else None

    def close(self) -> None:
        """Closes the client and removes the folder, if there is one."""
        self._client.close()
        if self._scratch:
            self._scratch.close()

    def _nearest(self, query: str, k: int) -> list[Hit]:
        vector = self._embed([query])[0].tolist()
        found = self._client.query_points(_NAME, query=vector, query_filter=self._live, limit=k).points
        return [Hit(point.id, point.payload["text"], point.score) for point in found]

    def _stored(self) -> list[tuple[Id, str]]:
        points = self._client.scroll(_NAME, limit=self._client.count(_NAME).count or 1)[0]
        return [(point.id, point.payload["text"]) for point in points]

    def _replace(self, id: Id, text: str) -> None:
        self._write([id], [text])

    def _hide(self, hits: Sequence[Hit]) -> None:
        self._client.set_payload(_NAME, payload={"released": True}, points=[hit.id for hit in hits])

    def _delete(self, ids: Sequence[Id]) -> None:
        self._client.delete(_NAME, points_selector=ids)

    def _write(self, ids: Sequence[Id], texts: Sequence[str]) -> None:
        vectors = self._embed(texts).tolist()
        rows = zip(ids, vectors, texts, strict=True)
        points = [self._models.PointStruct(id=id, vector=vector, payload={"text": text}) for id, vector, text in rows]
        if points:
            self._client.upsert(_NAME, points=points)
