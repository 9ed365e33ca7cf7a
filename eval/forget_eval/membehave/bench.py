"""The steps behind the commands: the items of a dataset in the order of triplets, and a run of a system on them."""

import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from forget_datasets.errors import UserError
from forget_datasets.membehave.screening import check_triplet
from forget_datasets.rows import LEVELS, Item
from forget_datasets.schema import SCHEMAS
from forget_datasets.shards import read_rows
from forget_eval import bench, embedding, runs
from forget_eval.bootstrap import SEED
from forget_eval.data import Dataset
from forget_eval.isolation.selection import Isolation
from forget_eval.membehave import replay, systems
from forget_eval.membehave.bridge import DEPTH
from forget_eval.membehave.systems import Settings
from forget_eval.parallel.seats import ItemRow, ItemSeat
from forget_eval.parallel.stage import Stages, stage
from forget_eval.redaction import redact
from forget_eval.runner import Options

TRIPLET = len(LEVELS)


def items(dataset: Dataset) -> Iterator[Item]:
    """The items, one of each level in turn, so that those of a triplet follow each other; a few in memory at a time.

    Raises:
        UserError: the next rows of the levels are no triplet.
    """
    splits = {shard.split: [s for s in dataset.shards if s.split == shard.split] for shard in dataset.shards}
    ordered = [splits[name] for name in sorted(splits, key=_rank)]
    for row in zip_longest(*map(_rows, ordered)):
        triplet = [Item.from_row(found) for found in row if found is not None]
        _require_triplet(dataset, triplet)
        yield from triplet


def require_triplets(dataset: Dataset) -> None:
    """Raises UserError if the rows of a dataset, each of which may be right, are not triplets."""
    deque(items(dataset), maxlen=0)


def embedder_for(
    names: Sequence[str], embedder: str | None, isolation: Isolation | None = None
) -> "embedding.Embedder | None":
    """The embedder that the systems share; see `bench.embedder_for`, which raises the same."""
    return bench.embedder_for(names, embedder, "en", isolation, systems.wants_embedder)


def require_all(
    names: Sequence[str], embed: "embedding.Embedder | None", settings: Settings, isolation: Isolation | None = None
) -> None:
    """Makes every system but the first, so that one that cannot be made is found before the first has run.

    Raises:
        UserError: a system that cannot be made.
    """
    bench.require_seats([ItemSeat(name, settings, isolation) for name in names[1:]], embed)


def run_system(
    dataset: Dataset,
    name: str,
    folder: Path,
    embed: "embedding.Embedder | None",
    settings: Settings,
    force: bool = False,
    isolation: Isolation | None = None,
    workers: int = 1,
    staged: Stages = stage,
) -> int:
    """Runs a system on a MemBehave config, or goes on with a run that was cut off; returns how many items it played.

    Args:
        dataset: opened and checked; `require_triplets` has found that its rows are triplets.
        name: of the adapter, or of a control.
        folder: of the run.
        embed: is handed to an adapter whose constructor takes it.
        settings: how a memory becomes an assistant.
        force: whether a run that is there is started over.
        isolation: whether the system gets a process of its own, and its limits.
        workers: processes that play side by side, a triplet each, if the system may run in several. The transcripts are
            the same.
        staged: where they play, if not on this machine.

    Raises:
        UserError: an unknown system, rows that are no triplets, or the folder holds a run with other parameters.
        EnvironmentFault: the disk refuses, or a chat model is down; what was written is whole, and the same call goes
            on.
    """
    shared = embed if systems.wants_embedder(name, isolation) else None
    count = min(max(1, dataset.n // TRIPLET), workers if workers == 1 or systems.may_be_several(name, isolation) else 1)
    with staged(ItemSeat(name, settings, isolation), shared, count) as players:
        manifest = runs.describe(folder, dataset, players.adapter, shared, DEPTH)
        manifest["assistant"] = redact(players.made)
        manifest["seeds"]["bootstrap"] = SEED
        how = Options(_texts, shared, chunk=TRIPLET, together=_triplet)
        return bench.play(players, map(ItemRow, items(dataset)), folder, manifest, how, force)


def _texts(row: ItemRow) -> Iterator[str]:
    return replay.texts(row.item)


def _triplet(row: ItemRow) -> str:
    return row.item.triplet_id


def build_data(folder: Path, parameters: Mapping[str, Any]) -> None:
    """Builds the dataset into `folder`; one that is there already is made again, and replaced if its bytes differ.

    Raises:
        UserError: the folder holds another dataset.
        EnvironmentFault: the disk refuses.
    """
    from forget_datasets.build import build_membehave

    print(f"building {folder}", file=sys.stderr)
    build_membehave(folder, **parameters)


def _rows(shards: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for shard in shards:
        yield from read_rows(shard.path, SCHEMAS["membehave"])


def _require_triplet(dataset: Dataset, triplet: Sequence[Item]) -> None:
    first = triplet[0]
    problems = check_triplet(triplet)
    if foreign := [item.triplet_id for item in triplet if item.triplet_id != first.triplet_id]:
        problems = [f"{first.triplet_id}: triplet_id: {foreign[0]} stands in its place at another level"]
    if problems:
        name, column, what = problems[0].split(": ", 2)
        raise UserError(
            f"{dataset.source}, config '{dataset.config}', triplet {name}: column '{column}': {what}. Rebuild the"
            " dataset, or load it with the version that wrote it."
        )


def _rank(split: str) -> tuple[int, str]:
    return (LEVELS.index(split) if split in LEVELS else TRIPLET), split
