"""Rows in Parquet: the same rows in the same order come back, and whatever is wrong with a file is said, not raised."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from forget_datasets import schema
from forget_datasets.errors import UserError
from forget_datasets.rows import GeneratedCase, content_hash
from forget_datasets.shards import ShardWriter, find, is_shard, read_rows
from forget_datasets.validate import validate

FILE = "data/handmade/test-00000-of-00001.parquet"


def row(number: int, text: str = "x") -> Mapping[str, Any]:
    return GeneratedCase(f"decay__otp__{number:03d}", "decay", [text], [("release", "q")], "q", [], ["x"]).to_row()


@settings(deadline=None, max_examples=20)
@given(count=st.integers(0, 150), group=st.sampled_from([1, 4000, 10**9]), shard=st.sampled_from([1, 6000, 10**9]))
def test_shards_hold_the_rows_in_order(
    tmp_path_factory: pytest.TempPathFactory, count: int, group: int, shard: int
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    with ShardWriter(folder / "data/en", "test", schema.FORGETEVAL, group, shard) as writer:
        for i in range(count):
            writer.add(row(i))
        written = writer.close()
    assert written.rows == count
    assert sorted(written.files) == sorted(path.name for path in (folder / "data/en").iterdir())
    found = [r for s in find(folder)["en", "test"] for r in read_rows(s.path, schema.FORGETEVAL)]
    assert found == [row(i) for i in range(count)]
    assert written.content_hash == content_hash(row(i) for i in range(count))


def test_a_shard_ends_when_it_is_full(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "test", schema.FORGETEVAL, group_bytes=1, shard_bytes=1) as writer:
        for i in range(70):  # batches of 32, 32 and 6 rows, each a row group, each group a shard
            writer.add(row(i))
        written = writer.close()
    assert written.files == tuple(f"test-0000{i}-of-00003.parquet" for i in range(3))
    assert [pq.read_metadata(tmp_path / name).num_rows for name in written.files] == [32, 32, 6]
    assert written.file_bytes == sum((tmp_path / name).stat().st_size for name in written.files)


def test_the_hash_is_that_of_one_canonical_row_a_line() -> None:
    rows = [{"b": "é", "a": None}, {"a": [1]}]
    assert content_hash(rows) == sha256('{"a":null,"b":"é"}\n{"a":[1]}\n'.encode()).hexdigest()


def test_only_shards_have_the_name_of_one() -> None:
    assert is_shard("data/en/test-00000-of-00001.parquet")
    assert is_shard("data/x-y/low-00012-of-123456.parquet")
    assert not is_shard("en/test-00000-of-00001.parquet")
    assert not is_shard("data/a/b/test-00000-of-00001.parquet")
    assert not is_shard("data/en/test-0-of-1.parquet")
    assert not is_shard("data/en/test-00000-of-00001.csv")
    assert not is_shard("data/en/test-٠٠٠٠٠-of-00001.parquet")


def test_a_series_that_claims_to_be_endless_is_not_complete(tmp_path: Path) -> None:
    (tmp_path / "data/en").mkdir(parents=True)
    (tmp_path / "data/en/test-00000-of-999999999.parquet").touch()
    with pytest.raises(UserError, match="are not complete"):
        find(tmp_path)


def not_utf8(values: list[bytes]) -> pa.Array:
    """Strings of which Arrow was never told that they must be UTF-8."""
    raw = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(values), raw.buffers())


@pytest.mark.parametrize(
    ("column", "place"),
    [("final_query", "row decay__otp__040: column 'final_query'"), ("id", "row number 41: column 'id'")],
)
def test_a_text_that_is_not_utf8_is_named_by_row_and_column(tmp_path: Path, column: str, place: str) -> None:
    table = pa.Table.from_pylist([row(i) for i in range(60)], schema=schema.FORGETEVAL)
    texts = [text.encode() for text in table[column].to_pylist()]
    texts[40] += b"\xff"
    index = table.schema.get_field_index(column)
    pq.write_table(table.set_column(index, column, not_utf8(texts)), tmp_path / "x.parquet")
    with pytest.raises(UserError) as raised:
        list(read_rows(tmp_path / "x.parquet", schema.FORGETEVAL))
    assert f"{tmp_path / 'x.parquet'}, {place}: not UTF-8" in str(raised.value)


def test_a_nested_text_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([row(0), row(1)], schema=schema.FORGETEVAL)
    facts = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), not_utf8([b"x", b"\xc3"]))
    index = table.schema.get_field_index("setup_facts")
    pq.write_table(table.set_column(index, "setup_facts", facts), tmp_path / "x.parquet")
    with pytest.raises(UserError, match="row decay__otp__001: column 'setup_facts': not UTF-8"):
        list(read_rows(tmp_path / "x.parquet", schema.FORGETEVAL))


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([row(0)], schema=schema.FORGETEVAL)
    pq.write_table(table.append_column("id", table["family"]), tmp_path / "x.parquet")
    with pytest.raises(UserError, match=r"x\.parquet: column 'id' stands there 2 times"):
        list(read_rows(tmp_path / "x.parquet", schema.FORGETEVAL))


def test_a_path_that_is_not_utf8_is_said(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.parquet")
    path.touch()
    with pytest.raises(UserError, match="the path is not UTF-8"):
        list(read_rows(path, schema.FORGETEVAL))


DAMAGES = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=5)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(kept=0.0, damages=[])
@example(kept=0.5, damages=[])
@given(kept=st.one_of(st.just(1.0), st.floats(0, 1)), damages=DAMAGES)
def test_whatever_a_disk_did_to_a_file_is_a_finding_or_a_user_error(
    handmade_folder: Path, kept: float, damages: list[tuple[float, int]]
) -> None:
    folder = Path(shutil.copytree(handmade_folder, handmade_folder.parent / "damaged", dirs_exist_ok=True))
    content = bytearray((folder / FILE).read_bytes())
    del content[int(len(content) * kept) :]
    for place, value in damages:
        content[int(len(content) * place) : int(len(content) * place) + 1] = bytes([value])
    (folder / FILE).write_bytes(content)
    with suppress(UserError):  # the message is another test's matter; anything else would be a traceback
        validate(folder)
