"""LanceDB (PyPI `lancedb`), in memory: a vector store without an index, so its search is exact."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import count
from typing import Any, ClassVar

from forget_datasets.rows import OPERATIONS
from forget_eval.adapters.by_id import BatchStore, HidingStore, Id
from forget_eval.adapters.scratch import Scratch
from forget_eval.embedding import width
from forget_eval.packages import require
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale

_NAME = "facts"


class LancedbMemory(HidingStore, BatchStore):
    """A new table for each reset, the old one dropped. Ids are chosen by the shared policies over 1 - distance.

    A supersede updates a row and a purge deletes rows; LanceDB keeps old versions of the table, which no search reads.
    It has no notion of hiding, so a release sets a flag, which every search filters by.
    """

    name = "lancedb"
    distribution = "lancedb"
    extra = "lancedb"
    tried = "0.40.0"
    needs = ""
    operations: ClassVar = {"supersede": Kind.NATIVE, "release": Kind.EMULATED, "purge": Kind.NATIVE}
    parallel = True
    choosers: ClassVar = dict.fromkeys(OPERATIONS, Chooser.POLICY)
    score_scale = Scale.COSINE

    def __init__(self, embed: Embedder, on_disk: bool = False) -> None:
        self._on_disk = on_disk
        self._resets = count()
        self._scratch = Scratch()
        with self._scratch.home():
            self._lancedb = require("lancedb", "lancedb", "adapter 'lancedb'")
            arrow = require("pyarrow", "lancedb", "adapter 'lancedb'")
        self._embed = embed
        vector = arrow.list_(arrow.float32(), width(embed))
        columns = {"id": arrow.int64(), "text": arrow.string(), "released": arrow.bool_(), "vector": vector}
        self._schema = arrow.schema(columns)
        self.reset()

    def reset(self) -> None:
        """Opens a new database with an empty table; in memory, the old one goes with its last handle."""
        self._ids = count()
        place = f"{self._scratch.folder}/{next(self._resets)}" if self._on_disk else "memory://"
        self._facts: Any = self._lancedb.connect(place).create_table(_NAME, schema=self._schema)

    def inscribe_many(self, texts: Sequence[str]) -> list[int]:
        """Adds rows in one call."""
        ids = [next(self._ids) for _ in texts]
        rows = zip(ids, texts, self._embed(texts), strict=True)
        if ids:
            self._facts.add([{"id": id, "text": text, "released": False, "vector": row} for id, text, row in rows])
        return ids

    def stored_in(self) -> str | None:
        """Where its files are."""
        return self._scratch.folder if self._on_disk else None

    def maintain(self) -> str:
        """LanceDB's own: small files are merged, and old versions removed at once."""
        self._facts.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
        return "optimize(cleanup_older_than=0, delete_unverified)"

    def close(self) -> None:
        """Lets go of the database and removes the folder."""
        self._facts = None
        self._scratch.close()

    def _nearest(self, query: str, k: int) -> list[Hit]:
        search = self._facts.search(self._embed([query])[0]).distance_type("cosine")
        found = search.where("NOT released", prefilter=True).limit(k).to_list()
        return [Hit(row["id"], row["text"], 1.0 - row["_distance"]) for row in found]

    def _stored(self) -> Iterable[tuple[Id, str]]:
        stored = self._facts.to_arrow().select(["id", "text"]).to_pydict()
        return zip(stored["id"], stored["text"], strict=True)

    def _replace(self, id: Id, text: str) -> None:
        values = {"text": text, "vector": self._embed([text])[0].tolist()}
        self._facts.update(where=_among([id]), values=values)

    def _hide(self, hits: Sequence[Hit]) -> None:
        self._facts.update(where=_among([hit.id for hit in hits]), values={"released": True})

    def _delete(self, ids: Sequence[Id]) -> None:
        self._facts.delete(_among(ids))


def _among(ids: Sequence[Id]) -> str:
    return f"id IN ({', '.join(map(str, ids))})"
