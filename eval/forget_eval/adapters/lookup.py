"""From the name of an adapter to a memory: built-in ones, plugins, and classes of the user's own."""

import inspect
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from forget_datasets.errors import UserError, unknown
from forget_datasets.rows import OPERATIONS
from forget_eval.packages import PROJECT, install_line, version
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
}
MANDATORY = ("reset", "inscribe", "recall_texts")
"""What every memory has."""
ASSISTANT = ("ingest", "ask", "forget")
"""What every assistant has."""


@dataclass(frozen=True)
class Row:
    """One line of the list of adapters; `version` is None where the package is not installed."""

    name: str
    package: str
    version: str | None
    install: str
    operations: dict[str, str]
    needs: str


def load(name: str, embed: Embedder | None = None, **config: Any) -> Memory:
    """A memory of the given name, or of a class given as `module:Class`.

    Args:
        name: built-in, of a plugin, or `module:Class`, looked for in the current folder too.
        embed: passed on if the constructor has a parameter of that name.
        config: further arguments of the constructor.

    Raises:
        UserError: no such adapter, a broken plugin, a missing package, a class without the mandatory methods, an
            argument that the constructor does not know, or none for one that it needs (such as `embed`).
    """
    found = find(name)
    arguments = dict(config)
    if embed is not None and wants_embedder(found):
        arguments["embed"] = embed
    _check_arguments(name, found, arguments)
    memory: Memory = found(**arguments)
    if not getattr(memory, "name", None):
        memory.name = name
    return memory


def find(name: str, kinds: Sequence[Sequence[str]] = (MANDATORY,), also: Iterable[str] = ()) -> type:
    """The class of an adapter, without making one; it must have all methods of one of the `kinds`.

    A name that is unknown may have meant one of `also`, which the caller knows.

    Raises:
        UserError: as `load` does.
    """
    plugins = {plugin.name: plugin for plugin in entry_points(group=GROUP)}
    if name in BUILT_IN:
        return _class(BUILT_IN[name])
    if name in plugins:
        try:
            return _checked(name, plugins[name].load(), kinds)
        except Exception as error:
            raise UserError(f"adapter '{name}' of {_origin(plugins[name])} cannot be loaded: {error!r}") from error
    if ":" in name:
        return _checked(name, _users_class(name), kinds)
    raise unknown("adapter", name, sorted({*BUILT_IN, *plugins, *also}))


def wants_embedder(adapter: type) -> bool:
    """Whether the constructor has a parameter called `embed`."""
    return "embed" in _parameters(adapter)


def listing() -> list[Row]:
    """All adapters, built-in first; a broken plugin is left out with a warning."""
    rows = [_row(name, _class(target), PROJECT) for name, target in BUILT_IN.items()]
    return rows + [_row(plugin.name, adapter, _origin(plugin)) for plugin, adapter in _plugins()]


def declared(adapter: Any) -> dict[str, str]:
    """How an adapter (or its class) does each operation, as "native, ids by policy", "undeclared" or "n/a"."""
    return {operation: _declaration(adapter, operation) for operation in OPERATIONS}


def _declaration(adapter: Any, operation: str) -> str:
    if not callable(getattr(adapter, operation, None)):
        return "n/a"
    kind = getattr(adapter, "operations", {}).get(operation)
    chooser = getattr(adapter, "choosers", {}).get(operation)
    if kind is None:
        return "undeclared"
    return f"{kind}, ids by {chooser}" if chooser else str(kind)


def _row(name: str, adapter: type, origin: str) -> Row:
    package = getattr(adapter, "distribution", "") or origin
    extra = getattr(adapter, "extra", "")
    needs = [getattr(adapter, "needs", "")] + ["an embedder"] * wants_embedder(adapter)
    return Row(
        name=name,
        package=package,
        version=version(package),
        install=install_line(extra) if extra else f"pip install {package}",
        operations=declared(adapter),
        needs="; ".join(filter(None, needs)),
    )


def _plugins() -> Iterator[tuple[EntryPoint, type]]:
    for plugin in entry_points(group=GROUP):
        if plugin.name in BUILT_IN:
            continue
        try:
            yield plugin, _checked(plugin.name, plugin.load(), (MANDATORY, ASSISTANT))
        except Exception as error:
            warnings.warn(
                f"adapter '{plugin.name}' of {_origin(plugin)} is broken and left out: {error!r}",
                RuntimeWarning,
                stacklevel=3,
            )


def _origin(plugin: EntryPoint) -> str:
    return plugin.dist.name if plugin.dist else plugin.value


def _class(target: str) -> type:
    module, _, attribute = target.partition(":")
    found: type = getattr(import_module(module), attribute)
    return found


def _users_class(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            hint = f"Is {module_name.replace('.', '/')}.py in {os.getcwd()}?"
            raise UserError(f"adapter '{name}': there is no module '{module_name}'. {hint}") from None
        raise
    if hasattr(module, attribute):
        return getattr(module, attribute)
    classes = [key for key, value in vars(module).items() if isinstance(value, type)]
    raise unknown(f"class in {module_name}", attribute, classes)


def _checked(name: str, found: Any, kinds: Sequence[Sequence[str]] = (MANDATORY,)) -> type:
    if not isinstance(found, type):
        raise UserError(f"adapter '{name}' is {found!r}; it must be a class.")
    lacking = [[method for method in kind if not callable(getattr(found, method, None))] for kind in kinds]
    if all(lacking):
        fewest = lacking[min(range(len(kinds)), key=lambda i: len(lacking[i]))]
        wanted = ", or ".join(", ".join(kind) for kind in kinds)
        raise UserError(f"adapter '{name}' lacks {', '.join(fewest)}. It must have {wanted}.")
    return found


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
    try:
        return dict(inspect.signature(adapter).parameters)
    except ValueError:  # a class written in C without a signature
        return {}
