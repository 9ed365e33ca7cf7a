"""What validation finds in MemBehave rows that are not as built: file, row and column, from the Parquet alone."""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forget_datasets.build import build_membehave
from forget_datasets.membehave import generate_triplet
from forget_datasets.membehave.audit import Audits, against_text, landing
from forget_datasets.rows import Item
from forget_datasets.validate import Problem, validate

LOW = "data/default/low-00000-of-00001.parquet"
MED = "data/default/med-00000-of-00001.parquet"
EXTENDED = "data/extended/high-00000-of-00001.parquet"
Rows = list[dict[str, Any]]
Change = Callable[[dict[str, Any]], Any]
ITEM = json.loads((Path(__file__).parent / "membehave_item.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("builds") / "out"
    build_membehave(out, 2)
    return out


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "out"))


def rewrite(folder: Path, file: str, change: Callable[[Rows], Any]) -> Rows:
    """Changes the rows as somebody with another Parquet writer would; gives them as they were."""
    table = pq.read_table(folder / file)
    rows = table.to_pylist()
    before = copy.deepcopy(rows)
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), folder / file)
    return before


def of_rows(folder: Path) -> list[Problem]:
    return [problem for problem in validate(folder).problems if problem.row]


def ripple(row: dict[str, Any]) -> dict[str, Any]:
    return next(p for p in row["probes"] if p["family"] == "ripple")


def drop_evidence(row: dict[str, Any]) -> None:
    asked = (ripple(row)["asked_through"], ripple(row)["entity"])
    row["evidence"] = [e for e in row["evidence"] if (e["person"], e["entity"]) != asked]


def ask_twice(row: dict[str, Any]) -> None:
    row["probes"] += [ripple(row)] * row["shared"]


def drop_ripples(row: dict[str, Any]) -> None:
    row["probes"] = [p for p in row["probes"] if p["family"] != "ripple"]


def speak_otherwise(row: dict[str, Any]) -> None:
    row["sessions"][0]["messages"][1]["role"] = "system"


def misquote(row: dict[str, Any]) -> None:
    row["evidence"][0]["message_index"] += 2


@pytest.mark.parametrize(
    ("change", "column", "message"),
    [
        (lambda row: row.update(level="high"), "level", "'high' contradicts shared"),
        (lambda row: row.update(shared=3), "shared", "neighbors are shared"),
        (lambda row: row.update(degree=1), "degree", "1, but there are"),
        (lambda row: row.update(entanglement_ratio=0.9), "entanglement_ratio", "0.9 is not"),
        (drop_evidence, "evidence", "none for"),
        (drop_evidence, "probes", "the evidence of the ripple probe for"),
        (misquote, "evidence", "the quote for"),
        (ask_twice, "probes", "ripple probes for"),
        (drop_ripples, "probes", "0 ripple probes for"),
        (lambda row: ripple(row).update(question=f"How is {row['target']}?"), "probes", "names the target"),
        (lambda row: ripple(row).update(family="riple"), "probes", "unknown family 'riple'"),
        (lambda row: ripple(row).update(family="control"), "probes", "which belongs to config 'extended'"),
        (speak_otherwise, "sessions", "unknown role 'system' (known: user, assistant)"),
        (lambda row: row.update(sessions=[]), "sessions", "the history is empty"),
        (lambda row: row.update(forget_request=None), "forget_request", "forget_request is null"),
        (lambda row: row["sessions"][0].update(start_time="yesterday"), "sessions", "not ISO 8601 with an offset"),
    ],
)
def test_a_bad_row_is_named(folder: Path, change: Change, column: str, message: str) -> None:
    before = rewrite(folder, LOW, lambda rows: change(rows[0]))
    found = [p for p in of_rows(folder) if p.file == LOW]
    assert any(p.row == before[0]["item_id"] and p.column == column and message in p.message for p in found)
    assert {p.row for p in found} <= {before[0]["item_id"]}
    assert any(p.file == "manifest.json" and "content_hash is" in p.message for p in validate(folder).problems)


def neighbor(row: dict[str, Any]) -> dict[str, Any]:
    return next(n for n in row["neighbors"] if n["entity"] == ripple(row)["entity"])


def both_aliases(*aliases: str) -> Change:
    """The short forms of a shared entity and of the answer that it is."""

    def change(row: dict[str, Any]) -> None:
        neighbor(row)["aliases"] = list(aliases)
        ripple(row)["aliases"] = list(aliases)

    return change


def name_alike(row: dict[str, Any]) -> None:
    first, second = row["neighbors"][:2]
    first["entity"] = second["entity"].rpartition(" ")[0]


@pytest.mark.parametrize(
    ("change", "column", "message"),
    [
        (lambda row: neighbor(row).update(aliases=["the"]), "neighbors", "the alias 'the' is no part of"),
        (lambda row: neighbor(row).update(aliases=[""]), "neighbors", "aliases is blank ('')"),
        (both_aliases("the"), "neighbors", "the alias 'the' is no part of"),
        (both_aliases("..."), "neighbors", "aliases is blank ('...')"),
        (both_aliases("\u200b"), "probes", "aliases is blank"),
        (lambda row: ripple(row).update(aliases=["the"]), "probes", "are not those of the neighbor"),
        (lambda row: ripple(row).update(aliases=[""]), "probes", "aliases is blank ('')"),
        (lambda row: ripple(row).update(question=""), "probes", "question is blank ('')"),
        (lambda row: ripple(row).update(question=" ?"), "probes", "question is blank (' ?')"),
        (lambda row: ripple(row).update(question="Which one?"), "probes", "does not name"),
        (lambda row: row["probes"][0].update(question="What now?"), "probes", "does not name"),
        (lambda row: row["probes"][0].update(aliases=["the"]), "probes", "the alias 'the' is neither part of"),
        (lambda row: row["probes"][0].update(aliases=[" "]), "probes", "aliases is blank (' ')"),
        (lambda row: row["probes"][0].update(expected_entities=[""]), "probes", "expected_entities is blank"),
        (lambda row: ripple(row).update(expected="a"), "probes", "the answer 'a' of a ripple probe is not its entity"),
        (lambda row: ripple(row).update(expected=None), "probes", "a ripple probe without expected"),
        (lambda row: ripple(row).update(source_quote=None), "probes", "a ripple probe without source_quote"),
        (lambda row: ripple(row).update(asked_through=" "), "probes", "asked_through is blank"),
        (lambda row: ripple(row).update(speaker_id="somebody"), "probes", "is not the user"),
        (lambda row: ripple(row).update(listener_id=""), "probes", "listener_id is blank"),
        (lambda row: row.update(forget_request=" "), "forget_request", "forget_request is blank"),
        (lambda row: row.update(target=""), "target", "target is blank"),
        (lambda row: row.update(target=row["target"] + " "), "target", "target has spaces around it"),
        (lambda row: row["neighbors"][0].update(kind=""), "neighbors", "kind is blank"),
        (lambda row: row["neighbors"][0].update(entity=""), "neighbors", "entity is blank"),
        (lambda row: neighbor(row).update(shared_with=[""]), "neighbors", "shared_with is blank"),
        (lambda row: row["neighbors"].append(row["neighbors"][0]), "neighbors", "stands twice"),
        (name_alike, "neighbors", "so that neither can be told from the other"),
        (lambda row: row["evidence"][0].update(quote=""), "evidence", "quote is blank"),
        (lambda row: row["evidence"][0].update(listener_id=""), "evidence", "listener_id is blank"),
        (lambda row: row["sessions"][0].update(session_id=""), "sessions", "session_id is blank"),
        (lambda row: row["sessions"][0]["messages"][0].update(content="\u200b\n"), "sessions", "an empty message"),
    ],
)
def test_a_text_that_is_blank_or_matches_anything_is_named(
    original: Path, change: Change, column: str, message: str
) -> None:
    """From the row alone, as whoever reads the dataset checks it too."""
    row = pq.read_table(original / LOW).to_pylist()[0]
    assert Audits()("default").add(copy.deepcopy(row)) == []
    change(row)
    found = Audits()("default").add(row)
    assert [what for where, what in found if where == column and message in what], found


def test_an_everyday_word_is_no_short_form(original: Path) -> None:
    """Part of the name though it is, the user says it all the time."""
    row = pq.read_table(original / LOW).to_pylist()[0]
    name, new = ripple(row)["entity"], "House of the Rising"
    row = json.loads(json.dumps(row, ensure_ascii=False).replace(name, new))
    both_aliases("the")(row)
    found = [what for column, what in Audits()("default").add(row) if column == "neighbors"]
    assert any(what.startswith(f"the alias 'the' of {new} is a word of every day: said ") for what in found)
    both_aliases("Rising")(row)
    assert not [what for column, what in Audits()("default").add(row) if column == "neighbors"]


def test_a_quote_about_somebody_else_that_names_the_target_is_named() -> None:
    row = copy.deepcopy(ITEM)
    text = "Tomasz Baran has been in the Harbor Book Club for years."
    more = f"{text} Maya says hello."
    row = json.loads(json.dumps(row, ensure_ascii=False).replace(text, more))
    found = list(against_text(Item.from_row(row)))
    assert found == [
        ("evidence", "the quote for Tomasz Baran and Harbor Book Club names the target, of whom it is no evidence")
    ]


def test_a_confirm_question_states_the_value_and_expects_a_yes(original: Path) -> None:
    row = pq.read_table(original / EXTENDED).to_pylist()[0]
    confirm = next(p for p in row["probes"] if p["family"] == "confirm")
    confirm.update(question=f"How is {row['target']}?", expected="maybe", aliases=["e"])
    found = [what for column, what in Audits()("extended").add(row) if column == "probes"]
    assert f"the confirm question 'How is {row['target']}?' does not state {confirm['entity']}" in found
    assert sum("is no way of saying yes" in what for what in found) == 2


def test_a_fresh_build_is_valid(folder: Path) -> None:
    found = validate(folder)
    assert found.problems == []
    assert (found.dataset, found.rows, list(found.configs)) == ("membehave", 12, ["default", "extended"])


def test_without_a_manifest_the_rows_are_still_gone_over(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    rewrite(folder, LOW, lambda rows: rows[0].update(shared=9))
    found = validate(folder)
    assert found.dataset == "membehave"
    assert {"level", "shared", "entanglement_ratio"} <= {p.column for p in found.problems if p.file == LOW}


def test_a_row_in_the_wrong_split_is_named(folder: Path) -> None:
    [row, *_] = rewrite(folder, LOW, lambda rows: None)
    rewrite(folder, MED, lambda rows: rows.append(row))
    assert Problem(MED, "low in split 'med'", row["item_id"], "level") in of_rows(folder)


def test_a_consistent_graph_that_leaves_out_what_is_told_is_named(folder: Path) -> None:
    """A neighbor dropped from everything but the conversations: only the text gives it away, as unshared."""

    def forget_the_others(rows: Rows) -> None:
        [row] = rows[:1]
        gone = next(n for n in row["neighbors"] if n["shared_with"] and n["entity"] != ripple(row)["entity"])
        row["evidence"] = [e for e in row["evidence"] if e["person"] == row["target"] or e["entity"] != gone["entity"]]
        row["probes"] = [p for p in row["probes"] if p["entity"] != gone["entity"]]
        gone["shared_with"] = []
        row["shared"] -= 1
        row["level"] = "med" if row["shared"] < 5 else "high"
        row["entanglement_ratio"] = row["shared"] / row["degree"]

    [before, *_] = rewrite(folder, "data/default/high-00000-of-00001.parquet", forget_the_others)
    told = [p for p in of_rows(folder) if "is evidence of nobody there" in p.message]
    assert {p.row for p in told} == {before["item_id"]}
    assert {p.column for p in told} == {"evidence"}


def test_a_missing_row_leaves_its_triplet_incomplete(folder: Path) -> None:
    rewrite(folder, MED, lambda rows: rows.pop(0))
    found = of_rows(folder)
    low = pq.read_table(folder / LOW).to_pylist()[0]
    assert Problem(LOW, "has low, high where low, med and high should be once each", low["item_id"], "level") in found
    extended = [p for p in found if p.file.startswith("data/extended/med")]
    assert [(p.column, p.message) for p in extended] == [("item_id", "is not in config 'default'")]


def test_rows_out_of_step_are_named(folder: Path) -> None:
    rewrite(folder, MED, lambda rows: rows.reverse())
    assert {(p.file, p.column, p.message) for p in of_rows(folder)} == {
        (MED, "triplet_id", f"user-000{i}#0 does not stand where it does in the other levels") for i in (1, 2)
    }


def test_a_row_with_another_history_is_named(folder: Path) -> None:
    def shorten(rows: Rows) -> None:
        kept = {e["session_id"] for e in rows[0]["evidence"]}
        idle = next(s for s in rows[0]["sessions"] if s["session_id"] not in kept)
        rows[0]["sessions"].remove(idle)

    [before, *_] = rewrite(folder, MED, shorten)
    assert Problem(MED, "are not those of the user's rows before", before["item_id"], "sessions") in of_rows(folder)


def test_extended_must_have_the_items_of_default(folder: Path) -> None:
    [before, *_] = rewrite(folder, EXTENDED, lambda rows: rows[0].update(forget_request=f"Drop {rows[0]['target']}."))
    message = "but for its further probes it is not the item of config 'default'"
    assert of_rows(folder) == [Problem(EXTENDED, message, before["item_id"])]
    rewrite(folder, EXTENDED, lambda rows: rows.pop(0))
    assert Problem("data/extended", "is in config 'default' alone", before["item_id"], "item_id") in of_rows(folder)


def test_an_item_with_too_few_control_probes_is_named(folder: Path) -> None:
    def drop_two(rows: Rows) -> None:
        controls = [p for p in rows[0]["probes"] if p["family"] == "control"]
        for probe in controls[2:]:
            rows[0]["probes"].remove(probe)

    [before, *_] = rewrite(folder, EXTENDED, drop_two)
    message = "2 control probes, at least 3 expected"
    assert Problem(EXTENDED, message, before["item_id"], "probes") in of_rows(folder)


def test_the_manifest_is_compared_figure_by_figure(folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    default = manifest["configs"]["default"]
    mean = default["levels"]["high"]["mean_shared"]
    default["levels"]["high"]["mean_shared"] = 99
    default["controls"]["oracle"]["ripple_survival"]["low"]["value"] = 0.5
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert [str(problem) for problem in validate(folder).problems] == [
        f"manifest.json: configs.default.levels.high.mean_shared is 99, but the rows give {mean}",
        "manifest.json: configs.default.controls.oracle.ripple_survival.low.value is 0.5, but the rows give 1.0",
    ]


def test_a_control_that_lands_elsewhere_is_named() -> None:
    """The redactor must keep what is told without the target; here a name of the target is a common word."""
    row = copy.deepcopy(ITEM)
    next(p for p in row["probes"] if p["family"] == "target")["aliases"].append("years")
    found = Audits()("extended").add(row)
    assert ("", "control 'redactor' has ripple_survival 0, not 0.5") in found
    assert not any("'redactor'" in what for _, what in Audits(noise=0.1)("extended").add(row))


def test_landings_of_an_item_worked_out_by_hand() -> None:
    """Of its two ripple probes one is told in the target's own message, so that the redactor keeps half."""
    item = Item.from_row(ITEM)
    redactor = landing("redactor", item)
    assert (redactor["attributed_coverage"], redactor["ripple_survival"]) == (0.0, 0.5)
    assert redactor["selective_forgetting"] == pytest.approx(2 / 3)
    assert set(landing("null", item).values()) == {0.0, None}
    assert landing("keep-all", item)["selective_forgetting"] == 0.0
    assert landing("oracle", item)["selective_forgetting"] == 1.0


def test_targets_named_unequally_often_are_named() -> None:
    """Names stand in 20 messages each; one more in four sessions makes 24 of one, more than 15% apart."""
    audit = Audits()("default")
    rows = [item.to_row() for item in generate_triplet(0).default]
    for session in rows[0]["sessions"][:4]:
        session["messages"][0]["content"] += f" Say hello to {rows[0]['target']}."
    rows = [{**row, "sessions": rows[0]["sessions"]} for row in rows]
    found = [what for row in rows for column, what in audit.add(row) if column == "target"]
    assert len(found) == 1
    assert found[0].startswith("the targets of user-0001#0 are named in 20 to 2")
