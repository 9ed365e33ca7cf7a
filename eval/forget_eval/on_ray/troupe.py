"""The run's side of its actors, from their start to their end."""

import os
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval.on_ray.actors import NO_DESK, Desk, Player, Said
from forget_eval.on_ray.pieces import Piece
from forget_eval.parallel import faults
from forget_eval.parallel.seats import Seat
from forget_eval.parallel.vectors import answer, introduced
from forget_eval.protocols import Embedder

_PATIENCE = 60.0  # seconds without a word from any actor, after which it is said that there is none
_TO_CLOSE = 60.0  # seconds that systems have to close at the end of a run
_TO_MAKE = 3  # times that a system is made by an actor that is lost meanwhile: it may be the system that ends it


@dataclass(eq=False)
class Actor:
    """One actor, as the run knows it.

    Attributes:
        handle: Ray's.
        in_flight: what it has to play, in that order.
        is_seated: whether it has its system; not while Ray starts it again.
        lost_making: how often it was lost in a row while it made its system.
    """

    handle: Any
    in_flight: deque[Any] = field(default_factory=deque)
    is_seated: bool = False
    lost_making: int = 0


class Troupe:
    """Actors of one seat. At the beginning one of them has its system, others follow as the cluster has room.

    Attributes:
        name: of the adapter.
        described, made: what a manifest says of the system.
    """

    def __init__(self, ray: Any, seat: Seat[Any], embed: Embedder | None, count: int) -> None:
        self.name = seat.name
        self._ray, self._embed = ray, embed
        self._asked: Any = None  # the question that the desk will hear next
        self._asked_of: dict[Any, tuple[Actor, Any]] = {}  # by Ray's reference: an actor, and what it does
        self._value: dict[str, Any] = {}
        self._has_warned = False
        self._why: BaseException | None = None  # the last actor was lost
        self._desk: Any = self._open_desk() if embed is not None else None
        make = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=0, scheduling_strategy="SPREAD")(Player)
        arguments = (seat, introduced(embed), os.getcwd(), sys.path)
        self._actors = [Actor(make.remote(*arguments)) for _ in range(count)]
        for actor in self._actors:
            self._await(actor)

    @property
    def seated(self) -> list[Actor]:
        """Those that can be given something to play."""
        return [actor for actor in self._actors if actor.is_seated]

    @property
    def described(self) -> dict[str, Any]:
        """What a manifest says of the adapter."""
        return dict(self._value["described"])

    @property
    def made(self) -> dict[str, Any]:
        """What a manifest says of how the system was made an assistant."""
        return dict(self._value["made"])

    def wait(self) -> None:
        """Returns when one of them has its system."""
        while not self.seated:
            for _ in self.heard():
                pass

    def load(self, piece: Piece[Any]) -> Any:
        """Puts a piece into the object store; returns Ray's reference to it."""
        return self._ray.put((piece.rows, piece.texts, piece.vectors))

    def play(self, actor: Actor, url: str, piece: Piece[Any], loaded: Any) -> None:
        """Has an actor play a piece, once it has played what it was given before."""
        actor.in_flight.append(piece)
        self._asked_of[actor.handle.play.remote(url, piece.name, loaded)] = actor, piece

    def heard(self) -> Iterator[tuple[Actor, Any, Said | None]]:
        """What actors say of pieces, once one of them says something: the actor, the piece and the answer.

        Without an answer the actor is lost, with all that it had in flight; Ray starts it again where there is room.

        Raises:
            UserError: a system cannot be made, or differs from those of the other actors.
            EnvironmentFault: no actor can be started, or nobody can be asked for vectors any more.
            KeyboardInterrupt: a system has raised it while it was made.
        """
        waiting = [*self._asked_of, *([self._asked] if self._asked is not None else [])]
        ready, _ = self._ray.wait(waiting, num_returns=1, timeout=_PATIENCE)
        if not ready and not self.seated:
            self._say_waiting()
        for reference in ready:
            if reference == self._asked:
                self._answer()
                continue
            actor, what = self._asked_of.pop(reference)
            said = self._said(reference)
            if isinstance(what, Piece):
                if said is None:
                    self._lose(actor)
                yield actor, what, said
            elif what == "start":
                self._make(actor, said)
            elif what == "making":
                self._take_seat(actor, said)

    def dismiss(self) -> None:
        """Has all systems closed, and waits until they are."""
        latest = monotonic() + _TO_CLOSE
        self._asked_of = {actor.handle.end.remote(): (actor, "end") for actor in self.seated}
        while self._asked_of and monotonic() < latest:
            for _ in self.heard():
                pass

    def kill(self) -> None:
        """Ends all actors at once."""
        handles = [actor.handle for actor in self._actors]
        for handle in [*handles, *([self._desk] if self._desk is not None else [])]:
            self._ray.kill(handle)

    def _open_desk(self) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        desk = self._ray.remote(num_cpus=0, scheduling_strategy=here)(Desk).remote()
        self._asked = desk.next.remote()
        return desk

    def _await(self, actor: Actor) -> None:
        """Hears when Ray has started the actor, however long the cluster lacks room for it."""
        self._asked_of[actor.handle.start.options(max_task_retries=-1).remote()] = actor, "start"

    def _make(self, actor: Actor, said: Said | None) -> None:
        if said is None:
            raise EnvironmentFault(f"adapter '{self.name}': no actor can be started that makes it: {self._why}")
        self._asked_of[actor.handle.made.remote(self._desk)] = actor, "making"

    def _take_seat(self, actor: Actor, said: Said | None) -> None:
        if said is None:
            actor.lost_making += 1
            if actor.lost_making == _TO_MAKE:
                raise UserError(f"adapter '{self.name}': its process ended {_TO_MAKE} times while it was made.")
            self._await(actor)
            return
        if said.fault is not None:
            raise faults.raised(said.fault)
        if self._value and said.value != self._value:
            raise UserError(
                f"adapter '{self.name}' is not the same on all machines of the cluster: they differ in"
                f" {_differences(self._value, said.value)}. Install the same everywhere."
            )
        self._value = said.value
        actor.is_seated, actor.lost_making = True, 0

    def _said(self, reference: Any) -> Said | None:
        """An actor's answer, None if it is lost. Raises what has failed outside of a piece."""
        try:
            said: Said = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise (error.cause or error) from None
        except self._ray.exceptions.RayError as error:
            self._why = error
            return None
        for message in said.warnings:
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        return said

    def _lose(self, actor: Actor) -> None:
        """Nothing is heard any more of what it had in flight; it makes its system once Ray has started it again."""
        self._asked_of = {ref: (one, what) for ref, (one, what) in self._asked_of.items() if one is not actor}
        actor.is_seated = False
        self._await(actor)

    def _answer(self) -> None:
        try:
            number, texts = self._ray.get(self._asked)
        except self._ray.exceptions.RayError as error:
            raise EnvironmentFault(
                f"{NO_DESK} What was run is kept, and the same command goes on from there."
            ) from error
        self._asked = self._desk.next.remote()
        self._desk.answer.remote(number, *answer(self._embed, texts))

    def _say_waiting(self) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        room = self._ray.available_resources().get("CPU", 0)
        warnings.warn(
            f"no actor of '{self.name}' runs: each takes a CPU, and {room:g} of the cluster's are free. The run goes on"
            " as soon as there is one.",
            RuntimeWarning,
            stacklevel=2,
        )


def _differences(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Where two systems differ, and what they say there."""
    one, other = ({**one["described"], **one["made"], "forget-datasets": one["project"]} for one in (one, other))
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return ", ".join(f"{name} ({one.get(name)}, {other.get(name)})" for name in names)
