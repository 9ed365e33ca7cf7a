"""The store of LangGraph (PyPI `langgraph`): InMemoryStore with an index."""

from collections.abc import Sequence
from itertools import count
from typing import Any, ClassVar

from forget_datasets.rows import OPERATIONS
from forget_eval.adapters.by_id import HidingStore, Id
from forget_eval.embedding import width
from forget_eval.packages import require
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale

_PLACE = ("facts",)


class LanggraphMemory(HidingStore):
    """A new store for each reset. Ids are chosen by the shared policies over the store's cosines.

    A supersede puts a new value under the key of the old fact, and a purge deletes keys. This store keeps no time to
    live, so a release puts a flag into the value, which every search filters by.
    """

    name = "langgraph"
    distribution = "langgraph"
    extra = "langgraph"
    tried = "1.2.24"
    needs = ""
    operations: ClassVar = {"supersede": Kind.NATIVE, "release": Kind.EMULATED, "purge": Kind.NATIVE}
    parallel = True
    choosers: ClassVar = dict.fromkeys(OPERATIONS, Chooser.POLICY)
    score_scale = Scale.COSINE

    def __init__(self, embed: Embedder) -> None:
        self._memory = require("langgraph.store.memory", "langgraph", "adapter 'langgraph'")
        dim = width(embed)
        self._index = {"dims": dim, "embed": lambda texts: embed(texts).tolist(), "fields": ["text"]}
        self.reset()

    def reset(self) -> None:
        """Opens a new store; the old one is garbage."""
        self._ids = count()
        self._store: Any = self._memory.InMemoryStore(index=self._index)

    def inscribe(self, text: str) -> str:
        """Puts a value under a new key. (A batch that holds a text twice, the store refuses.)"""
        id = str(next(self._ids))
        self._store.put(_PLACE, id, _value(text))
        return id

    def stored_in(self) -> None:
        """In memory."""

    def _nearest(self, query: str, k: int) -> list[Hit]:
        found = self._store.search(_PLACE, query=query, filter={"released": False}, limit=k)
        return [Hit(item.key, item.value["text"], item.score or 0.0) for item in found]

    def _stored(self) -> list[tuple[Id, str]]:
        stored = self._store.search(_PLACE, limit=next(self._ids))  # no more keys than were given out
        return [(item.key, item.value["text"]) for item in stored]

    def _replace(self, id: Id, text: str) -> None:
        self._store.put(_PLACE, id, _value(text))

    def _hide(self, hits: Sequence[Hit]) -> None:
        for hit in hits:
            self._store.put(_PLACE, hit.id, _value(hit.text, released=True))

    def _delete(self, ids: Sequence[Id]) -> None:
        for id in ids:
            self._store.delete(_PLACE, id)


def _value(text: str, released: bool = False) -> dict[str, Any]:
    return {"text": text, "released": released}
