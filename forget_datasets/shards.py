"""Rows in Parquet shards: written in bounded memory, read back in the same order, known by the hash of the rows."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from forget_datasets.errors import DataFault, UserError
from forget_datasets.rows import LEVELS, RowHash, canonical_lines
from forget_datasets.schema import BATCH_ROWS, from_batch, mismatches, to_batch

T = TypeVar("T")
GROUP_BYTES = 32 << 20
"""Arrow bytes of a row group: content-defined chunking pays with large groups only, streaming likes small ones."""
SHARD_BYTES = 500_000_000
"""Parquet bytes after which a new shard begins."""
_BATCH_BYTES = 512 << 10  # of encoded data, read at a time
_BATCH_MOST = 256  # rows; more are read no faster
_NAME = re.compile(r"(?P<split>.+)-(?P<number>[0-9]{5,9})-of-(?P<total>[0-9]{5,9})\.parquet")


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
        if len(self._rows) >= BATCH_ROWS:
            self._convert()

    def extend(self, batches: Iterable[pa.RecordBatch], lines: bytes) -> None:
        """Appends rows that are Arrow data already, `schema.BATCH_ROWS` at a time; `lines`: `rows.canonical_lines`.

        Raises OSError as `add`.
        """
        self._convert()
        self._hash.add_lines(lines)
        for batch in batches:
            self._count += batch.num_rows
            self._hold(batch)

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
            self._hold(to_batch(self._rows, self._schema))
            self._rows = []

    def _hold(self, batch: pa.RecordBatch) -> None:
        size = batch.nbytes
        self._batches.append(batch)
        self._held += size
        self._arrow_bytes += size
        if self._held >= self._group_bytes:
            self._flush()

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
        total = shards[0].total
        if [(s.number, s.total) for s in shards] != [(i, total) for i in range(len(shards))] or len(shards) != total:
            names = ", ".join(s.path.name for s in shards)
            raise UserError(f"{folder}/data/{config}: the shards of split '{split}' are not complete: {names}")
    return dict(found)


def is_shard(file: str) -> bool:
    """Whether a path relative to a dataset folder is where a shard lies: `data/<config>/` and the name of one."""
    parts = file.split("/")
    return len(parts) == 3 and parts[0] == "data" and _NAME.fullmatch(parts[2]) is not None


def hash_shards(paths: Iterable[Path], schema: pa.Schema) -> str:
    """The content hash of all rows of some shards, as they read back. Raises UserError as `read_rows`."""
    whole = RowHash()
    for path in paths:
        for lines in read_batches(path, schema, lambda batch: canonical_lines(from_batch(batch))):
            whole.add_lines(lines)
    return whole.hexdigest()


def _rank(shard: Shard) -> tuple[str, int, Shard]:
    return shard.config, LEVELS.index(shard.split) if shard.split in LEVELS else len(LEVELS), shard


def _parse(path: Path) -> Shard:
    if named := _NAME.fullmatch(path.name):
        return Shard(path.parent.name, named["split"], int(named["number"]), int(named["total"]), path)
    raise UserError(f"{path}: not named <split>-<number>-of-<total>.parquet, so it is no shard of ours")


def open_shard(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    """A Parquet file whose columns fit the schema.

    Raises:
        UserError: not a whole Parquet file, a column is missing, stands twice or has another type.
    """
    file = _open(path)
    if problems := mismatches(file.schema_arrow, schema):
        listed = "; ".join(f"column '{column}' {what}" for column, what in problems)
        raise UserError(f"{path}: {listed}. Rebuild the dataset, or read it with the version that wrote it.")
    return file


def columns_of(path: Path) -> frozenset[str]:
    """The names of a Parquet file's columns. Raises UserError for what is no whole Parquet file."""
    with _open(path) as file:
        return frozenset(file.schema_arrow.names)


def read_rows(path: Path, schema: pa.Schema, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a shard, a few in memory at a time.

    Args:
        path, schema: of the shard.
        columns: those that are wanted, in the order of the schema; the others are not even read.

    Raises:
        UserError: as `read_batches`.
    """
    for batch in read_batches(path, schema, from_batch, columns):
        yield from batch


def read_batches(
    path: Path,
    schema: pa.Schema,
    taken: Callable[[pa.RecordBatch], T],
    columns: Sequence[str] | None = None,
) -> Iterator[T]:
    """What is made of each batch of a shard's rows; a batch is some hundred kilobytes, however long the rows are.

    Args:
        path, schema: of the shard.
        taken: what to make of a batch.
        columns: those that are wanted, in the order of the schema; the others are not even read.

    Raises:
        UserError: as `open_shard`; or for damaged data, with the id and the column of a text that is not UTF-8.
    """
    with open_shard(path, schema) as file:
        names = [name for name in schema.names if columns is None or name in columns]
        batches = file.iter_batches(batch_size=_rows_at_once(file), columns=names)
        place = 0
        while True:
            with _faults(path, "damaged data"):
                batch = next(batches, None)
            if batch is None:
                return
            try:
                made = taken(batch)
            except UnicodeDecodeError as error:
                raise _not_utf8(path, place, batch) from error
            yield made
            place += batch.num_rows


def _rows_at_once(file: pq.ParquetFile) -> int:
    """How many rows come to `_BATCH_BYTES`, as far as the file tells."""
    metadata = file.metadata
    rows: int = metadata.num_rows
    size: int = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    return max(1, min(_BATCH_MOST, _BATCH_BYTES * rows // max(1, size)))


def _open(path: Path) -> pq.ParquetFile:
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{path}: the path is not UTF-8, and Arrow opens no such file. Rename it.") from error
    with _faults(path, "not a whole Parquet file"):
        file = pq.ParquetFile(path)
        file.schema_arrow  # noqa: B018  (made of the footer when it is first asked for)
        return file


@contextmanager
def _faults(path: Path, what: str) -> Iterator[None]:
    """Turns whatever Arrow raises over the bytes of a file into a DataFault: damage comes in every shape."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError, MemoryError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DataFault(f"{path}: {what} ({reason}). Build or download it again.") from error


def _not_utf8(path: Path, place: int, batch: pa.RecordBatch) -> UserError:
    """The error for the first text of a batch, which begins with row `place` of its file, that is not UTF-8."""
    key = batch.schema.names[0]
    for i in range(batch.num_rows):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column[i].as_py()
            except UnicodeDecodeError as error:
                row = f"number {place + i + 1}" if name == key else batch.column(key)[i].as_py()
                return DataFault(
                    f"{path}, row {row}: column '{name}': not UTF-8 ({error.reason}). Build or download it again."
                )
    raise AssertionError("only called for a batch with such a text")
