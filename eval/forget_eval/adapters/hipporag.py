"""HippoRAG 2 (PyPI `hipporag`): its graph and its PageRank, over triples that fixed rules make of each text."""

import shutil
from collections.abc import Sequence
from itertools import count
from typing import Any, ClassVar

from forget_eval.adapters import hipporag_package
from forget_eval.adapters.by_id import BatchStore, Id
from forget_eval.adapters.hipporag_rules import entities, sha256_of_rules, triples
from forget_eval.adapters.scratch import Scratch
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale

_LINKED = 1
COMMON: dict[str, Any] = {
    "inscribe_many": "one index() of all texts",
    "instructions": "left out of what is embedded",
    "work_arounds": ["facts weigh more than 0", "what was looked up is dropped after index()"],
    "work_arounds_sha256": hipporag_package.sha256_of_work_arounds(),
}
"""What the manifest says of each of HippoRAG's configurations."""


class HipporagMemory(BatchStore):
    """One index in a folder for each reset. A purge deletes documents, and with them what only they had stated.

    HippoRAG extracts triples with a language model and has it choose among the facts that fit a query. Here fixed rules
    extract them, and the fact that fits best is taken: it is HippoRAG's graph under our rules. It neither changes nor
    hides a document: a supersede deletes one and indexes one, and there is no release. Deleting its last document would
    leave it unable to index another: the index is made anew then. Two equal texts are one document.
    """

    name = "hipporag (rule triples)"
    distribution = "hipporag"
    extra = ""
    tried = "2.0.0a4"
    needs = ""
    languages: ClassVar = ("en",)  # it drops all letters but A to Z
    parallel = True
    operations: ClassVar = {"supersede": Kind.EMULATED, "purge": Kind.NATIVE}
    choosers: ClassVar = {"supersede": Chooser.POLICY, "purge": Chooser.POLICY}
    score_scale = Scale.NONE
    configuration: ClassVar = {
        **COMMON,
        "extraction": "fixed rules, without a language model",
        "rules_sha256": sha256_of_rules(),
        "linking_top_k": _LINKED,  # with no model to choose among several, more would be taken unseen
        "fact_filter": None,
    }

    def __init__(self, embed: Embedder) -> None:
        self._hippo: Any = None
        self._folder: str | None = None
        self._scratch = Scratch()
        self._folders = count()
        self._embeddings = hipporag_package.Embeddings(embed)
        try:
            with self._home():
                self._of = hipporag_package.Package()
            self.reset()
        except BaseException:
            self.close()
            raise

    def reset(self) -> None:
        """Removes the folder of the index and makes an empty one in another."""
        self._drop()
        self._folder = f"{self._scratch.folder}/{next(self._folders)}"
        with self._home():
            self._hippo = self._made(self._of.configured(save_dir=self._folder))

    def inscribe_many(self, texts: Sequence[str]) -> list[str]:
        """Indexes documents at once: HippoRAG doubles edges of the older ones whenever it indexes."""
        if texts:
            self._hippo.index(list(texts))
        return list(texts)

    def stored_in(self) -> str:
        """Where its files are."""
        return self._scratch.folder

    def close(self) -> None:
        """Removes the folder."""
        self._drop()
        self._scratch.close()

    def _made(self, config: Any) -> Any:
        """An index, with rules where a model would extract facts and choose among them."""
        config.llm_name, config.linking_top_k = "rules", _LINKED
        hippo = self._of.made(config, self._embeddings, lambda config: _NoModel())
        hippo.openie = _Rules(self._of.rows)
        hippo.rerank_filter = _keep
        return hippo

    def _nearest(self, query: str, k: int) -> list[Hit]:
        if not self._hippo.chunk_embedding_store.texts:
            return []
        [found] = self._searched(query, k)
        return [Hit(text, text, score) for text, score in zip(found.docs, found.doc_scores.tolist(), strict=True)]

    def _stored(self) -> list[tuple[Id, str]]:
        return [(text, text) for text in self._hippo.chunk_embedding_store.texts]

    def _searched(self, query: str, k: int) -> Any:
        return self._hippo.retrieve([query], num_to_retrieve=k)

    def _delete(self, ids: Sequence[Id]) -> None:
        """It deletes documents by their texts, which are their ids here."""
        if len(ids) == len(self._hippo.chunk_embedding_store.texts):
            self.reset()
        else:
            self._hippo.delete(list(ids))

    def _drop(self) -> None:
        self._hippo = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _home(self) -> Any:
        return self._scratch.home(**hipporag_package.QUIET)


class HipporagDense(HipporagMemory):
    """The same index, searched by HippoRAG's dense retrieval of passages: what the graph adds is the difference."""

    name = "hipporag (dense only)"
    environment = "hipporag"
    configuration: ClassVar = {**COMMON, "retrieval": "retrieve_dpr, without the graph"}

    def _searched(self, query: str, k: int) -> Any:
        return self._hippo.retrieve_dpr([query], num_to_retrieve=k)


class _Rules:
    """Stands for HippoRAG's extraction."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def batch_openie(self, chunks: dict[str, dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Entities and triples of each chunk, by its id."""
        named, stated = {}, {}
        for id, chunk in chunks.items():
            found = triples(chunk["content"])
            named[id] = self._rows.NerRawOutput(id, "", entities(found), {})
            stated[id] = self._rows.TripleRawOutput(id, "", [list(triple) for triple in found], {})
        return named, stated


class _NoModel:
    """Stands for the language model."""

    def infer(self, *messages: Any, **options: Any) -> Any:
        """Raises RuntimeError."""
        raise RuntimeError("hipporag asked a language model, of which there is none")


def _keep(
    query: str, facts: Sequence[Any], indices: Sequence[int], len_after_rerank: int
) -> tuple[list[int], list[Any], dict[str, Any]]:
    """Stands for the model that chooses among the facts that fit a query: it keeps them all."""
    return list(indices[:len_after_rerank]), list(facts[:len_after_rerank]), {}
