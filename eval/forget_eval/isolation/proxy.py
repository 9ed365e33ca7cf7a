"""A memory, or an assistant, that lives in a worker: it has exactly the methods that the class there has."""

import warnings
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

from forget_datasets.errors import UserError
from forget_datasets.rows import Session
from forget_eval.isolation.messages import AdapterFault, last_words, pack_sessions, unpack, users
from forget_eval.isolation.process import Limits, Worker
from forget_eval.protocols import Embedder

Kinds = Sequence[Sequence[str]]
_BEGINNERS = ("reset", "ingest")
"""Only with these a case begins, so only they may find a new worker in place of one that has died."""


class _State:
    """Stands for a snapshot in the worker that took it."""

    def __init__(self, worker: Worker, number: int) -> None:
        self.worker, self.number = worker, number


class WorkerMemory:
    """Passes every call on to a worker. One that died or hung fails its case, and the next one gets a new worker.

    Args:
        name: of the adapter, looked up in the worker.
        interpreter: the command that runs a Python file.
        embed: answers what the adapter wants embedded; it stays in this process.
        limits: of each call, and of the worker.
        kinds: sets of methods of which the adapter must have one.
        isolation: what a manifest says of the worker's environment.
        on_disk: whether its store shall lie on the disk, if its constructor has that choice.

    Attributes:
        name, operations, choosers, score_scale, distribution, version, configuration: as the adapter declares them.
        wants_embedder: whether its constructor takes one.

    Raises:
        UserError: the adapter cannot be made there; the message says why.
        EnvironmentFault: the worker cannot be started, or the adapter has raised one there.
    """

    def __init__(
        self,
        name: str,
        interpreter: Sequence[str],
        embed: Embedder | None,
        limits: Limits,
        kinds: Kinds,
        isolation: dict[str, Any],
        on_disk: bool = False,
    ) -> None:
        self._order = (name, kinds, _introduced(embed), on_disk)
        self._start = partial(Worker, interpreter, embed, limits)
        self._dropped: list[int] = []
        self._worker, made = self._made(f"adapter '{name}' cannot be made in a worker")
        self._described = {**made["described"], "isolation": isolation}
        self._methods = frozenset(made["methods"])
        self.wants_embedder: bool = made["wants_embedder"]
        self._declare(made["described"])
        for warning in made["warnings"]:
            warnings.warn(warning, RuntimeWarning, stacklevel=2)

    def described_by_worker(self) -> dict[str, Any]:
        """What the manifest of a run says of the adapter: from the worker, and with it what the worker runs in."""
        return dict(self._described)

    def close(self) -> None:
        """Closes the adapter if it can be closed, and ends the worker in any case. A second time nothing."""
        try:
            if self._worker.is_alive and "close" in self._methods:
                self._worker.ask("call", "close")
        finally:
            self._worker.end()

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_methods", ()):
            own = getattr(type(self), f"_{name}", None)
            return own.__get__(self) if own else partial(self._call, name)
        raise AttributeError(f"'{self.__dict__.get('name', 'adapter')}' has no {name}")

    def _call(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        if method in _BEGINNERS:
            self._revive()
        return unpack(self._worker.ask("call", method, *arguments, **keywords))

    def _ingest(self, sessions: Sequence[Session]) -> Any:
        self._revive()
        return unpack(self._worker.ask("ingest", pack_sessions(sessions)))

    def _snapshot(self) -> _State:
        dropped = [self._dropped.pop() for _ in range(len(self._dropped))]
        state = _State(self._worker, self._worker.ask("snapshot", dropped))
        weakref.finalize(state, self._dropped.append, state.number)
        return state

    def _restore(self, state: _State) -> None:
        if state.worker is not self._worker or not self._worker.is_alive:
            raise AdapterFault("the worker that held this snapshot has ended")
        self._worker.ask("restore", state.number)

    def _revive(self) -> None:
        if self._worker.is_alive:
            self._worker.trim()
        else:
            self._dropped = []
            try:
                self._worker, _ = self._made("a new worker cannot be made")
            except UserError as error:  # nobody's fault by now but the system's
                raise AdapterFault(str(error)) from error

    def _made(self, what: str) -> tuple[Worker, dict[str, Any]]:
        """A worker with the adapter in it."""
        try:
            worker = self._start()
        except AdapterFault as error:
            raise UserError(f"{what}: {error}{last_words(error)}") from error
        try:
            made: dict[str, Any] = worker.ask("make", *self._order)
            if made["described"]["told_the_case"]:
                raise UserError(f"{what}: it is told the case (_tell), and only a control in this process can be.")
        except AdapterFault as error:
            worker.end()
            if error.is_users:
                raise users(error) from error
            raise UserError(f"{what}: {type(error).__name__}: {error}{last_words(error)}") from error
        except BaseException:
            worker.end()
            raise
        return worker, made

    def _declare(self, described: dict[str, Any]) -> None:
        self.name: str = described["name"]
        self.distribution: str | None = described["distribution"]
        self.version: str | None = described["version"]
        self.score_scale: str = described["score_scale"]
        self.configuration: dict[str, Any] = described["configuration"]
        self.operations = {op: how["kind"] for op, how in described["operations"].items()}
        self.choosers = {op: how["chooser"] for op, how in described["operations"].items()}


def _introduced(embed: Embedder | None) -> dict[str, Any] | None:
    """What the worker is told of the embedder."""
    if embed is None:
        return None
    from forget_eval.embedding import width

    return {"name": str(getattr(embed, "name", "embedder")), "dim": width(embed)}
