"""What is told by columns is what the rows say, one by one: cases, nulls, values that nobody knows, verdicts."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forget_datasets.errors import UserError
from forget_datasets.forgeteval import TOP_K, generate
from forget_datasets.forgeteval.columns import cases_of
from forget_datasets.forgeteval.controls import CONTROLS, outcomes
from forget_datasets.rows import GeneratedCase, Probe, canonical, canonical_lines, content_hash
from forget_datasets.schema import FORGETEVAL, NULLABLE, has_nulls, nulls, to_batch
from forget_datasets.shards import read_batches, read_rows
from forget_datasets.verdicts import spec_reasons, strict_reasons
from forget_eval.checks import are_cases, require_row

CASES = [case for lang in ("en", "zh") for case in generate(4, lang=lang)]
WORDS = st.text("aAßé ", max_size=4)
TEXTS = st.lists(WORDS, max_size=4)
MADE = st.builds(
    GeneratedCase,
    id=WORDS,
    family=st.sampled_from(["decay", "drift"]),
    setup_facts=TEXTS,
    mutations=st.lists(
        st.one_of(st.tuples(st.just("supersede"), WORDS, WORDS), st.tuples(st.just("release"), WORDS)), max_size=3
    ),
    final_query=WORDS,
    must_contain=TEXTS,
    must_not_contain=TEXTS,
    probes=st.lists(st.builds(Probe, st.sampled_from(["leak", "survivor"]), WORDS, TEXTS, TEXTS), max_size=3),
    n_distractors=st.integers(0, 9),
)


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return to_batch(rows, FORGETEVAL)


@settings(deadline=None, max_examples=50)
@given(cases=st.lists(MADE, max_size=6), start=st.integers(0, 3), stop=st.integers(3, 6))
def test_cases_of_columns_are_those_of_rows(cases: list[GeneratedCase], start: int, stop: int) -> None:
    batch = batch_of([case.to_row() for case in cases])
    assert cases_of(batch) == cases
    assert cases_of(batch.slice(start, stop - start)) == cases[start:stop]


def test_the_cases_of_the_generator_come_back() -> None:
    assert cases_of(batch_of([case.to_row() for case in CASES])) == CASES


def set_null(row: dict[str, Any], path: str) -> None:
    column, _, field = path.partition(".")
    if field:
        row[column][-1][field] = None
    else:
        row[column] = None


PATHS = [
    *FORGETEVAL.names, "mutations.op", "mutations.query", "mutations.new_text", "probes.kind", "probes.query",
    "probes.must_contain", "probes.must_not_contain",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("place", [0, 17, 39])
def test_a_null_is_seen_in_columns_as_in_rows(path: str, place: int) -> None:
    rows = copy.deepcopy([case.to_row() for case in CASES])
    assert len(rows) == 40
    set_null(rows[place], path)
    allowed = NULLABLE["forgeteval"]
    expected = path != "mutations.new_text"
    assert bool(nulls(rows[place], allowed)) is expected
    for batch in (batch_of(rows), batch_of([*rows[:3], *rows]).slice(3)):
        assert has_nulls(batch, allowed) is expected
        assert not has_nulls(batch.slice(0, place), allowed)
        assert not has_nulls(batch.slice(place + 1), allowed)


def family(row: dict[str, Any]) -> None:
    row["family"] = "decoy"


def kind(row: dict[str, Any]) -> None:
    row["probes"][-1]["kind"] = "leek"


def operation(row: dict[str, Any]) -> None:
    row["mutations"][-1]["op"] = "forget"


def without_text(row: dict[str, Any]) -> None:
    row["mutations"][-1] = {"op": "supersede", "query": "x", "new_text": None}


def with_text(row: dict[str, Any]) -> None:
    row["mutations"][-1] = {"op": "release", "query": "x", "new_text": "y"}


def without_id(row: dict[str, Any]) -> None:
    row["id"] = ""


@pytest.mark.parametrize("spoil", [family, kind, operation, without_text, with_text, without_id])
@pytest.mark.parametrize("place", [0, 23])
def test_what_a_row_may_not_be_is_seen_in_columns(spoil: Callable[[dict[str, Any]], None], place: int) -> None:
    rows = copy.deepcopy([case.to_row() for case in CASES])
    assert are_cases(batch_of(rows), "forgeteval")
    spoil(rows[place])
    with pytest.raises(UserError):
        require_row(Path("x"), rows[place], "forgeteval")
    assert not are_cases(batch_of(rows), "forgeteval")
    assert are_cases(batch_of(rows).slice(place + 1), "forgeteval")


@settings(deadline=None, max_examples=200)
@given(case=MADE, k=st.integers(1, 3))
def test_controls_fare_as_the_rules_say(case: GeneratedCase, k: int) -> None:
    """The shortcuts against the rules in full: every probe asked, and every leak probe once more."""
    for control, found in zip(CONTROLS, outcomes(case, k), strict=True):
        answer, expected = CONTROLS[control], list[bool]()
        for cut in (k, None):
            final = answer(case, case)[:cut]
            probes = [answer(case, probe)[:cut] for probe in case.probes]
            again = [texts for probe, texts in zip(case.probes, probes, strict=True) if probe.kind == "leak"]
            expected += [not spec_reasons(case, final), not strict_reasons(case, final, probes, again)]
        assert list(found) == expected, control


def test_controls_fare_on_generated_cases_as_the_rules_say() -> None:
    for case in CASES:
        assert [(strict, uncut) for _, strict, _, uncut in outcomes(case, TOP_K)] == [
            (name == "oracle", name == "oracle") for name in CONTROLS
        ]


def test_lines_are_canonical_rows() -> None:
    rows = [case.to_row() for case in CASES]
    assert canonical({"b": [{"d": "é", "c": None}], "a": 1}) == '{"a":1,"b":[{"c":null,"d":"é"}]}'.encode()
    assert canonical_lines(rows) == b"".join(canonical(row) + b"\n" for row in rows)


@pytest.mark.parametrize(("count", "length", "at_once"), [(1000, 10, 256), (12, 200_000, 2), (3, 2_000_000, 1)])
def test_long_rows_are_read_few_at_a_time(tmp_path: Path, count: int, length: int, at_once: int) -> None:
    """A batch is some 512 KiB of the file before it was compressed, 256 rows at most."""
    rows = [{**CASES[0].to_row(), "final_query": f"{i:0{length}d}"} for i in range(count)]
    pq.write_table(pa.Table.from_pylist(rows, FORGETEVAL), tmp_path / "x.parquet", row_group_size=count)
    sizes = list(read_batches(tmp_path / "x.parquet", FORGETEVAL, lambda batch: batch.num_rows))
    assert sizes == [at_once] * (count // at_once) + ([count % at_once] if count % at_once else [])
    assert content_hash(read_rows(tmp_path / "x.parquet", FORGETEVAL)) == content_hash(rows)


def test_columns_that_nobody_wants_are_not_read(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_batches([batch_of([case.to_row() for case in CASES])]), tmp_path / "x.parquet")
    found = list(read_rows(tmp_path / "x.parquet", FORGETEVAL, ["lang", "id"]))
    assert found == [{"id": case.id, "lang": case.lang} for case in CASES]


def test_a_text_that_is_not_utf8_is_named_by_whoever_wants_cases(tmp_path: Path) -> None:
    rows = [case.to_row() for case in CASES]
    table = pa.Table.from_batches([batch_of(rows)])
    texts = [row["final_query"].encode() for row in rows]
    texts[5] = b"\xff"
    raw = pa.array(texts, pa.binary())
    spoilt = pa.Array.from_buffers(pa.string(), len(texts), raw.buffers())
    index = table.schema.get_field_index("final_query")
    pq.write_table(table.set_column(index, "final_query", spoilt), tmp_path / "x.parquet")
    with pytest.raises(UserError) as raised:
        list(read_batches(tmp_path / "x.parquet", FORGETEVAL, cases_of))
    assert f"x.parquet, row {rows[5]['id']}: column 'final_query': not UTF-8" in str(raised.value)
