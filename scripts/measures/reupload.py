"""Measures what the Hub is sent again after one row of a dataset has changed.

The Hub stores files as chunks of about 64 KiB that their content delimits, and takes only those that it lacks. What it
is sent is therefore the bytes of the new file's chunks that the old file does not have. Chunks here are those of
FastCDC (2020) with the Hub's sizes (8 KiB at least, 64 KiB on average, 128 KiB at most); the Hub's own hash puts the
boundaries elsewhere, so single figures differ from an upload's and their order of magnitude does not. Nothing is sent.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyfastcdc import FastCDC

from forget_datasets.schema import SCHEMAS
from forget_datasets.shards import ShardWriter, find, read_rows

Rows = Sequence[Mapping[str, Any]]

SIZES = {"min_size": 8 << 10, "avg_size": 64 << 10, "max_size": 128 << 10}
EDITED = {"forgeteval": "final_query", "membehave": "forget_request"}
"""The column of which one row is edited."""


def sent_again(old: bytes, new: bytes) -> int:
    """Bytes of the chunks of a new file that an old one lacks."""
    known = {digest for digest, _ in _chunks(old)}
    return sum(size for digest, size in dict(_chunks(new)).items() if digest not in known)


def measure(folder: Path, dataset: str, config: str, split: str) -> Iterator[dict[str, Any]]:
    """What is sent again if the row in the middle of a split is edited, deleted or put in once more.

    Yields:
        change, file_bytes of the new file, sent (ours), plain (the same rows without content-defined pages).
    """
    rows = [row for shard in find(folder)[config, split] for row in read_rows(shard.path, SCHEMAS[dataset])]
    middle, column = len(rows) // 2, EDITED[dataset]
    edited = {**rows[middle], column: f"{rows[middle][column]} Please."}
    changes = {
        "edited": [*rows[:middle], edited, *rows[middle + 1 :]],
        "deleted": [*rows[:middle], *rows[middle + 1 :]],
        "put in": [*rows[:middle], edited, *rows[middle:]],
    }
    writers: tuple[Callable[[Rows, str], bytes], ...] = (_ours, _plain)
    old = [write(rows, dataset) for write in writers]
    for change, changed in changes.items():
        new = [write(changed, dataset) for write in writers]
        sent, plain = (sent_again(before, after) for before, after in zip(old, new, strict=True))
        yield {"change": change, "file_bytes": len(new[0]), "sent": sent, "plain": plain}


def figures(folder: Path, dataset: str, config: str, split: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The columns and rows of a table of the figures of a split."""
    rows = []
    for found in measure(folder, dataset, config, split):
        sizes = (f"{found[name] / 1000:,.0f}" for name in ("file_bytes", "sent", "plain"))
        rows.append((str(found["change"]), *sizes))
    return ("one row", "file, kB", "sent again, kB", "without content-defined pages, kB"), rows


def _chunks(data: bytes) -> Iterator[tuple[bytes, int]]:
    for chunk in FastCDC(**SIZES, seed=0).cut_buf(data):
        yield sha256(chunk.data).digest(), chunk.length


def _ours(rows: Rows, dataset: str) -> bytes:
    with TemporaryDirectory() as place:
        with ShardWriter(Path(place), "split", SCHEMAS[dataset]) as writer:
            for row in rows:
                writer.add(row)
            written = writer.close()
        return b"".join((Path(place) / name).read_bytes() for name in written.files)


def _plain(rows: Rows, dataset: str) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(list(rows), SCHEMAS[dataset]), sink, compression="zstd")
    return sink.getvalue().to_pybytes()
