"""The engine that the commands know as `ray`: a stage, made on a cluster."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from forget_datasets.on_ray import connect
from forget_eval import guest
from forget_eval.on_ray.dispatch import run
from forget_eval.on_ray.pieces import ROWS
from forget_eval.on_ray.shards import Shards, folder_of
from forget_eval.on_ray.troupe import Troupe
from forget_eval.parallel.seats import Seat
from forget_eval.parallel.stage import Described, Stage
from forget_eval.protocols import Embedder
from forget_eval.runner import Options
from forget_eval.transcripts import Writer


@dataclass(frozen=True)
class Engine:
    """Makes stages as `parallel.stage.stage` does.

    Attributes:
        address: of the cluster, see `forget_datasets.on_ray.connect`.
        shards: a URL or path under which the shards of runs go and stay; it must lead every machine to the same place.
            None for a folder in each run's own, which is removed when all of them are merged.
        rows: of a piece.

    Raises:
        UserError: `shards` is a URL of a kind that is not known.
    """

    address: str | None = None
    shards: str | None = None
    rows: int = ROWS

    def __post_init__(self) -> None:
        if self.shards is not None:
            Shards(self.shards)  # what is wrong with it is said before anything is played

    @contextmanager
    def __call__(self, seat: Seat[Any], embed: Embedder | None, count: int) -> Iterator[Stage]:
        """Makes the system of a seat in so many actors; at the end closes it.

        Raises:
            UserError: Ray is not installed, or the system cannot be made.
            EnvironmentFault: the cluster cannot be reached.
        """
        with guest.apart():
            troupe = Troupe(connect(self.address), seat, embed, count)
            try:
                troupe.wait()
                yield _OnRay(self, troupe, count)
                troupe.dismiss()
            finally:
                troupe.kill()


class _OnRay:
    def __init__(self, engine: Engine, troupe: Troupe, count: int) -> None:
        self._engine, self._troupe = engine, troupe
        self.adapter: object = Described(troupe.described)
        self.made = troupe.made
        self.played: dict[str, Any] = {"engine": "ray", "workers": count}

    def run(self, rows: Iterable[Any], transcripts: Writer, how: Options[Any]) -> int:
        shards = Shards(folder_of(transcripts.folder, self._engine.shards))
        return run(rows, self._troupe, shards, transcripts, how, self._engine.rows)
