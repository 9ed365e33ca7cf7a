"""MemPalace (PyPI `mempalace`): the tools that its server offers, called in this process."""

import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, ClassVar

from forget_eval.adapters.by_id import Id, StoreById
from forget_eval.adapters.scratch import Scratch
from forget_eval.packages import require
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale

_ROOM = "facts"
_PAGE = 100  # drawers that a listing gives at once


class MempalaceMemory(StoreById):
    """A fresh wing for each reset, the old one's drawers deleted. Ids are chosen by the shared policies.

    A recall is MemPalace's search: vectors, ranked again by words. A supersede updates a drawer and a purge deletes
    drawers; MemPalace cannot hide a drawer. What it cuts into chunks, it recalls in chunks. A text that its wing has
    held before is not stored anew, whatever its drawer holds by now.
    """

    name = "mempalace"
    distribution = "mempalace"
    extra = "mempalace"
    tried = "3.11.0"
    needs = ""
    operations: ClassVar = {"supersede": Kind.NATIVE, "purge": Kind.NATIVE}
    parallel = True
    choosers: ClassVar = {"supersede": Chooser.POLICY, "purge": Chooser.POLICY}
    score_scale = Scale.COSINE

    def __init__(self, embed: Embedder) -> None:
        self._scratch = Scratch()
        self._variables = _variables(self._scratch.folder)
        with self._scratch.home(**self._variables):
            self._tools = _tools()
            _replace_model(embed)
        self._wings = count()
        self._enter_wing()
        self.inscribe("the palace is built with its first drawer")
        self.reset()

    def reset(self) -> None:
        """Deletes the drawers of the wing and enters a new one."""
        self._delete([drawer["drawer_id"] for drawer in self._drawers()])
        self._enter_wing()

    def inscribe(self, text: str) -> str:
        """Files a drawer."""
        id: str = self._ask("add_drawer", wing=self._wing, room=_ROOM, content=text)["drawer_id"]
        return id

    def stored_in(self) -> str:
        """Where its files are, and its logs."""
        return self._scratch.folder

    def maintain(self) -> str:
        """MemPalace's own: its index is built anew, and its database written anew."""
        repair: Any = require("mempalace.repair", "mempalace", "adapter 'mempalace'")
        with self._scratch.home(**self._variables):
            repair.rebuild_index(self._variables["MEMPALACE_PALACE_PATH"])
        return "mempalace repair"

    def close(self) -> None:
        """Removes the palace; looking for it once more, MemPalace closes what it has open."""
        shutil.rmtree(self._variables["MEMPALACE_PALACE_PATH"], ignore_errors=True)
        with suppress(RuntimeError):
            self._ask("reconnect")
        self._scratch.close()

    def _enter_wing(self) -> None:
        self._wing = f"wing-{next(self._wings)}"

    def _nearest(self, query: str, k: int) -> list[Hit]:
        found = self._ask("search", query=query, limit=k, wing=self._wing, room=_ROOM)["results"]
        return [Hit(hit["drawer_id"], hit["text"], hit["similarity"]) for hit in found]

    def _stored(self) -> Iterator[tuple[Id, str]]:
        return ((drawer["drawer_id"], drawer["content"]) for drawer in self._drawers())

    def _replace(self, id: Id, text: str) -> None:
        self._ask("update_drawer", drawer_id=id, content=text)

    def _drawers(self) -> Iterator[dict[str, Any]]:
        """All drawers of the wing, whole."""
        for offset in count(0, _PAGE):
            page = self._ask("list_drawers", wing=self._wing, limit=_PAGE, offset=offset)["drawers"]
            if not page:
                return
            yield from self._ask("get_drawers", drawer_ids=[drawer["drawer_id"] for drawer in page])["results"]

    def _delete(self, ids: Sequence[Id]) -> None:
        for start in range(0, len(ids), _PAGE):
            self._ask("delete_drawers", drawer_ids=list(ids[start : start + _PAGE]))

    def _ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answers. MemPalace returns its errors: they are raised here, in its own words."""
        with self._scratch.home(**self._variables):
            answer: dict[str, Any] = getattr(self._tools, f"tool_{tool}")(**arguments)
        failed = [answer, *(item for item in answer.get("results", ()) if item.get("error"))]
        if answer.get("error") or answer.get("errors") or answer.get("success") is False:
            raise RuntimeError(f"mempalace: {tool}: {failed[-1].get('error') or answer}")
        return answer


def _tools() -> Any:
    """The module of its tools, told to leave logging alone: it does where the root logger has a handler."""
    for name in ("mempalace", "mempalace_mcp"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # its answers hold its errors
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        return require("mempalace.mcp_server", "mempalace", "adapter 'mempalace'")
    finally:
        logging.getLogger().removeHandler(handler)


def _variables(folder: str) -> dict[str, str]:
    """Its palace in the folder, and an embedder that it would ask over HTTP, were it not replaced."""
    return {
        "MEMPALACE_CONFIG_DIR": folder,
        "MEMPALACE_PALACE_PATH": f"{folder}/palace",
        "MEMPALACE_BACKEND": "chroma",
        "MEMPALACE_EMBEDDING_MODEL": "openai-compat",
        "MEMPALACE_EMBEDDING_API_URL": "http://127.0.0.1:9",
        "MEMPALACE_EMBEDDING_API_MODEL": "injected",
    }


def _replace_model(embed: Embedder) -> None:
    """Puts our embedder where MemPalace keeps its own: it has no door for a function."""
    embedding: Any = require("mempalace.embedding", "mempalace", "adapter 'mempalace'")

    class Model(embedding.OpenAICompatEmbeddingFunction):  # type: ignore[misc]
        def __call__(self, input: Sequence[str]) -> list[list[float]]:
            vectors: list[list[float]] = embed(list(input)).tolist()
            return vectors

    before = embedding.get_embedding_function()
    key = next(key for key, model in embedding._EF_CACHE.items() if model is before)
    embedding._EF_CACHE[key] = Model("http://127.0.0.1:9", "injected")
