"""From the name of an adapter to a memory: built-in ones, plugins, and classes of the user's own."""

import inspect
import warnings
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from forget_datasets.errors import UserError, unknown
from forget_eval.adapters import mcp
from forget_eval.adapters.declarations import describe, stated
from forget_eval.guest import fetch, hosting
from forget_eval.protocols import Embedder, Memory

GROUP = "forget_eval.adapters"
"""Entry points of this group are adapters; their values are classes."""

BUILT_IN = {
    "null": "forget_eval.adapters.controls:Null",
    "keep-all": "forget_eval.adapters.controls:KeepAll",
    "wipe-all": "forget_eval.adapters.controls:WipeAll",
    "oracle": "forget_eval.adapters.controls:Oracle",
    "reference": "forget_eval.adapters.reference:ReferenceMemory",
    "lethe": "forget_eval.adapters.lethe:LetheMemory",
    "mem0": "forget_eval.adapters.mem0:Mem0Memory",
    "mempalace": "forget_eval.adapters.mempalace:MempalaceMemory",
    "langgraph": "forget_eval.adapters.langgraph:LanggraphMemory",
    "llama-index": "forget_eval.adapters.llama_index:LlamaIndexMemory",
    "qdrant": "forget_eval.adapters.qdrant:QdrantMemory",
    "chroma": "forget_eval.adapters.chroma:ChromaMemory",
    "lancedb": "forget_eval.adapters.lancedb:LancedbMemory",
    "graphiti": "forget_eval.adapters.graphiti:GraphitiMemory",
    "letta": "forget_eval.adapters.letta:LettaMemory",
    "hipporag": "forget_eval.adapters.hipporag:HipporagMemory",
    "hipporag-dense": "forget_eval.adapters.hipporag:HipporagDense",
    "hipporag-llm": "forget_eval.adapters.hipporag_llm:HipporagModelMemory",
    "zep": "forget_eval.adapters.zep:ZepMemory",
}
MANDATORY = ("reset", "inscribe", "recall_texts")
"""What every memory has."""
ASSISTANT = ("ingest", "ask", "forget")
"""What every assistant has."""


def load(name: str, embed: Embedder | None = None, **config: Any) -> Memory:
    """A memory of the given name, or of a class given as `module:Class`.

    Args:
        name: built-in, of a plugin, or `module:Class`, looked for in the current folder too.
        embed: passed on if the constructor has a parameter of that name.
        config: further arguments of the constructor.

    Raises:
        UserError: no such adapter, a broken plugin, a missing package, a class without the mandatory methods, and
            whatever `make` raises.
    """
    memory: Memory = make(name, find(name), embed, **config)
    return memory


def make(name: str, found: type, embed: Embedder | None = None, **config: Any) -> Any:
    """An adapter of a class that `find` has found; one without a name is called `name`.

    Args:
        name: as the user wrote it.
        found: the class.
        embed: passed on if the constructor has a parameter of that name.
        config: further arguments of the constructor.

    Raises:
        UserError: an argument that the constructor does not know, or none for one that it needs (such as `embed`); the
            constructor fails; or what the adapter says of itself is not as `protocols.Declared` wants it.
    """
    arguments = dict(config)
    if embed is not None and wants_embedder(found):
        arguments["embed"] = embed
    _check_arguments(name, found, arguments)
    with hosting(f"adapter '{name}' cannot be made"):
        adapter = found(**arguments)
    with hosting(f"adapter '{name}' has no name and takes none", then='Give its class one: name = "…"'):
        if not getattr(adapter, "name", None):
            adapter.name = name
    _warn_if_untried(name, describe(adapter), stated(found, "tried"))
    return adapter


def find(name: str, kinds: Sequence[Sequence[str]] = (MANDATORY,), also: Iterable[str] = ()) -> type:
    """The class of an adapter, without making one; it must have all methods of one of the `kinds`.

    A name that is unknown may have meant one of `also`, which the caller knows.

    Raises:
        UserError: as `load` does.
    """
    if name in BUILT_IN:
        return built_in(name)
    if mcp.is_name(name):
        return mcp.find(name)
    plugins = {plugin.name: plugin for plugin in entry_points(group=GROUP)}
    if name in plugins:
        return plugged_in(plugins[name], kinds)
    if ":" in name:
        return _checked(name, fetch(name, "adapter"), kinds)
    known = unknown("adapter", name, sorted({*BUILT_IN, *plugins, *also}))
    raise UserError(f"{known}\n    Of your own: mcp:FILE.toml for a server that speaks MCP, module:Class for a class.")


def wants_embedder(adapter: type) -> bool:
    """Whether the constructor has a parameter called `embed`."""
    return "embed" in _parameters(adapter)


def placed(adapter: type, on_disk: bool) -> dict[str, bool]:
    """The argument that puts the store on the disk; none if that is not asked for, or the constructor has no choice."""
    return {"on_disk": True} if on_disk and "on_disk" in _parameters(adapter) else {}


def built_in(name: str) -> type:
    """The class of one of our own adapters."""
    module, _, attribute = BUILT_IN[name].partition(":")
    found: type = getattr(import_module(module), attribute)
    return found


def plugged_in(plugin: EntryPoint, kinds: Sequence[Sequence[str]]) -> type:
    """The class behind an entry point. Raises UserError if it is broken."""
    with hosting(f"adapter '{plugin.name}' of {origin(plugin)} cannot be loaded"):
        return _checked(plugin.name, plugin.load(), kinds)


def origin(plugin: EntryPoint) -> str:
    """The package that an entry point is of."""
    return plugin.dist.name if plugin.dist else plugin.value


def _checked(name: str, found: Any, kinds: Sequence[Sequence[str]]) -> type:
    if not isinstance(found, type):
        raise UserError(f"adapter '{name}' is a value of type {type(found).__name__}; it must be a class.")
    with hosting(f"adapter '{name}': the methods of its class cannot be read"):
        lacking = [[method for method in kind if not callable(getattr(found, method, None))] for kind in kinds]
    if all(lacking):
        fewest = lacking[min(range(len(kinds)), key=lambda i: len(lacking[i]))]
        wanted = ", or ".join(", ".join(kind) for kind in kinds)
        raise UserError(f"adapter '{name}' lacks {', '.join(fewest)}. It must have {wanted}.")
    return found


def _warn_if_untried(name: str, described: dict[str, Any], tried: str) -> None:
    if tried and described["version"] != tried:
        there = f"{described['distribution']} {described['version']}"
        warnings.warn(f"adapter '{name}' was tried with version {tried}, not {there}.", RuntimeWarning, stacklevel=3)


def _check_arguments(name: str, adapter: type, arguments: dict[str, Any]) -> None:
    parameters = _parameters(adapter)
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        for argument in arguments:
            if argument not in parameters:
                raise unknown(f"option of adapter '{name}'", argument, parameters)
    named = [p for p in parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    lacking = [p.name for p in named if p.default is p.empty and p.name not in arguments]
    if lacking:
        raise UserError(f"adapter '{name}' needs a value for {', '.join(lacking)}.")


def _parameters(adapter: type) -> dict[str, inspect.Parameter]:
    with hosting(f"adapter '{adapter.__qualname__}': the parameters of its constructor cannot be read"):
        try:
            return dict(inspect.signature(adapter).parameters)
        except (ValueError, TypeError):  # a class written in C without a signature, or one that hides it
            return {}
