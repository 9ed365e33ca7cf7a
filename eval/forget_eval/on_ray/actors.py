"""What runs in the cluster: actors that play pieces, and the desk at which they ask for vectors."""

import asyncio
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from forget_datasets.errors import PROGRAMMERS_WARNINGS, EnvironmentFault, UserError
from forget_eval import __version__, adapters, guest
from forget_eval.on_ray.shards import Shards
from forget_eval.parallel import faults
from forget_eval.parallel.seats import Seat, Seated
from forget_eval.parallel.vectors import Foreseen
from forget_eval.transcripts import encode

NO_DESK = "the actor through which systems ask the run for vectors has ended."


@dataclass
class Said:
    """What an actor answers, plain data throughout.

    Attributes:
        value: what it was asked for.
        lines: transcripts of the rows before a fault.
        fault: kind and message of what ends the run, as `parallel.faults.raised` takes them.
        warnings: that came up meanwhile.
    """

    value: dict[str, Any] = field(default_factory=dict)
    lines: list[bytes] = field(default_factory=list)
    fault: dict[str, str] | None = None
    warnings: list[str] = field(default_factory=list)


class Player:
    """Makes the system of a seat, once it is asked to, and plays pieces against it.

    Args:
        seat: whose system it is.
        introduction: of the run's embedder, None if the system takes none.
        folder: of the run's process, the current one here too if this machine has it.
        path: where the run's process finds modules; what is missing in the path here is added.
    """

    def __init__(self, seat: Seat[Any], introduction: dict[str, Any] | None, folder: str, path: Sequence[str]) -> None:
        with suppress(OSError):
            os.chdir(folder)
        sys.path.extend(place for place in path if place not in sys.path)
        self._seat = seat
        self._desk: Any = None
        self._embed = Foreseen(introduction, self._ask) if introduction else None
        self._seated: Seated[Any] | None = None
        self._owner = os.getpid()

    def start(self) -> Said:
        """Says that the actor has started."""
        return Said()

    def made(self, desk: Any) -> Said:
        """Makes the system, if that has not been done, and tells what a manifest says of it.

        Args:
            desk: the actor that has vectors; Ray starts no actor again whose constructor was given another.
        """
        said, self._desk = Said(), desk
        with self._noted(said), guest.apart():
            seated = self._seated = self._seated or self._seat.take(self._embed)
            said.value = {"described": adapters.describe(seated.adapter), "made": seated.made, "project": __version__}
        return said

    def play(self, url: str, name: str, piece: tuple[Sequence[Any], Sequence[str], Any]) -> Said:
        """Plays rows and writes their shard; if something ends the run, it answers the lines before that instead."""
        rows, texts, vectors = piece
        said = Said()
        if self._embed is not None:
            self._embed.foresee(texts, vectors)
        with self._noted(said):
            for row in rows:
                with guest.apart():
                    transcript = self._replay(row)
                if os.getpid() != self._owner:  # a child that the system forked came back instead of ending
                    os._exit(0)
                said.lines.append(encode(transcript))
            Shards(url).write(name, said.lines)
            said.lines = []
        return said

    def end(self) -> Said:
        """Closes the system."""
        said = Said()
        with self._noted(said):
            if self._seated is not None:
                guest.close(self._seated.played, f"adapter '{self._seat.name}'")
        return said

    def _replay(self, row: Any) -> Any:
        if self._seated is None:
            raise RuntimeError("it was asked to play before it had made its system")
        return self._seated.replay(row)

    @contextmanager
    def _noted(self, said: Said) -> Iterator[None]:
        """Notes down warnings, and what would end a run."""

        def note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            if not issubclass(category, PROGRAMMERS_WARNINGS):
                said.warnings.append(str(message))

        before, warnings.showwarning = warnings.showwarning, note
        try:
            yield
        except BaseException as error:
            said.fault = faults.told(error)
        finally:
            warnings.showwarning = before

    def _ask(self, texts: list[str]) -> Any:
        if os.getpid() != self._owner:
            raise RuntimeError("a forked child of the system cannot ask for vectors")
        import ray

        try:
            vectors, fault = ray.get(self._desk.ask.remote(texts))
        except ray.exceptions.RayActorError as error:
            raise EnvironmentFault(NO_DESK) from error
        if fault is not None:
            raise UserError(fault)
        return vectors


class Desk:
    """Passes texts that nobody foresaw to the run, and their vectors back."""

    def __init__(self) -> None:
        self._questions: asyncio.Queue[tuple[int, list[str]]] = asyncio.Queue()
        self._numbers = count()
        self._answers: dict[int, asyncio.Future[tuple[Any, str | None]]] = {}

    async def ask(self, texts: list[str]) -> tuple[Any, str | None]:
        """The vectors of texts, shape (len(texts), dim), and None; or None and why there are none."""
        number = next(self._numbers)
        answer: asyncio.Future[tuple[Any, str | None]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        await self._questions.put((number, texts))
        return await answer

    async def next(self) -> tuple[int, list[str]]:
        """The next question, as soon as there is one: its number, and the texts."""
        return await self._questions.get()

    async def answer(self, number: int, vectors: Any, fault: str | None) -> None:
        """Answers a question."""
        self._answers.pop(number).set_result((vectors, fault))
