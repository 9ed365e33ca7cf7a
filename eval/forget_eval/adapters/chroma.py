"""Chroma (PyPI `chromadb`), in this process and in memory: a vector store with an approximate index."""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, ClassVar
from uuid import uuid4

from forget_datasets.rows import OPERATIONS
from forget_eval.adapters.by_id import BatchStore, HidingStore, Id
from forget_eval.adapters.scratch import Scratch
from forget_eval.packages import require
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale

_LIVE = {"released": False}


class ChromaMemory(HidingStore, BatchStore):
    """A new client and collection for each reset. Ids are chosen by the shared policies over 1 - distance.

    A supersede updates a record and a purge deletes records. Chroma has no notion of hiding, so a release sets a flag
    in the metadata, which every query filters by.
    """

    name = "chroma"
    distribution = "chromadb"
    extra = "chroma"
    tried = "1.5.9"
    needs = ""
    operations: ClassVar = {"supersede": Kind.NATIVE, "release": Kind.EMULATED, "purge": Kind.NATIVE}
    parallel = True
    choosers: ClassVar = dict.fromkeys(OPERATIONS, Chooser.POLICY)
    score_scale = Scale.COSINE

    def __init__(self, embed: Embedder, on_disk: bool = False) -> None:
        self._on_disk = on_disk
        self._scratch = Scratch()
        with self._scratch.home():
            self._chromadb: Any = require("chromadb", "chroma", "adapter 'chroma'")
        self._embed = embed
        self._name = f"facts-{uuid4().hex}"  # the clients of a process share one store
        self._client: Any = None
        self.reset()

    def reset(self) -> None:
        """Makes an empty collection with a new client: a client keeps the memory of deleted ones."""
        self._drop()
        self._ids = count()
        with self._scratch.home():
            self._client = self._opened()
        cosine = {"hnsw": {"space": "cosine"}}
        self._facts: Any = self._client.create_collection(self._name, configuration=cosine, embedding_function=None)

    def inscribe_many(self, texts: Sequence[str]) -> list[str]:
        """Adds records in one call."""
        ids = [str(next(self._ids)) for _ in texts]
        if ids:
            metadatas = [_LIVE for _ in ids]
            self._facts.add(ids=ids, documents=list(texts), embeddings=self._embed(texts), metadatas=metadatas)
        return ids

    def stored_in(self) -> str | None:
        """Where its files are."""
        return self._scratch.folder if self._on_disk else None

    def maintain(self) -> str:
        """Chroma's own command, which writes its database anew."""
        program = "import sys; from chromadb.cli.cli import app; sys.argv[0] = 'chroma'; app()"
        words = ["vacuum", "--path", self._scratch.folder, "--force"]
        done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"chroma vacuum: {(done.stderr or done.stdout).strip()}")
        return "chroma vacuum"

    def close(self) -> None:
        """Deletes the collection, closes the client and removes the folder."""
        self._drop()
        self._scratch.close()

    def _opened(self) -> Any:
        settings = self._chromadb.Settings(anonymized_telemetry=False)
        if self._on_disk:
            return self._chromadb.PersistentClient(self._scratch.folder, settings)
        return self._chromadb.EphemeralClient(settings)

    def _drop(self) -> None:
        if self._client is not None:
            self._client.delete_collection(self._name)
            self._client.close()
            self._client = None

    def _nearest(self, query: str, k: int) -> list[Hit]:
        found = self._facts.query(query_embeddings=self._embed([query]), n_results=k, where=_LIVE)
        rows = zip(found["ids"][0], found["documents"][0], found["distances"][0], strict=True)
        return [Hit(id, text, 1.0 - distance) for id, text, distance in rows]

    def _stored(self) -> Iterable[tuple[Id, str]]:
        stored = self._facts.get(include=["documents"])
        return zip(stored["ids"], stored["documents"], strict=True)

    def _replace(self, id: Id, text: str) -> None:
        self._facts.update(ids=[id], documents=[text], embeddings=self._embed([text]))

    def _hide(self, hits: Sequence[Hit]) -> None:
        self._facts.update(ids=[hit.id for hit in hits], metadatas=[{"released": True} for _ in hits])

    def _delete(self, ids: Sequence[Id]) -> None:
        self._facts.delete(ids=ids)
