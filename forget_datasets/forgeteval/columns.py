"""Cases straight from Arrow columns: no dictionary a row on the way."""

from itertools import pairwise
from typing import Any

import pyarrow as pa

from forget_datasets.rows import GeneratedCase, Probe
from forget_datasets.schema import NULLABLE, from_batch, has_nulls


def cases_of(batch: pa.RecordBatch) -> list[GeneratedCase]:
    """The cases of a batch with the columns of `schema.FORGETEVAL`, the same as `GeneratedCase.from_row` makes.

    Raises UnicodeDecodeError for a text that is not UTF-8.
    """
    if has_nulls(batch, NULLABLE["forgeteval"]):  # a list that is null has no place among the others of its column
        return [GeneratedCase.from_row(row) for row in from_batch(batch)]
    column = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = (
        column["id"].to_pylist(),
        column["family"].to_pylist(),
        _lists(column["setup_facts"]),
        _mutations(column["mutations"]),
        column["final_query"].to_pylist(),
        _lists(column["must_contain"]),
        _lists(column["must_not_contain"]),
        column["template"].to_pylist(),
        column["lang"].to_pylist(),
        _probes(column["probes"]),
        column["n_distractors"].to_pylist(),
    )
    return [*map(GeneratedCase, *columns)]


def _mutations(lists: pa.ListArray) -> list[list[tuple[str, ...]]]:
    ops, queries, texts = (field.to_pylist() for field in _fields(lists, "op", "query", "new_text"))
    told = zip(ops, queries, texts, strict=True)
    return _cut([(op, query) if text is None else (op, query, text) for op, query, text in told], lists)


def _probes(lists: pa.ListArray) -> list[list[Probe]]:
    kinds, queries, required, forbidden = _fields(lists, "kind", "query", "must_contain", "must_not_contain")
    made = map(Probe, kinds.to_pylist(), queries.to_pylist(), _lists(required), _lists(forbidden))
    return _cut([*made], lists)


def _fields(lists: pa.ListArray, *names: str) -> list[pa.Array]:
    """Fields of the structs in all lists, one array each."""
    structs = lists.flatten()
    fields = structs.flatten()
    return [fields[structs.type.get_field_index(name)] for name in names]


def _lists(lists: pa.ListArray) -> list[list[Any]]:
    return _cut(lists.flatten().to_pylist(), lists)


def _cut(values: list[Any], lists: pa.ListArray) -> list[list[Any]]:
    """The values of all lists, one after the other, as a list for each."""
    places = lists.offsets.to_pylist()
    return [values[start - places[0] : end - places[0]] for start, end in pairwise(places)]
