"""Validation finds what was tampered with and names file, row and column; nothing but the Parquet is believed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forget_datasets.errors import UserError
from forget_datasets.forgeteval import generate, languages
from forget_datasets.forgeteval.audit import Audit
from forget_datasets.rows import FAMILIES
from forget_datasets.validate import Problem, validate

FILE = "data/handmade/test-00000-of-00001.parquet"
Rows = list[dict[str, Any]]


@pytest.fixture
def folder(handmade_folder: Path) -> Path:
    return handmade_folder


def rewrite(folder: Path, change: Callable[[Rows], Any]) -> None:
    """Changes the rows as somebody with another Parquet writer would."""
    table = pq.read_table(folder / FILE)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), folder / FILE)


def set_in(index: int, column: str, value: Any) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        rows[index][column] = value

    return change


def in_rows(problems: list[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.row]


def test_a_fresh_build_is_valid(folder: Path) -> None:
    found = validate(folder)
    assert found.problems == []
    assert (found.dataset, found.rows, list(found.configs)) == ("forgeteval", 15, ["handmade"])


def test_another_writer_with_the_same_rows_is_as_good(folder: Path) -> None:
    before = (folder / FILE).read_bytes()
    rewrite(folder, lambda rows: None)
    assert (folder / FILE).read_bytes() != before
    assert validate(folder).problems == []


@pytest.mark.parametrize(
    ("change", "row", "column", "message"),
    [
        (
            set_in(9, "mutations", [{"op": "erase", "query": "mira", "new_text": None}]),
            "purge__handmade__001",
            "mutations",
            "unknown op 'erase' (known: supersede, release, purge)",
        ),
        (
            set_in(0, "mutations", [{"op": "supersede", "query": "the diet", "new_text": None}]),
            "supersession__handmade__001",
            "mutations",
            "a supersede lacks its new_text",
        ),
        (
            set_in(3, "mutations", [{"op": "release", "query": "the code", "new_text": "x"}]),
            "decay__handmade__001",
            "mutations",
            "a release has a new_text",
        ),
        (
            set_in(0, "final_query", "Is Ines a pescatarian?"),
            "supersession__handmade__001",
            "must_contain",
            "'pescatarian' is in the final query",
        ),
        (set_in(4, "final_query", None), "decay__handmade__002", "final_query", "final_query is null"),
        (set_in(4, "setup_facts", ["a", None]), "decay__handmade__002", "setup_facts", "setup_facts is null"),
        (
            set_in(4, "family", "rot"),
            "decay__handmade__002",
            "family",
            f"unknown family 'rot' (known: {', '.join(FAMILIES)})",
        ),
        (
            set_in(3, "n_distractors", 11),
            "decay__handmade__001",
            "n_distractors",
            "11, but 12 facts hold none of the case's strings",
        ),
        (
            set_in(3, "must_not_contain", []),
            "decay__handmade__001",
            "must_not_contain",
            "nothing is forbidden, or nothing is mutated",
        ),
    ],
)
def test_a_bad_row_is_named(folder: Path, change: Callable[[Rows], None], row: str, column: str, message: str) -> None:
    rewrite(folder, change)
    found = validate(folder).problems
    assert Problem(FILE, message, row, column) in found
    assert {problem.row for problem in in_rows(found)} == {row}
    assert any(p.file == "manifest.json" and "content_hash is" in p.message for p in found)


def test_a_case_that_a_control_games_is_named(folder: Path) -> None:
    def drop_survivors(rows: Rows) -> None:
        rows[3]["probes"] = [probe for probe in rows[3]["probes"] if probe["kind"] == "leak"]

    rewrite(folder, drop_survivors)
    found = validate(folder).problems
    assert Problem(FILE, "control 'null' passes it (strict)", "decay__handmade__001") in found
    assert Problem(FILE, "control 'wipe-all' passes it (strict_uncut)", "decay__handmade__001") in found


def test_a_row_that_stands_twice_is_named(folder: Path) -> None:
    rewrite(folder, lambda rows: rows.insert(2, rows[1]))
    found = validate(folder).problems
    row = "supersession__handmade__002"
    assert in_rows(found) == [
        Problem(FILE, f"stands in {FILE} already", row, "id"),
        Problem(FILE, "stands where supersession__handmade__003 belongs", row, "id"),
    ]
    assert Problem("manifest.json", "configs.handmade.rows is 15, but the rows give 16") in found


def test_a_row_that_is_gone_is_named_once(folder: Path) -> None:
    rewrite(folder, lambda rows: rows.pop(1))
    found = validate(folder).problems
    row = "supersession__handmade__003"
    assert in_rows(found) == [Problem(FILE, "stands where supersession__handmade__002 belongs", row, "id")]
    assert Problem("README.md", "num_examples.handmade.test is 15, but the rows give 14") in found


def test_families_out_of_order_are_named(folder: Path) -> None:
    rewrite(folder, lambda rows: rows.append(rows.pop(0)))
    found = [problem for problem in validate(folder).problems if problem.column == "family"]
    assert found == [Problem(FILE, "'supersession' after 'drift'", "supersession__handmade__001", "family")]


def test_another_language_is_named(folder: Path) -> None:
    rewrite(folder, set_in(0, "lang", "fr"))
    message = "configs.handmade.languages is ['en'], but the rows give ['en', 'fr']"
    assert Problem("manifest.json", message) in validate(folder).problems


def test_the_manifest_is_compared_figure_by_figure(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["configs"]["handmade"]["controls"]["null"]["spec"]["decay"] = 3
    manifest["configs"]["handmade"]["screening"]["proven"] = 14
    del manifest["configs"]["handmade"]["store_size"]
    manifest["configs"]["xx"] = manifest["configs"]["handmade"]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert [str(problem) for problem in validate(folder).problems] == [
        "manifest.json: config 'xx' has no files in data/xx",
        "manifest.json: configs.handmade.store_size is missing",
        "manifest.json: configs.handmade.screening.proven is 14, but the rows give 15",
        "manifest.json: configs.handmade.controls.null.spec.decay is 3, but the rows give 2",
    ]


def test_the_card_is_compared(folder: Path) -> None:
    path = folder / "README.md"
    path.write_text(path.read_text(encoding="utf-8").replace("num_examples: 15", "num_examples: 16"), encoding="utf-8")
    found = validate(folder).problems
    assert found == [Problem("README.md", "num_examples.handmade.test is 16, but the rows give 15")]


def test_without_all_that_describes_them_the_rows_are_still_gone_over(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    (folder / "README.md").unlink()
    (folder / "croissant.json").unlink()
    rewrite(folder, set_in(3, "n_distractors", 11))
    assert [(p.file, p.row) for p in validate(folder).problems] == [
        (FILE, "decay__handmade__001"),
        ("manifest.json", ""),
        ("README.md", ""),
        ("croissant.json", ""),
    ]


def _truncate(folder: Path) -> None:
    (folder / FILE).write_bytes((folder / FILE).read_bytes()[:-20])


def _drop_column(folder: Path) -> None:
    pq.write_table(pq.read_table(folder / FILE).drop_columns(["probes"]), folder / FILE)


def _retype(folder: Path) -> None:
    table = pq.read_table(folder / FILE)
    index = table.schema.get_field_index("n_distractors")
    pq.write_table(table.set_column(index, "n_distractors", table["n_distractors"].cast(pa.int64())), folder / FILE)


def _damage(folder: Path) -> None:
    content = bytearray((folder / FILE).read_bytes())
    content[4:400] = bytes(396)
    (folder / FILE).write_bytes(content)


def _newer(folder: Path) -> None:
    text = (folder / "manifest.json").read_text(encoding="utf-8")
    (folder / "manifest.json").write_text(text.replace('"schema_version": 1', '"schema_version": 3'), encoding="utf-8")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (_truncate, rf"{FILE}: not a whole Parquet file"),
        (_drop_column, rf"{FILE}: column 'probes' is missing"),
        (_retype, rf"{FILE}: column 'n_distractors' has type int64, not int32"),
        (_damage, rf"{FILE}: damaged data"),
        (_newer, r"manifest\.json: schema 3, but this version reads schema 1"),
        (lambda f: (f / FILE).rename(f / FILE.replace("00001", "00002")), "are not complete"),
        (lambda f: (f / FILE).rename(f / "data/handmade/rows.parquet"), "is no shard of ours"),
        (lambda f: shutil.rmtree(f / "data"), "is no dataset of ours"),
        (lambda f: shutil.rmtree(f), "is not a folder"),
    ],
)
def test_what_cannot_be_read_is_a_user_error(folder: Path, harm: Callable[[Path], Any], message: str) -> None:
    harm(folder)
    with pytest.raises(UserError, match=message):
        validate(folder)


def _add_column(name: str, values: list[Any]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        table = pq.read_table(folder / FILE)
        pq.write_table(table.append_column(name, pa.array(values * len(table))), folder / FILE)

    return change


def test_a_column_beyond_the_schema_is_a_problem(folder: Path) -> None:
    _add_column("note", ["mine"])(folder)
    assert validate(folder).problems == [Problem(FILE, "is no column of the schema", column="note")]


def test_a_column_that_stands_twice_is_a_user_error(folder: Path) -> None:
    _add_column("lang", ["zh"])(folder)
    with pytest.raises(UserError, match=rf"{FILE}: column 'lang' stands there 2 times"):
        validate(folder)


def test_a_row_that_breaks_the_checks_is_named_and_the_others_are_gone_over(folder: Path) -> None:
    endless = "decay__handmade__" + "1" * 5000
    rewrite(folder, lambda rows: (rows[3].update(id=endless), rows[9].update(final_query=None)))
    found = in_rows(validate(folder).problems)
    assert {problem.row for problem in found} >= {endless, "purge__handmade__001"}
    [shown, *_] = [str(problem) for problem in found if problem.row == endless]
    assert shown.startswith(f"{FILE}, row decay__handmade__{'1' * 83}… (5,017 characters): ")
    assert all("\n" not in str(problem) for problem in found)


def test_a_parquet_file_of_something_else_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "data/en").mkdir(parents=True)
    pq.write_table(pa.table({"word": ["a"]}), tmp_path / "data/en/test-00000-of-00001.parquet")
    with pytest.raises(UserError, match=r"no column id.* is no dataset of ours"):
        validate(tmp_path)


@pytest.mark.parametrize("tag", languages.available())
def test_generated_rows_are_in_order_and_without_problems(tag: str) -> None:
    audit = Audit()
    assert [problem for case in generate(8, lang=tag) for problem in audit.add(case.to_row())] == []
    assert audit.summary()["families"] == dict.fromkeys(FAMILIES, 8)
