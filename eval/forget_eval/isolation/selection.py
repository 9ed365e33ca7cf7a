"""Where an adapter runs: in the environment made for it, in a worker with this Python, or in this process."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from forget_datasets.errors import UserError
from forget_eval import adapters
from forget_eval.adapters import mcp
from forget_eval.adapters.declarations import stated
from forget_eval.isolation import environments, requirements
from forget_eval.isolation.environments import Environment, State
from forget_eval.isolation.messages import AdapterFault, last_words, users
from forget_eval.isolation.process import Limits, Worker, this_interpreter
from forget_eval.isolation.proxy import Kinds, WorkerMemory
from forget_eval.packages import install_line, version
from forget_eval.protocols import Embedder

_MEMORY: Kinds = (adapters.MANDATORY,)


@dataclass(frozen=True)
class Isolation:
    """How a run wants its adapters isolated.

    Attributes:
        isolate: whether an adapter without an environment of its own gets a worker too, with this Python.
        limits: of workers.
    """

    isolate: bool = False
    limits: Limits = field(default_factory=Limits)


def select(
    name: str,
    embed: Embedder | None = None,
    isolation: Isolation | None = None,
    kinds: Kinds = _MEMORY,
    also: Sequence[str] = (),
    on_disk: bool = False,
) -> Any:
    """The adapter of a name, in a worker if it has an environment or is to be isolated, else in this process.

    A control of ours runs in this process always: it holds no foreign code, and is told the case.

    Args:
        name: built-in, of a plugin, or `module:Class`.
        embed: is handed to an adapter whose constructor takes it.
        isolation: what the command asks for.
        kinds: sets of methods of which the adapter must have one.
        also: names that an unknown one may have meant.
        on_disk: whether its store shall lie on the disk, if its constructor has that choice.

    Raises:
        UserError: there is no such adapter, its package is missing (the message has both ways to get it), its
            environment is unfinished or broken, or it cannot be made.
        EnvironmentFault: a worker cannot be started, or the adapter has raised one while it was made.
    """
    isolation = isolation or Isolation()
    command, environment = _interpreter(name, isolation.isolate)
    if command is None:
        found = _found_here(name, kinds, also)
        _require_package(name, found)
        limits = {"timeout": isolation.limits.timeout} if mcp.is_name(name) else {}
        return adapters.make(name, found, embed, **adapters.placed(found, on_disk), **limits)
    return WorkerMemory(name, command, embed, isolation.limits, kinds, _told(environment), on_disk)


def wants_embedder(
    name: str, isolation: Isolation | None = None, kinds: Kinds = _MEMORY, also: Sequence[str] = ()
) -> bool:
    """Whether the adapter of a name takes an embedder, found out where it will run.

    Raises:
        UserError: there is no such adapter, its class cannot be read, or its environment is unfinished or broken.
        EnvironmentFault: a worker cannot be started.
    """
    return _is_said(adapters.wants_embedder, name, isolation, kinds, also)


def may_be_several(
    name: str, isolation: Isolation | None = None, kinds: Kinds = _MEMORY, also: Sequence[str] = ()
) -> bool:
    """Whether the class of an adapter says that it may run in several processes (`protocols.Declared`).

    If not, a warning says so: its answers are the same from one process, only later. A class that says nothing may
    hold a file or a port that two processes would fight for, and their answers would be wrong without a sign.

    Raises:
        UserError: as `wants_embedder` does, or the class says it with no bool.
        EnvironmentFault: a worker cannot be started.
    """
    found = _is_said(adapters.may_be_several, name, isolation, kinds, also)
    if not found:
        warnings.warn(
            f"adapter '{name}' runs in one process: its class does not say that it may run in several. If each of its"
            " objects has a store of its own, add parallel = True to it.",
            RuntimeWarning,
            stacklevel=2,
        )
    return found


def _is_said(
    question: Callable[[type], bool], name: str, isolation: Isolation | None, kinds: Kinds, also: Sequence[str]
) -> bool:
    """The answer to a question about the class of an adapter, found out where it will run."""
    isolation = isolation or Isolation()
    command, _ = _interpreter(name, isolation.isolate)
    if command is None or name in adapters.BUILT_IN:  # those import their packages only when they are made
        return question(_found_here(name, kinds, also))
    said = _inspected(name, tuple(command), isolation.limits, tuple(map(tuple, kinds)))
    return bool(said[question.__name__])


@cache
def _inspected(
    name: str, command: tuple[str, ...], limits: Limits, kinds: tuple[tuple[str, ...], ...]
) -> dict[str, Any]:
    try:
        worker = Worker(command, None, limits)
        try:
            return dict(worker.ask("inspect", name, kinds))
        finally:
            worker.end()
    except AdapterFault as error:
        if error.is_users:
            raise users(error) from error
        raise UserError(f"adapter '{name}': {error}{last_words(error)}") from error


def place(name: str) -> str:
    """The name of an adapter's environment: several for the same package share one."""
    if name not in adapters.BUILT_IN:
        return name
    return stated(adapters.find(name), "environment") or name


def _found_here(name: str, kinds: Kinds, also: Sequence[str]) -> type:
    try:
        return adapters.find(name, kinds, also)
    except UserError as error:
        if ":" not in name or not isinstance(error.__cause__, ModuleNotFoundError):
            raise
        own = f"Or in an environment of its own: forget-eval env create {name} --requirements FILE"
        raise UserError(f"{error}\n    {own}") from error


def _interpreter(name: str, isolate: bool) -> tuple[list[str] | None, Environment | None]:
    """The command of the Python that an adapter runs in; None for this process."""
    if mcp.is_name(name):  # the server that it starts is a process of its own already
        return None, None
    environment = environments.find(place(name))
    if environment is not None:
        _require_usable(environment)
        return environment.command, environment
    if not isolate or _is_control(name):
        return None, None
    return this_interpreter(), None


def _is_control(name: str) -> bool:
    return name in adapters.BUILT_IN and adapters.is_told(adapters.find(name))


def _require_usable(environment: Environment) -> None:
    name, state = environment.name, environment.state
    if state is State.UNFINISHED:
        raise UserError(
            f"the environment of '{name}' is unfinished.\n    forget-eval env create {name}   finishes it\n"
            f"    forget-eval env rm {name}       removes it"
        )
    if state is State.BROKEN:
        raise UserError(f"the environment of '{name}' has lost its Python.\n    forget-eval env create {name}")
    if state is State.STALE:
        warnings.warn(
            f"the environment of '{name}' is stale: its requirements have changed since.\n"
            f"    forget-eval env create {name}",
            RuntimeWarning,
            stacklevel=2,
        )


def _require_package(name: str, found: type) -> None:
    distribution, extra = stated(found, "distribution"), stated(found, "extra")
    where = stated(found, "environment") or name
    if not distribution or version(distribution) is not None or requirements.packaged(where) is None:
        return
    lines = {f"forget-eval env create {where}": "an environment of its own (recommended)"}
    if extra:  # without one, nothing but the pinned set of an environment works
        lines[install_line(extra)] = "into this Python"
    wide = min(max(map(len, lines)), 40)
    ways = "".join(f"\n    {line:<{wide}}   {what}" for line, what in lines.items())
    raise UserError(f"adapter '{name}' needs {distribution}, which is not installed.{ways}")


def _told(environment: Environment | None) -> dict[str, Any]:
    """What a manifest says of where a worker runs."""
    if environment is None:
        return {"environment": None}
    return {
        "environment": environment.name,
        "python": environment.python,
        "requirements_sha256": environment.requirements_sha256,
        "packages": environment.packages,
    }
