"""The columns of both datasets, declared once: what the builder writes, the loader expects and the card describes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

SCHEMA_VERSION = 1
"""Raised by any change of a column's name, type or meaning."""

_TEXT = pa.string()
_TEXTS = pa.list_(_TEXT)


_NAMES = {"large_string": "string", "double": "float64"}


def _structs(*fields: str | tuple[str, pa.DataType]) -> pa.DataType:
    """A list of structs; a field that gives no type is a text."""
    return pa.list_(pa.struct([(field, _TEXT) if isinstance(field, str) else field for field in fields]))


FORGETEVAL = pa.schema(
    [
        ("id", _TEXT),
        ("family", _TEXT),
        ("template", _TEXT),
        ("lang", _TEXT),
        ("setup_facts", _TEXTS),
        ("mutations", _structs("op", "query", "new_text")),
        ("final_query", _TEXT),
        ("must_contain", _TEXTS),
        ("must_not_contain", _TEXTS),
        ("probes", _structs("kind", "query", ("must_contain", _TEXTS), ("must_not_contain", _TEXTS))),
        ("n_distractors", pa.int32()),
    ]
)
"""One row a case (`rows.GeneratedCase`)."""

MEMBEHAVE = pa.schema(
    [
        ("item_id", _TEXT),
        ("triplet_id", _TEXT),
        ("user", _TEXT),
        ("target", _TEXT),
        ("level", _TEXT),
        ("shared", pa.int32()),
        ("degree", pa.int32()),
        ("entanglement_ratio", pa.float64()),
        ("forget_request", _TEXT),
        ("neighbors", _structs("entity", "kind", ("aliases", _TEXTS), ("shared_with", _TEXTS))),
        (
            "evidence",
            _structs(
                "person",
                "entity",
                "session_id",
                ("message_index", pa.int32()),
                "speaker_id",
                "listener_id",
                "quote",
            ),
        ),
        (
            "probes",
            _structs(
                "family",
                "entity",
                "asked_through",
                "question",
                "scoring",
                "expected",
                ("expected_entities", _TEXTS),
                ("n_expected", pa.int32()),
                ("aliases", _TEXTS),
                "speaker_id",
                "listener_id",
                "source_quote",
            ),
        ),
        ("sessions", _structs("session_id", "start_time", ("messages", _structs("role", "content")))),
    ]
)
"""One row an item (`rows.Item`)."""

SCHEMAS: Mapping[str, pa.Schema] = {"forgeteval": FORGETEVAL, "membehave": MEMBEHAVE}
"""The schema of each dataset by its name."""

NULLABLE: Mapping[str, frozenset[str]] = {
    "forgeteval": frozenset({"mutations.new_text"}),
    "membehave": frozenset(
        f"probes.{name}"
        for name in ("entity", "asked_through", "expected", "speaker_id", "listener_id", "source_quote")
    ),
}
"""The fields that may be null, as column or column.field; everything else always has a value."""


BATCH_ROWS = 32
"""Rows that are turned into Arrow data at once, however they come: what a build counts in bytes depends on it."""


def to_batch(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as Arrow data. Raises ValueError for a missing or foreign column, which Arrow itself would pass over."""
    names = set(schema.names)
    for row in rows:
        if row.keys() != names:
            odd = sorted(row.keys() ^ names)
            raise ValueError(f"columns {odd} are missing from the row or from the schema")
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def from_batch(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Arrow data as rows, the reverse of `to_batch`."""
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def mismatches(found: pa.Schema, expected: pa.Schema) -> list[tuple[str, str]]:
    """Columns of a file that are missing, ambiguous or of another type, each with what is wrong.

    Types are compared by what they hold: the name of a list's element and nullability, on which writers differ, do not
    count. Neither does a column beyond the expected ones: who reads rows may pass over it (but see `surplus`).
    """
    problems = []
    for field in expected:
        places = found.get_all_field_indices(field.name)
        if not places:
            problems.append((field.name, "is missing"))
        elif len(places) > 1:
            problems.append((field.name, f"stands there {len(places)} times"))
        elif (actual := type_name(found.field(places[0]).type)) != (wanted := type_name(field.type)):
            problems.append((field.name, f"has type {actual}, not {wanted}"))
    return problems


def surplus(found: Iterable[str], expected: pa.Schema) -> list[str]:
    """Columns that the schema does not have. A published dataset must be without: the card tells `load_dataset` so."""
    return [name for name in found if name not in expected.names]


def type_name(data_type: pa.DataType) -> str:
    """An Arrow type as the card prints it, such as `list<struct<op: string, query: string>>`."""
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return f"list<{type_name(data_type.value_type)}>"
    if pa.types.is_struct(data_type):
        return "struct<" + ", ".join(f"{field.name}: {type_name(field.type)}" for field in data_type) + ">"
    return _NAMES.get(str(data_type), str(data_type))


def nulls(row: Mapping[str, Any], nullable: frozenset[str]) -> list[str]:
    """The fields of a row (column, or column.field) that are null and must not be."""
    found = {path for column, value in row.items() for path in _null_paths(value, column)}
    return sorted(found - nullable)


def has_nulls(batch: pa.RecordBatch, nullable: frozenset[str]) -> bool:
    """Whether any row of a batch has a field that is null and must not be: `nulls`, of all rows at once."""
    return any(
        _holds_null(column, name, nullable) for name, column in zip(batch.schema.names, batch.columns, strict=True)
    )


def _holds_null(array: pa.Array, path: str, nullable: frozenset[str]) -> bool:
    if array.null_count and path not in nullable:
        return True
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return _holds_null(array.flatten(), path, nullable)
    if pa.types.is_struct(array.type):
        fields = zip(array.type, array.flatten(), strict=True)
        return any(_holds_null(inner, f"{path}.{field.name}", nullable) for field, inner in fields)
    return False


def _null_paths(value: Any, path: str) -> Iterator[str]:
    if value is None:
        yield path
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _null_paths(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from _null_paths(inner, path)
