"""Where a run is played: in this process, or by a crew of others. Either way the same rows get the same transcripts."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from forget_eval import guest, runner
from forget_eval.parallel.seats import Seat, Seated
from forget_eval.protocols import Embedder
from forget_eval.runner import Options
from forget_eval.transcripts import Writer


class Stage(Protocol):
    """What a run needs of those who play it.

    Attributes:
        adapter: is described by the manifest.
        made: what the manifest says of how the system was made an assistant.
        played: what it says of where the run began: `engine`, and how many `workers`.
    """

    adapter: object
    made: dict[str, Any]
    played: dict[str, Any]

    def run(self, rows: Iterable[Any], transcripts: Writer, how: Options[Any]) -> int:
        """Plays the rows that have no transcript yet; see `runner.run`."""
        ...


Stages = Callable[[Seat[Any], Embedder | None, int], AbstractContextManager[Stage]]
"""Makes the stage of a seat with so many players at most, as `stage` does."""


@contextmanager
def stage(seat: Seat[Any], embed: Embedder | None, count: int) -> Iterator[Stage]:
    """Makes the system of a seat here, or in `count` other processes if that is more than one; at the end closes it.

    What systems print in the meantime goes to stderr.

    Raises:
        UserError: the system cannot be made.
        EnvironmentFault: a process cannot be started.
    """
    with guest.apart():
        if count > 1:
            from forget_eval.parallel.crew import crew

            with crew(seat, embed, count) as players:
                yield _Crew(players, count)
            return
        seated = seat.take(embed)
        try:
            yield _Alone(seated)
        finally:
            guest.close(seated.played, f"adapter '{seat.name}'")


class _Alone:
    def __init__(self, seated: Seated[Any]) -> None:
        self._replay = seated.replay
        self.adapter: object = seated.adapter
        self.made = seated.made
        self.played: dict[str, Any] = {"engine": "local", "workers": 1}

    def run(self, rows: Iterable[Any], transcripts: Writer, how: Options[Any]) -> int:
        return runner.run(rows, self._replay, transcripts, how)


class Described:
    """Stands for an adapter that other processes have."""

    def __init__(self, described: dict[str, Any]) -> None:
        self._described = described

    def described_by_worker(self) -> dict[str, Any]:
        """What a manifest says of it."""
        return dict(self._described)


class _Crew:
    def __init__(self, players: Any, count: int) -> None:
        self._players = players
        self.adapter: object = Described(players.described)
        self.made: dict[str, Any] = players.made
        self.played: dict[str, Any] = {"engine": "local", "workers": count}

    def run(self, rows: Iterable[Any], transcripts: Writer, how: Options[Any]) -> int:
        from forget_eval.parallel.dispatch import run

        return run(rows, self._players, transcripts, how)
