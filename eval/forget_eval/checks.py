"""Whether data is as the schema says: every complaint names file, row and column."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forget_datasets.errors import UserError
from forget_datasets.membehave.screening import check_item
from forget_datasets.rows import FAMILIES, OPERATIONS, Item
from forget_datasets.schema import NULLABLE, has_nulls, mismatches, nulls
from forget_datasets.shards import open_shard

_PROBES = ("leak", "survivor")


def bad(path: Path, row: str, column: str, what: str) -> UserError:
    """The error for a value that should not be there."""
    return UserError(
        f"{path}, row {row}: column '{column}': {what}. Rebuild the dataset, or load it with the version that wrote it."
    )


def require_columns(path: Path, schema: pa.Schema) -> None:
    """Raises UserError if a shard is not a whole Parquet file, or a column is missing or of another type."""
    try:
        found = pq.read_schema(path)
    except (pa.ArrowException, OSError):
        open_shard(path, schema)  # says what is wrong with the file
        raise
    for column, what in mismatches(found, schema):
        raise bad(path, _first_id(path, schema.names[0]), column, what)


def require_row(path: Path, row: Mapping[str, Any], task: str) -> None:
    """Raises UserError if a value is null that must not be, or is none of those known."""
    key = next(iter(row))
    where = str(row[key])
    for field in nulls(row, NULLABLE[task]):
        raise bad(path, where, field.split(".")[0], f"{field} is null")
    if not where:
        raise bad(path, "''", key, "the id is empty")
    if task == "forgeteval":
        _require_case(path, where, row)
    else:
        _require_item(path, row)


def are_cases(batch: pa.RecordBatch, task: str) -> bool:
    """Whether `require_row` has nothing against any row of a batch: told by its columns, of ForgetEval alone."""
    if task != "forgeteval" or has_nulls(batch, NULLABLE[task]) or "" in batch.column("id").unique().to_pylist():
        return False
    mutations = batch.column("mutations").flatten()
    ops, texts = (mutations.flatten()[mutations.type.get_field_index(name)] for name in ("op", "new_text"))
    kinds = batch.column("probes").flatten()
    kinds = kinds.flatten()[kinds.type.get_field_index("kind")]
    known = ((batch.column("family"), FAMILIES), (ops, OPERATIONS), (kinds, _PROBES))
    supersedes = [op == "supersede" for op in ops.to_pylist()]
    return supersedes == texts.is_valid().to_pylist() and all(
        set(column.unique().to_pylist()) <= {*names} for column, names in known
    )


def _require_case(path: Path, where: str, row: Mapping[str, Any]) -> None:
    _require_known(path, where, "family", "family", row["family"], FAMILIES)
    for mutation in row["mutations"]:
        _require_known(path, where, "mutations", "op", mutation["op"], OPERATIONS)
        if (mutation["new_text"] is not None) != (mutation["op"] == "supersede"):
            raise bad(path, where, "mutations", f"a {mutation['op']} {_with(mutation['new_text'])} new_text")
    for probe in row["probes"]:
        _require_known(path, where, "probes", "kind", probe["kind"], _PROBES)


def _require_item(path: Path, row: Mapping[str, Any]) -> None:
    problems = check_item(Item.from_row(row))
    if problems:
        item, column, what = problems[0].split(": ", 2)
        raise bad(path, item, column, what)


def _with(value: object) -> str:
    return "without a" if value is None else "with a"


def _require_known(path: Path, where: str, column: str, what: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise bad(path, where, column, f"unknown {what} '{value}' (known: {', '.join(known)})")


def _first_id(path: Path, key: str) -> str:
    """The id of a shard's first row; the fault is in every row, and a reader wants one to look at."""
    try:
        ids = pq.read_table(path, columns=[key])[key]
        return f"{ids[0].as_py()} and all others" if len(ids) else "none"
    except (pa.ArrowException, KeyError):
        return "every one"
