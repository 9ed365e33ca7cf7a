"""Rows in Parquet shards: written in bounded memory, read back in the same order, known by the hash of the rows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from forget_datasets.errors import UserError
from forget_datasets.rows import LEVELS, canonical
from forget_datasets.schema import from_batch, mismatches, to_batch

GROUP_BYTES = 32 << 20
"""Arrow bytes of a row group: content-defined chunking pays with large groups only, streaming likes small ones."""
SHARD_BYTES = 500_000_000
"""Parquet bytes after which a new shard begins."""
_BATCH_ROWS = 32


class RowHash:
    """`rows.content_hash`, fed one row at a time."""

    def __init__(self) -> None:
        self._digest = sha256()

    def add(self, row: Mapping[str, Any]) -> None:
        """Takes in the next row."""
        self._digest.update(canonical(row))
        self._digest.update(b"\n")

    def hexdigest(self) -> str:
        """The hash of all rows so far."""
        return self._digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Written:
    """What a `ShardWriter` left behind: file names, rows, Parquet bytes and Arrow bytes."""

    files: tuple[str, ...]
    rows: int
    file_bytes: int
    arrow_bytes: int
    content_hash: str


class ShardWriter:
    """Writes one split into `folder`; `close` gives the shards their final names. A context manager.

    The bytes depend on the rows and on the version of Arrow alone.
    """

    def __init__(
        self,
        folder: Path,
        split: str,
        schema: pa.Schema,
        group_bytes: int = GROUP_BYTES,
        shard_bytes: int = SHARD_BYTES,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._split, self._schema = folder, split, schema
        self._group_bytes, self._shard_bytes = group_bytes, shard_bytes
        self._rows: list[Mapping[str, Any]] = []
        self._batches: list[pa.RecordBatch] = []
        self._held = self._count = self._arrow_bytes = 0
        self._hash = RowHash()
        self._parts: list[Path] = []
        self._sink: BinaryIO | None = None
        self._writer: pq.ParquetWriter | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Appends a row. Raises OSError if the disk does not take it, ValueError if it does not fit the schema."""
        self._hash.add(row)
        self._count += 1
        self._rows.append(row)
        if len(self._rows) >= _BATCH_ROWS:
            self._convert()
        if self._held >= self._group_bytes:
            self._flush()

    def close(self) -> Written:
        """Writes what is left; an empty split still makes one shard."""
        self._convert()
        if self._batches or not self._parts:
            self._flush()
        self._end_shard()
        names = [f"{self._split}-{i:05d}-of-{len(self._parts):05d}.parquet" for i in range(len(self._parts))]
        files = [part.rename(self._folder / name) for part, name in zip(self._parts, names, strict=True)]
        file_bytes = sum(file.stat().st_size for file in files)
        return Written(tuple(names), self._count, file_bytes, self._arrow_bytes, self._hash.hexdigest())

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(self, *error: object) -> None:
        """Lets go of a file that an error left open; what is in the folder is then of no use."""
        with suppress(pa.ArrowException, OSError):
            self._end_shard()

    def _convert(self) -> None:
        if self._rows:
            batch = to_batch(self._rows, self._schema)
            self._batches.append(batch)
            self._held += batch.nbytes
            self._arrow_bytes += batch.nbytes
            self._rows = []

    def _flush(self) -> None:
        if self._sink and self._sink.tell() >= self._shard_bytes:
            self._end_shard()
        if self._writer is None:
            self._begin_shard()
        assert self._writer is not None
        table = pa.Table.from_batches(self._batches, self._schema).combine_chunks()
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._batches, self._held = [], 0

    def _begin_shard(self) -> None:
        self._parts.append(self._folder / f"{self._split}-{len(self._parts):05d}.part")
        self._sink = self._parts[-1].open("wb")
        self._writer = pq.ParquetWriter(
            self._sink, self._schema, compression="zstd", use_content_defined_chunking=True, write_page_index=True
        )

    def _end_shard(self) -> None:
        writer, sink = self._writer, self._sink
        self._writer = self._sink = None
        if writer and sink:
            with sink:
                writer.close()


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """A Parquet file of a dataset folder, `data/<config>/<split>-<number>-of-<total>.parquet`."""

    config: str
    split: str
    number: int
    total: int
    path: Path


def find(folder: Path) -> dict[tuple[str, str], list[Shard]]:
    """The shards of a dataset folder in order, by config and split; levels go from low to high.

    Raises:
        UserError: there are none, a name is not that of a shard, or one of a series is missing.
    """
    found: dict[tuple[str, str], list[Shard]] = defaultdict(list)
    for shard in sorted(map(_parse, folder.glob("data/*/*.parquet")), key=_rank):
        found[shard.config, shard.split].append(shard)
    if not found:
        raise UserError(f"{folder} holds no data/<config>/<split>-*.parquet, so it is no dataset of ours")
    for (config, split), shards in found.items():
        if [s.number for s in shards] != list(range(shards[0].total)) or len({s.total for s in shards}) > 1:
            names = ", ".join(s.path.name for s in shards)
            raise UserError(f"{folder}/data/{config}: the shards of split '{split}' are not complete: {names}")
    return dict(found)


def hash_shards(paths: Iterable[Path], schema: pa.Schema) -> str:
    """The content hash of all rows of some shards, as they read back. Raises UserError as `read_rows`."""
    whole = RowHash()
    for path in paths:
        for row in read_rows(path, schema):
            whole.add(row)
    return whole.hexdigest()


def _rank(shard: Shard) -> tuple[str, int, Shard]:
    return shard.config, LEVELS.index(shard.split) if shard.split in LEVELS else len(LEVELS), shard


def _parse(path: Path) -> Shard:
    try:
        split, number, of, total = path.stem.rsplit("-", 3)
        if of == "of":
            return Shard(path.parent.name, split, int(number), int(total), path)
    except ValueError:
        pass
    raise UserError(f"{path}: not named <split>-<number>-of-<total>.parquet, so it is no shard of ours")


def open_shard(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    """A Parquet file whose columns fit the schema.

    Raises:
        UserError: not a whole Parquet file, a column is missing or has another type.
    """
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a whole Parquet file ({error}). Build or download it again.") from error
    if problems := mismatches(file.schema_arrow, schema):
        listed = "; ".join(f"column '{column}' {what}" for column, what in problems)
        raise UserError(f"{path}: {listed}. Rebuild the dataset, or read it with the version that wrote it.")
    return file


def read_rows(path: Path, schema: pa.Schema) -> Iterator[dict[str, Any]]:
    """The rows of a shard, a few in memory at a time. Raises UserError as `open_shard`, or for damaged data."""
    with open_shard(path, schema) as file:
        try:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=schema.names):
                yield from from_batch(batch)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{path}: damaged data ({error}). Build or download it again.") from error
