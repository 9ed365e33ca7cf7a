"""Any memory server that speaks MCP, by a mapping from our operations to its tools: `mcp:lethe`, `mcp:my.toml`."""

import secrets
from collections.abc import Sequence
from typing import Any, ClassVar

from forget_eval import policies
from forget_eval.mcp_servers import answers, mapping
from forget_eval.mcp_servers.answers import AnswerFault
from forget_eval.mcp_servers.mapping import Call, ServerMapping
from forget_eval.mcp_servers.templates import filled
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder

_PREFIX = "mcp"
_AT_ONCE = 100  # ids in one call


def is_name(name: str) -> bool:
    """Whether an adapter's name asks for a server: `mcp:` and a mapping."""
    return name.partition(":")[0] == _PREFIX


def find(name: str) -> type:
    """The class of a server's adapter, which has the operations that the mapping has.

    Args:
        name: `mcp:` and the name of a shipped mapping, or the path of a TOML file.

    Raises:
        UserError: there is no such mapping, or it is wrong.
    """
    found = mapping.load(name.partition(":")[2])
    base = EmbeddingMcpMemory if found.wants_embedder else McpMemory
    attributes = {
        "name": f"{_PREFIX}:{found.name}",
        "environment": found.server.get("environment", ""),
        "serves": found.server.get("distribution", ""),
        "operations": {op: found.calls[op].keys["kind"] for op in found.operations},
        "choosers": {op: found.calls[op].chooser for op in found.operations},
        "score_scale": found.scale,
        "mapping": found,
    }
    return type(base.__name__, (base,), attributes | {op: getattr(base, f"_{op}") for op in found.operations})


class McpMemory:
    """A server that is started anew, or emptied, for each reset; `find` makes its class of a mapping.

    Where the shared policies choose, they do so among what the server recalls, on its own scores, or for a purge among
    the facts that it has given ids for. A server has a temporary home, and its errors are raised in its own words.

    Args:
        timeout: seconds that a call may last, None for what the mapping says.
    """

    name = _PREFIX
    extra = "mcp"
    mapping: ClassVar[ServerMapping]

    def __init__(self, timeout: float | None = None) -> None:
        self._open(None, timeout)

    def reset(self) -> None:
        """Empties the store as the mapping says; a server that died is started anew."""
        if not self._host.connection.is_alive or (self._is_used and self.mapping.reset_by == "restart"):
            self._host.restart()
        elif self._is_used and "reset" in self.mapping.calls:
            self._touch(self.mapping.calls["reset"], list(self._texts))
        self._begin()

    def inscribe(self, text: str) -> int | str:
        """Calls the tool that stores a fact."""
        call = self.mapping.calls["inscribe"]
        id = answers.new_id(self._ask(call, text=text), call.keys.get("id"))
        if id is None and self.mapping.wants_ids:
            raise AnswerFault("inscribe: no id in the answer; say where it is: [inscribe] id")
        id = len(self._texts) if id is None else id
        self._texts[id] = text
        return id

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        """Calls the tool that recalls, and takes the first k texts."""
        return [answers.text(fact, self._paths) for fact in self._recall(query, k)]

    def stored_in(self) -> str:
        """The server's home and all else that it was given to write to. Raises NotImplementedError for one at a URL."""
        if "url" in self.mapping.server:
            raise NotImplementedError("a server at a URL has its files elsewhere")
        return self._host.folder

    def close(self) -> None:
        """Ends the server and everything that came of it."""
        self._host.close()

    def _supersede(self, old_query: str, new_text: str) -> None:
        """Replaces the fact that is recalled first, or lets the server choose."""
        call = self.mapping.calls["supersede"]
        hands_over = "text" in call.wants
        if call.chooser is Chooser.SYSTEM:
            self._ask(call, query=old_query, text=new_text)
        elif old := policies.best(self._nearest(call, old_query, 1)):
            answer = self._ask(call, id=old.id, text=new_text)
            if hands_over:
                id = answers.new_id(answer, call.keys.get("id"))
                self._texts[old.id if id is None else id] = new_text
            else:
                self._texts.pop(old.id, None)
        else:
            hands_over = False
        if not hands_over:
            self.inscribe(new_text)

    def _release(self, query: str) -> int:
        """Hides the facts that stand out under the query, or lets the server choose."""
        call = self.mapping.calls["release"]
        if call.chooser is Chooser.SYSTEM:
            return answers.count(self._ask(call, query=query))
        hits = sorted(self._nearest(call, query, policies.POOL, scored=True), key=lambda hit: -hit.score)
        return self._touch(call, [hit.id for hit in policies.released(hits)])

    def _purge(self, query: str) -> int:
        """Deletes every fact that holds the identifier, or lets the server choose."""
        call = self.mapping.calls["purge"]
        if call.chooser is Chooser.SYSTEM:
            return answers.count(self._ask(call, query=query))
        if call.keys.get("among") == "inscribed":
            stored = list(self._texts.items())
        else:
            stored = [(hit.id, hit.text) for hit in self._nearest(call, query, policies.POOL)]
        gone = [stored[i][0] for i in policies.holding(query, (text for _, text in stored))]
        for id in gone:
            self._texts.pop(id, None)
        return self._touch(call, gone)

    def _nearest(self, call: Call, query: str, k: int, scored: bool = False) -> list[Hit]:
        return [answers.hit(fact, self._paths, scored) for fact in self._recall(query, k, call.keys.get("recall", {}))]

    def _recall(self, query: str, k: int, overrides: dict[str, Any] | None = None) -> list[Any]:
        """The first k facts, as they come."""
        return answers.facts(self._ask(self.mapping.calls["recall"], overrides, query=query, k=k), self._paths)[:k]

    def _touch(self, call: Call, ids: Sequence[int | str]) -> int:
        """Calls a tool on ids, on many at once if it takes many; one that takes none is called once."""
        if "ids" in call.wants:
            for start in range(0, len(ids), _AT_ONCE):
                self._ask(call, ids=list(ids[start : start + _AT_ONCE]))
        elif "id" in call.wants:
            for id in ids:
                self._ask(call, id=id)
        else:
            self._ask(call)
        return len(ids)

    def _ask(self, call: Call, overrides: dict[str, Any] | None = None, **values: Any) -> Any:
        self._is_used = True
        arguments = filled(call.arguments | (overrides or {}), {**values, "namespace": self._namespace})
        try:
            return self._host.connection.call(call.tool, arguments)
        except AnswerFault as error:
            raise AnswerFault(f"{call.section}: {call.tool}: {error}") from None

    def _begin(self) -> None:
        self._texts: dict[int | str, str] = {}
        self._resets += 1
        self._namespace = f"run-{self._token}-{self._resets}"
        self._is_used = False

    def _open(self, embed: Embedder | None, timeout: float | None) -> None:
        from forget_eval.mcp_servers.host import Host

        self._paths = {key: path for key, path in self.mapping.calls["recall"].keys.items() if key != "scale"}
        self._token, self._resets = secrets.token_hex(4), 0  # a server at a URL may still hold earlier runs
        self._host = Host(self.mapping, embed, f"adapter '{self.name}'", timeout)
        self.version, self.configuration = self._host.version, self._host.configuration
        self._begin()


class EmbeddingMcpMemory(McpMemory):
    """One whose server has its vectors from us."""

    def __init__(self, embed: Embedder, timeout: float | None = None) -> None:
        self._open(embed, timeout)
