"""LlamaIndex (PyPI `llama-index-core`): a VectorStoreIndex over its own simple vector store."""

from collections.abc import Sequence
from itertools import count
from typing import Any, ClassVar

from forget_eval.adapters.by_id import Id, StoreById
from forget_eval.adapters.scratch import Scratch
from forget_eval.packages import require
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale

_WHOLE = 1_000_000  # tokens of a chunk: no fact is cut into several


class LlamaIndexMemory(StoreById):
    """A new index for each reset; a fact is a document. Ids are chosen by the shared policies over its cosines.

    A supersede is the index's own update of a document, a purge deletes documents. A stored document cannot be hidden.
    """

    name = "llama-index"
    distribution = "llama-index-core"
    extra = "llama-index"
    tried = "0.14.25"
    needs = ""
    operations: ClassVar = {"supersede": Kind.NATIVE, "purge": Kind.NATIVE}
    parallel = True
    choosers: ClassVar = {"supersede": Chooser.POLICY, "purge": Chooser.POLICY}
    score_scale = Scale.COSINE

    def __init__(self, embed: Embedder) -> None:
        self._scratch = Scratch()
        with self._scratch.home():
            self._core = require("llama_index.core", "llama-index", "adapter 'llama-index'")
            parsers = require("llama_index.core.node_parser", "llama-index", "adapter 'llama-index'")
            self._splitter = parsers.SentenceSplitter(chunk_size=_WHOLE)
        self._model = _model(embed)
        self.reset()

    def reset(self) -> None:
        """Opens a new index; the old one is garbage."""
        self._ids = count()
        self._index: Any = self._core.VectorStoreIndex(
            nodes=[], embed_model=self._model, transformations=[self._splitter]
        )

    def inscribe(self, text: str) -> str:
        """Inserts a document."""
        id = str(next(self._ids))
        self._index.insert(self._core.Document(id_=id, text=text))
        return id

    def stored_in(self) -> None:
        """In memory."""

    def close(self) -> None:
        """Removes the folder."""
        self._scratch.close()

    def _nearest(self, query: str, k: int) -> list[Hit]:
        found = self._index.as_retriever(similarity_top_k=k).retrieve(query)
        return [Hit(hit.node.ref_doc_id, hit.node.get_content(), hit.score) for hit in found]

    def _stored(self) -> list[tuple[Id, str]]:
        return [(node.ref_doc_id, node.get_content()) for node in self._index.docstore.docs.values()]

    def _replace(self, id: Id, text: str) -> None:
        self._index.update_ref_doc(self._core.Document(id_=id, text=text))

    def _delete(self, ids: Sequence[Id]) -> None:
        for id in ids:
            self._index.delete_ref_doc(id, delete_from_docstore=True)


def _model(embed: Embedder) -> Any:
    base = require("llama_index.core.embeddings", "llama-index", "adapter 'llama-index'")

    class Model(base.BaseEmbedding):  # type: ignore[misc, name-defined]
        def _get_text_embedding(self, text: str) -> list[float]:
            vector: list[float] = embed([text])[0].tolist()
            return vector

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    return Model()
