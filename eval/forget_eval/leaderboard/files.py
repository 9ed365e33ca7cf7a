"""Results as files, `data/<table>/results-*.parquet`, and from where they may come: folders and the Hub."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from forget_datasets import shards
from forget_datasets.errors import UserError
from forget_datasets.hub.faults import hub_faults, patiently
from forget_datasets.hub.reference import is_reference, parse
from forget_eval import runs, seals
from forget_eval.leaderboard import rows
from forget_eval.leaderboard.rows import TABLES, Results, Row
from forget_eval.report import labels
from forget_eval.shown import runs_in

SPLIT = "results"
"""The one split of both tables."""


def write(folder: Path, found: Results) -> list[Path]:
    """Writes both tables; the files, relative to the folder. The same rows give the same bytes.

    Raises:
        OSError: the disk refuses.
    """
    paths = []
    for name, schema in TABLES.items():
        with shards.ShardWriter(folder / "data" / name, SPLIT, schema) as writer:
            for row in found.table(name):
                writer.add(row)
            paths += [Path("data", name, file) for file in writer.close().files]
    return paths


def read(folder: Path, tables: Iterable[str] = TABLES) -> Results:
    """The tables in a folder of results, which others may have written.

    Raises:
        UserError: one of them is not there, or not as this version writes it.
    """
    return Results(**{name: _read(folder, name) for name in tables})


def is_results(folder: Path) -> bool:
    """Whether a folder holds results."""
    return any((folder / "data" / "summaries").glob("*.parquet"))


def summaries(sources: Sequence[str]) -> list[Row]:
    """The runs of several sources, each once.

    Args:
        sources: folders of runs, of results, or repositories on the Hub as owner/name or owner/name@revision.

    Raises:
        UserError: a source is neither; it holds nothing that can be ranked; or two state different numbers of a run.
        EnvironmentFault: the Hub cannot be reached, and the cache lacks something.
    """
    found: dict[str, tuple[str, Row]] = {}
    for source in sources:
        for row in _summaries(source):
            known_in, known = found.setdefault(row["run_id"], (source, row))
            if known != row:
                raise UserError(
                    f"{known_in} and {source} state different numbers of the run '{row['run']}' of {row['system']} "
                    f"(run {row['run_id'][:12]}): leave out the one that was scored before."
                )
    return [row for _, row in found.values()]


def runs_of(folders: Iterable[Path]) -> list[Path]:
    """The runs that folders stand for: a run for itself, any other folder for the runs and repeats in it; each once.

    Raises:
        UserError: two folders hold one run, and other numbers of it.
    """
    return _once(_runs_of(folders))


def _once(folders: Iterable[Path]) -> list[Path]:
    """One folder of each run, by what it is known by: a copy is the same run."""
    found: dict[str, Path] = {}
    for folder in folders:
        known = (folder / runs.MANIFEST).exists()
        first = found.setdefault(labels.run_id(folder) if known else str(folder), folder)
        if first != folder and seals.read(first) != seals.read(folder):
            raise UserError(f"{first} and {folder} are one run with other numbers: score the older one again.")
    return list(found.values())


def _runs_of(folders: Iterable[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for folder in runs_in(list(folders)):
        inside = [folder] if (folder / runs.MANIFEST).exists() or not folder.is_dir() else sorted(folder.iterdir())
        repeats = [run for inner in (folder, *inside) for run in runs.repeats_in(inner)]
        found |= dict.fromkeys(repeats or [folder])
    return list(found)


def _summaries(source: str) -> list[Row]:
    folder = Path(os.path.expanduser(source))
    if os.path.isdir(folder):
        if is_results(folder):
            return read(folder, ("summaries",)).summaries
        return rows.of_runs(runs_of([folder]), with_scores=False).summaries
    if not is_reference(source):
        raise UserError(f"{source} is no folder here, and names no dataset on the Hub: write owner/name.")
    folder = _pulled(source)
    if not is_results(folder):
        raise UserError(f"{source} holds no results: it has no data/summaries/*.parquet.")
    return read(folder, ("summaries",)).summaries


def _pulled(source: str) -> Path:
    from huggingface_hub import snapshot_download

    reference = parse(source)
    with hub_faults(reference, f"fetching {reference}"):
        found = patiently(
            lambda: snapshot_download(
                reference.repo,
                repo_type="dataset",
                revision=reference.revision,
                allow_patterns=["data/summaries/*.parquet"],
            )
        )
    return Path(found)


def _read(folder: Path, table: str) -> list[Row]:
    schema = TABLES[table]
    found: list[Row] = []
    paths = sorted((folder / "data" / table).glob(f"{SPLIT}-*.parquet"))
    if not paths:
        raise UserError(f"{folder} holds no data/{table}/{SPLIT}-*.parquet, so these are no results of ours.")
    for path in paths:
        for row in shards.read_rows(path, schema):
            if lacking := [name for name in _NEEDED[table] if row[name] is None]:
                raise UserError(f"{path}: a row without {lacking[0]}: these are no results of ours.")
            found.append(row)
    return found


_NEEDED = {
    "summaries": ("run_id", "run", "task", "system", "told_the_case", "dataset_config", "dataset_hash", "rates"),
    "scores": ("run_id", "metric"),
}
"""What every row has."""
