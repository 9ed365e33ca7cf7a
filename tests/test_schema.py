"""The declared columns: exactly the documented ones, and rows go through Arrow without loss."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forget_datasets import schema
from forget_datasets.rows import (
    FAMILIES,
    Evidence,
    GeneratedCase,
    Item,
    ItemProbe,
    Message,
    Neighbor,
    Probe,
    Session,
)

TEXTS = st.lists(st.text(max_size=8), max_size=3)
CASES = st.builds(
    GeneratedCase,
    id=st.text(max_size=8),
    family=st.sampled_from(FAMILIES),
    setup_facts=TEXTS,
    mutations=st.lists(
        st.one_of(
            st.tuples(st.just("supersede"), st.text(max_size=8), st.text(max_size=8)),
            st.tuples(st.sampled_from(["release", "purge"]), st.text(max_size=8)),
        ),
        max_size=3,
    ),
    final_query=st.text(max_size=8),
    must_contain=TEXTS,
    must_not_contain=TEXTS,
    template=st.text(max_size=8),
    lang=st.sampled_from(["en", "zh", "ja"]),
    probes=st.lists(
        st.builds(Probe, st.sampled_from(["leak", "survivor"]), st.text(max_size=8), TEXTS, TEXTS), max_size=3
    ),
    n_distractors=st.integers(0, 50),
)
ITEM = Item(
    item_id="u1#t1",
    triplet_id="u1#0",
    user="u1",
    target="Maya Okonkwo",
    level="low",
    shared=1,
    degree=2,
    entanglement_ratio=0.5,
    forget_request="Please forget Maya Okonkwo.",
    neighbors=[Neighbor("Harbor Book Club", "club", ["the book club"], ["Tomás Ferrer"])],
    evidence=[Evidence("Maya Okonkwo", "Harbor Book Club", "s1", 0, "u1", "assistant", "Maya goes there.")],
    probes=[
        ItemProbe("target", None, None, "Who is Maya?", "coverage", None, ["Harbor Book Club"], 1, [], None, None, None)
    ],
    sessions=[Session("s1", "2026-01-05T09:00:00+01:00", [Message("user", "Maya goes to the Harbor Book Club.")])],
)


def test_forgeteval_has_the_documented_columns() -> None:
    assert [(field.name, schema.type_name(field.type)) for field in schema.FORGETEVAL] == [
        ("id", "string"),
        ("family", "string"),
        ("template", "string"),
        ("lang", "string"),
        ("setup_facts", "list<string>"),
        ("mutations", "list<struct<op: string, query: string, new_text: string>>"),
        ("final_query", "string"),
        ("must_contain", "list<string>"),
        ("must_not_contain", "list<string>"),
        (
            "probes",
            "list<struct<kind: string, query: string, must_contain: list<string>, must_not_contain: list<string>>>",
        ),
        ("n_distractors", "int32"),
    ]


def test_membehave_has_the_documented_columns() -> None:
    texts, messages = "list<string>", "list<struct<role: string, content: string>>"
    evidence = "person entity session_id message_index: int32 speaker_id listener_id quote"
    probe = (
        "family entity asked_through question scoring expected expected_entities: list<string> n_expected: int32 "
        "aliases: list<string> speaker_id listener_id source_quote"
    )
    assert [(field.name, schema.type_name(field.type)) for field in schema.MEMBEHAVE] == [
        *((name, "string") for name in ("item_id", "triplet_id", "user", "target", "level")),
        ("shared", "int32"),
        ("degree", "int32"),
        ("entanglement_ratio", "float64"),
        ("forget_request", "string"),
        ("neighbors", f"list<struct<entity: string, kind: string, aliases: {texts}, shared_with: {texts}>>"),
        ("evidence", f"list<struct<{_spelled(evidence)}>>"),
        ("probes", f"list<struct<{_spelled(probe)}>>"),
        (
            "sessions",
            f"list<struct<session_id: string, start_time: string, messages: {messages}>>",
        ),
    ]


def _spelled(fields: str) -> str:
    """Names, a type behind those that are no string."""
    words, spelled = fields.split(), []
    for i, word in enumerate(words):
        if word.endswith(":"):
            spelled.append(f"{word} {words[i + 1]}")
        elif i == 0 or not words[i - 1].endswith(":"):
            spelled.append(f"{word}: string")
    return ", ".join(spelled)


@settings(deadline=None, max_examples=50)
@given(st.lists(CASES, max_size=4))
def test_cases_go_through_arrow_without_loss(cases: list[GeneratedCase]) -> None:
    batch = schema.to_batch([case.to_row() for case in cases], schema.FORGETEVAL)
    assert batch.schema.equals(schema.FORGETEVAL)
    assert [GeneratedCase.from_row(row) for row in schema.from_batch(batch)] == cases


def test_an_item_goes_through_arrow_without_loss() -> None:
    rows = schema.from_batch(schema.to_batch([ITEM.to_row()], schema.MEMBEHAVE))
    assert rows == [ITEM.to_row()]
    assert Item.from_row(rows[0]) == ITEM


def test_rows_name_their_columns_in_the_order_of_the_schema() -> None:
    case = GeneratedCase("a", "decay", [], [], "q", [], [])
    assert list(case.to_row()) == schema.FORGETEVAL.names
    assert list(ITEM.to_row()) == schema.MEMBEHAVE.names


@pytest.mark.parametrize("change", [{"colour": "red"}, {"family": None}])
def test_a_missing_or_foreign_column_is_refused(change: dict[str, Any]) -> None:
    row = GeneratedCase("a", "decay", [], [], "q", [], []).to_row() | change
    if row["family"] is None:
        del row["family"]
    with pytest.raises(ValueError, match=r"colour|family"):
        schema.to_batch([row], schema.FORGETEVAL)


def test_mismatches_name_column_and_types() -> None:
    found = pa.schema(
        [field if field.name != "n_distractors" else ("n_distractors", pa.int64()) for field in schema.FORGETEVAL]
    ).remove(schema.FORGETEVAL.get_field_index("lang"))
    assert schema.mismatches(found, schema.FORGETEVAL) == [
        ("lang", "is missing"),
        ("n_distractors", "has type int64, not int32"),
    ]


def test_what_writers_differ_on_is_no_mismatch() -> None:
    other = pa.schema(
        [
            ("setup_facts", pa.large_list(pa.field("element", pa.large_string(), nullable=False))),
            ("note", pa.string()),
        ]
    )
    assert schema.mismatches(other, pa.schema([schema.FORGETEVAL.field("setup_facts")])) == []


def test_nulls_are_found_at_any_depth() -> None:
    row = GeneratedCase("a", "decay", ["fact"], [("release", "it")], "q", [], ["x"]).to_row()
    assert schema.nulls(row, schema.NULLABLE["forgeteval"]) == []
    row["lang"] = None
    row["setup_facts"] = ["fact", None]
    row["probes"] = [{"kind": "leak", "query": None, "must_contain": [], "must_not_contain": [None]}]
    assert schema.nulls(row, schema.NULLABLE["forgeteval"]) == [
        "lang",
        "probes.must_not_contain",
        "probes.query",
        "setup_facts",
    ]


def test_columns_that_are_ambiguous_or_beyond_the_schema_are_told() -> None:
    expected = pa.schema([("id", pa.string()), ("lang", pa.string())])
    found = pa.schema([("id", pa.string()), ("lang", pa.string()), ("id", pa.int32()), ("note", pa.string())])
    assert schema.mismatches(found, expected) == [("id", "stands there 2 times")]
    assert schema.surplus(found.names, expected) == ["note"]
    assert schema.surplus(expected.names, expected) == []
