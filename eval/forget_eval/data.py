"""Opens a dataset, a built folder or a repository of the Hub, and checks every row before anything runs on it."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from forget_datasets.errors import EnvironmentFault, UserError, unknown
from forget_datasets.forgeteval.columns import cases_of
from forget_datasets.hub.pull import pull
from forget_datasets.hub.reference import is_reference, parse
from forget_datasets.manifest import MANIFEST
from forget_datasets.manifest import read as read_manifest
from forget_datasets.remote import is_url, pulled_dataset, spoken_of
from forget_datasets.rows import GeneratedCase, RowHash, canonical_lines
from forget_datasets.schema import SCHEMA_VERSION, SCHEMAS, from_batch
from forget_datasets.shards import Shard, find, read_batches, read_rows
from forget_eval import checks, transcripts

_BUILD = "Build one with: forget-datasets build forgeteval --out DIR"
_REBUILD = "Build or download the dataset again."


@dataclass(frozen=True)
class Dataset:
    """One config of a dataset, checked. `source` is a folder, a URL, or a repository with its commit as `revision`."""

    source: str
    revision: str | None
    folder: Path
    config: str
    task: str
    content_hash: str
    n: int
    manifest: Mapping[str, Any] = field(repr=False)
    shards: tuple[Shard, ...] = field(repr=False)

    @property
    def lang(self) -> str:
        """The language of the rows, as the first of them says; English where rows do not say."""
        schema = SCHEMAS[self.task]
        if "lang" not in schema.names:
            return "en"
        first = (row["lang"] for shard in self.shards for row in read_rows(shard.path, schema, ["lang"]))
        return str(next(first, "en"))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the dataset was built from; empty if its manifest does not say."""
        return dict(self.manifest.get("parameters", {}))

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows in their order, a few in memory at a time."""
        for shard in self.shards:
            yield from read_rows(shard.path, SCHEMAS[self.task])

    def cases(self) -> Iterator[GeneratedCase]:
        """The rows of a ForgetEval config as cases, a few in memory at a time."""
        for shard in self.shards:
            for cases in read_batches(shard.path, SCHEMAS[self.task], cases_of):
                yield from cases


def open_dataset(
    source: str, task: str, config: str | None = None, revision: str | None = None, checked: str | None = None
) -> Dataset:
    """Opens a config and reads it once to check it.

    Args:
        source: a folder, its fsspec URL, or on the Hub owner/name or owner/name@v1.0.0.
        task: "forgeteval" or "membehave".
        config: may be left out where there is only one.
        revision: of a repository on the Hub: branch, tag or commit. The commit is pinned.
        checked: the content hash of rows that were checked before, by the run, say. If these have it, they are the same
            rows, and are not checked again.

    Raises:
        UserError: not a dataset of ours, a config that it lacks, or data that is not as built; the message names file,
            row and column.
        EnvironmentFault: the Hub cannot be reached.
    """
    source, folder, commit = _locate(source, config, revision)
    with spoken_of(folder, source) if is_url(source) else nullcontext():
        return _opened(source, folder, commit, task, config, checked)


def _opened(
    source: str, folder: Path, commit: str | None, task: str, config: str | None, checked: str | None
) -> Dataset:
    manifest = _manifest(folder, task)
    by_config: dict[str, list[Shard]] = {}
    for (name, _), shards in find(folder).items():
        by_config.setdefault(name, []).extend(shards)
    config = _choose(config, by_config)
    content_hash, n = _read(by_config[config], task, _read_alone if checked else _checked)
    if checked not in (None, content_hash):
        content_hash, n = _read(by_config[config], task, _checked)
    _require_hash(folder, manifest, config, content_hash)
    return Dataset(source, commit, folder, config, task, content_hash, n, manifest, tuple(by_config[config]))


def _locate(source: str, config: str | None, revision: str | None) -> tuple[str, Path, str | None]:
    """The name of a dataset without its revision, the folder of its files, and the commit if it is on the Hub."""
    if is_url(source):
        return source, pulled_dataset(source, config), None
    folder = Path(os.path.expanduser(source))
    if os.path.isdir(folder):
        return source, folder, None
    if os.path.exists(folder):
        raise UserError(f"{source} is a file; name the folder of the dataset, the one that holds {MANIFEST}.")
    if not is_reference(source):
        raise UserError(f"there is no folder {source}. {_BUILD}")
    reference = parse(source, revision)
    try:
        pulled = pull(reference, config)
    except EnvironmentFault as error:
        raise EnvironmentFault(f"'{reference.repo}' is no folder here, and the Hub cannot be asked: {error}") from error
    except UserError as error:
        raise UserError(f"'{reference.repo}' is no folder here: {error}\n    {_BUILD}") from error
    return reference.repo, pulled.folder, pulled.commit


def _manifest(folder: Path, task: str) -> dict[str, Any]:
    if os.path.lexists(folder / transcripts.FILE):
        raise UserError(f"{folder} is a run and not a dataset. Name the dataset's folder, the one that holds data/.")
    manifest = read_manifest(folder)
    found, version = manifest["dataset"], manifest["schema_version"]
    if found != task:
        raise UserError(f"{folder / MANIFEST}: this is the dataset '{found}', not '{task}'.")
    if version > SCHEMA_VERSION:
        raise UserError(
            f"{folder / MANIFEST}: schema {version}, and this version reads {SCHEMA_VERSION} at most. Install the"
            " forget-datasets that wrote it."
        )
    return manifest


def _choose(config: str | None, known: Mapping[str, object]) -> str:
    if config is None:
        if len(known) > 1:
            raise UserError(f"the dataset has several configs: name one with --config ({', '.join(known)}).")
        return next(iter(known))
    if config not in known:
        raise unknown("config", config, known)
    return config


def _require_hash(folder: Path, manifest: Mapping[str, Any], config: str, content_hash: str) -> None:
    stated = manifest["configs"].get(config, {}).get("content_hash")
    if stated is None:
        raise UserError(
            f"{folder / MANIFEST} has no content hash of the config '{config}', so nobody can tell whether its rows are"
            f" those that were built. {_REBUILD}"
        )
    if stated != content_hash:
        raise UserError(
            f"{folder}: the rows of config '{config}' are not those that were built (content hash {content_hash[:12]},"
            f" in {MANIFEST} {stated[:12]}). {_REBUILD}"
        )


_Reader = Callable[[Path, str, pa.RecordBatch], tuple[list[str], bytes]]


def _read(shards: list[Shard], task: str, reader: _Reader) -> tuple[str, int]:
    """The content hash and the number of rows, all of which have ids of their own."""
    schema, digest, first_at = SCHEMAS[task], RowHash(), dict[str, Path]()
    for shard in shards:
        checks.require_columns(shard.path, schema)
        for ids, lines in read_batches(shard.path, schema, partial(reader, shard.path, task)):
            for key in ids:
                if key in first_at:
                    raise checks.bad(shard.path, key, schema.names[0], f"duplicate id, first in {first_at[key].name}")
                first_at[key] = shard.path
            digest.add_lines(lines)
    return digest.hexdigest(), len(first_at)


def _read_alone(path: Path, task: str, batch: pa.RecordBatch) -> tuple[list[str], bytes]:
    """The ids of a batch of rows and their canonical lines."""
    return batch.column(0).to_pylist(), canonical_lines(from_batch(batch))


def _checked(path: Path, task: str, batch: pa.RecordBatch) -> tuple[list[str], bytes]:
    """The ids of a batch of rows and their canonical lines. Raises UserError for the first row that is no good."""
    rows = from_batch(batch)
    if not checks.are_cases(batch, task):
        for row in rows:
            checks.require_row(path, row, task)
    return batch.column(0).to_pylist(), canonical_lines(rows)
