"""Zep (PyPI `zep-cloud`), the hosted service: written after its documented API, and never tried with the service."""

import os
import time
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, ClassVar

from forget_datasets.errors import UserError
from forget_eval.adapters.by_id import BatchStore, Id
from forget_eval.packages import require
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Kind, Scale

_KEY = "ZEP_API_KEY"
_MOST = 100  # edges that one request may add, and that a page may hold
_LONGEST = 120.0  # seconds that the service may take for one task
_PAUSE = 0.1
_GOING_ON = ("pending", "processing")


class ZepMemory(BatchStore):
    """One graph for each reset, deleted afterwards. A fact is an edge, and all edges join the same two nodes.

    Edges are added as they are (`deduplicate` is false), so that no model rewrites or contradicts them. A supersede
    updates an edge and a purge deletes edges; the API cannot let an edge expire that is there, so there is no release.
    The service embeds by itself, and its scores are ranks.

    Args:
        base_url: of the service, if it is another than the package's.

    Raises:
        UserError: the package is missing, or there is no key.
    """

    name = "zep"
    distribution = "zep-cloud"
    extra = "zep"
    needs = f"not tried: hosted service; {_KEY}"
    operations: ClassVar = {"supersede": Kind.NATIVE, "purge": Kind.NATIVE}
    choosers: ClassVar = {"supersede": Chooser.POLICY, "purge": Chooser.POLICY}
    score_scale = Scale.NONE

    def __init__(self, base_url: str | None = None) -> None:
        zep = require("zep_cloud", "zep", "adapter 'zep'")
        key = os.environ.get(_KEY)
        if not key:
            raise UserError(f"adapter 'zep' sends every fact to Zep's servers, and needs a key: set {_KEY}.")
        self._client = zep.Zep(api_key=key, base_url=base_url)
        self._graph: str | None = None
        self._names = count()
        self.reset()

    def reset(self) -> None:
        """Deletes the graph and creates one."""
        self._delete_graph()
        self._texts: dict[Id, str] = {}
        self._graph = self._client.graph.create(name=f"forget-eval-{next(self._names)}").uuid_

    def inscribe_many(self, texts: Sequence[str]) -> list[str]:
        """Adds edges, many in one request, and waits until they can be found."""
        ids: list[str] = []
        for start in range(0, len(texts), _MOST):
            edges = [_edge(text) for text in texts[start : start + _MOST]]
            added = self._client.graph.edge.add(self._graph, edges=edges, deduplicate=False)
            self._wait(added.task)
            ids += [edge.uuid_ for edge in added.edges]
        self._texts.update(zip(ids, texts, strict=True))
        return ids

    def close(self) -> None:
        """Deletes the graph. A second time nothing."""
        self._delete_graph()

    def _nearest(self, query: str, k: int) -> list[Hit]:
        found = self._client.graph.search_edges(self._graph, query=query, page_size=min(k, _MOST)).items or []
        return [Hit(edge.uuid_, edge.fact, edge.score or 0.0) for edge in found[:k]]

    def _stored(self) -> Iterable[tuple[Id, str]]:
        return self._texts.items()

    def _replace(self, id: Id, text: str) -> None:
        self._client.graph.edge.update(self._graph, id, fact=text)
        self._texts[id] = text

    def _delete(self, ids: Sequence[Id]) -> None:
        for id in ids:
            self._wait(self._client.graph.edge.delete(self._graph, id).task)
            del self._texts[id]

    def _delete_graph(self) -> None:
        if self._graph is not None:
            graph, self._graph = self._graph, None
            self._wait(self._client.graph.delete(graph).task)

    def _wait(self, task: Any) -> None:
        """Until a task of the service has ended; what it failed of is raised in its own words."""
        deadline = time.monotonic() + _LONGEST
        while task.status in _GOING_ON:
            if time.monotonic() > deadline:
                raise TimeoutError(f"zep: {task.type}: not done after {_LONGEST:g} seconds")
            time.sleep(_PAUSE)
            task = self._client.task.get(task.uuid_)
        if task.status != "succeeded":
            raise RuntimeError(f"zep: {task.type}: {task.error.message if task.error else task.status}")


def _edge(text: str) -> dict[str, Any]:
    return {"fact": text, "fact_name": "STATES", "source_node": {"name": "User"}, "target_node": {"name": "Fact"}}
