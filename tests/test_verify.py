"""Whatever is edited in a run or its report is found, and named by file and key."""

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from forget_datasets.errors import UserError
from forget_eval import bench, repeats, scores, seals
from forget_eval.compare_commands import compare
from forget_eval.compare_commands import verify as command
from forget_eval.data import open_dataset
from forget_eval.membehave.bench import run_system
from forget_eval.membehave.chat import ReplyError
from forget_eval.membehave.judges import ChatJudge
from forget_eval.membehave.systems import Settings
from forget_eval.report import html, markdown, membehave, membehave_text, results
from forget_eval.verify import Finding, verify

Built = tuple[Path, dict[str, Any]]
RUNS = ("fe", "mb", "judged")


class Moody:
    """Stands where a chat model does: says yes, no, nothing clear, or fails, in turn."""

    model = "moody/1"

    def __init__(self) -> None:
        self.asked = 0

    def say(self, messages: Sequence[dict[str, str]]) -> str:
        self.asked += 1
        if self.asked % 50 == 0:
            raise ReplyError("the endpoint: no text")
        return ("Yes.", "no", "yes", "Perhaps.", "No, it does not.")[self.asked % 5]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, forgeteval_built: Built, membehave_built: Built) -> Path:
    """Scored runs of controls, with their datasets beside them: fe, mb, and judged, which a chat judge scored too."""
    out = tmp_path_factory.mktemp("verified")
    shutil.copytree(forgeteval_built[0], out / "cases")
    shutil.copytree(membehave_built[0], out / "items")
    bench.run_adapter(open_dataset(str(out / "cases"), "forgeteval", "en"), "wipe-all", out / "fe", None)
    items = open_dataset(str(out / "items"), "membehave", "default")
    run_system(items, "redactor", out / "mb", None, Settings())
    run_system(items, "oracle", out / "judged", None, Settings())
    for name in RUNS:
        scores.score(out / name, judge=ChatJudge(Moody()) if name == "judged" else None)  # type: ignore[arg-type]
        seals.write(out / name)
    return out


@pytest.fixture
def place(whole: Path, tmp_path: Path) -> Path:
    """A copy of all that, to be spoilt."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def edited(path: Path, change: Callable[[Any], None]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def found(*folders: Path, **more: Any) -> dict[tuple[str, str], Finding]:
    return {(Path(f.file).name, f.key): f for f in verify(folders, **more)}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_as_it_was_scored_is_right(whole: Path, name: str) -> None:
    assert verify([whole / name]) == []


def test_a_run_may_be_the_current_folder_or_the_one_above(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place / "judged/scores")
    assert verify([Path(".."), Path("../../fe")]) == []
    monkeypatch.chdir(place / "fe")
    assert verify([Path(".")]) == []


def test_what_would_steer_a_terminal_is_shown_as_its_escape() -> None:
    assert (
        str(Finding("report.md", "text", "\x1b[2J\u202e", "5")) == r"report.md, text: stated \x1b[2J\u202e, should be 5"
    )


def test_scoring_once_more_changes_nothing(place: Path) -> None:
    before = (place / "fe" / seals.FILE).read_bytes()
    scores.score(place / "fe")
    seals.write(place / "fe")
    assert (place / "fe" / seals.FILE).read_bytes() == before
    assert verify([place / "fe"]) == []


def test_the_usual_tool_reads_the_hashes(place: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("this machine has no sha256sum")
    call = ["sha256sum", "--check", "--strict", seals.FILE]
    done = subprocess.run(call, cwd=place / "judged", capture_output=True, text=True, check=True)
    assert done.stdout.count(": OK") == 7  # four of the run, three of the judge


def test_an_edited_number_of_a_summary_is_named(place: Path) -> None:
    def change(summary: dict[str, Any]) -> None:
        summary["rates"]["strict"]["purge"]["value"] = 0.1
        summary["reasons"]["leak"] += 1
        del summary["templates"]["spec"]["drift__color"]
        summary["boast"] = 1

    edited(place / "fe/summary.json", change)
    wrong = found(place / "fe")
    assert set(wrong) == {
        ("SHA256SUMS", "sha256 of summary.json"),
        ("summary.json", "rates.strict.purge.value"),
        ("summary.json", "reasons.leak"),
        ("summary.json", "templates.spec.drift__color"),
        ("summary.json", "boast"),
    }
    finding = wrong["summary.json", "rates.strict.purge.value"]
    assert (finding.stated, finding.found) == ("0.1", "0.0")


def test_an_edited_transcript_is_found_though_its_hash_is_made_anew(place: Path) -> None:
    """A case that fails, for nothing is recalled, is given the answers that it needs."""
    path = place / "fe/transcripts.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["final"] = ["everything that is wanted"]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    assert ("SHA256SUMS", "sha256 of transcripts.jsonl") in found(place / "fe")
    seals.write(place / "fe")
    wrong = found(place / "fe")
    assert ("SHA256SUMS", "sha256 of transcripts.jsonl") not in wrong
    assert ("summary.json", "transcripts.sha256") in wrong


def test_a_transcript_that_was_taken_out_is_found(place: Path) -> None:
    path = place / "mb/transcripts.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    wrong = found(place / "mb")
    assert ("summary.json", "statuses.unscored") in wrong
    assert ("summary.json", "transcripts.n") in wrong


def test_a_transcript_that_is_none_cannot_be_computed(place: Path) -> None:
    path = place / "fe/transcripts.jsonl"
    path.write_text('{"id": "x"}\n' + path.read_text())
    assert "line 1: field 'status' is missing" in found(place / "fe")["transcripts.jsonl", ""].found


@pytest.mark.parametrize(
    ("name", "column", "key"),
    [("fe", "value", "{case} {metric}.value"), ("fe", "template", "{case} {metric}.template"),
     ("mb", "value", "{item} {metric}.value")],
)  # fmt: skip
def test_an_edited_row_of_the_scores_is_named(place: Path, name: str, column: str, key: str) -> None:
    path = place / name / "scores.parquet"
    table = pq.read_table(path)
    rows = table.to_pylist()
    number = next(i for i, row in enumerate(rows) if row["value"] is not None)
    rows[number][column] = 0.125 if column == "value" else "otp"
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    wrong = found(place / name)
    assert set(wrong) == {
        ("SHA256SUMS", "sha256 of scores.parquet"),
        ("scores.parquet", key.format(**rows[number])),
    }


def test_rows_that_are_gone_or_came_twice_are_named(place: Path) -> None:
    path = place / "fe/scores.parquet"
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table.slice(1), table.slice(5, 1)]), path)
    wrong = [f for f in verify([place / "fe"]) if f.file.endswith("scores.parquet")]
    assert len(wrong) == 2
    assert [(f.stated == "nothing", f.found == "nothing") for f in wrong] == [(True, False), (False, True)]


def test_an_edited_manifest_is_found(place: Path) -> None:
    edited(place / "fe/manifest.json", lambda manifest: manifest["adapter"].update(version="2.0"))
    assert set(found(place / "fe")) == {("SHA256SUMS", "sha256 of manifest.json")}


def test_another_dataset_is_named_by_its_hash(place: Path) -> None:
    edited(place / "fe/manifest.json", lambda manifest: manifest["dataset"].update(content_hash="0" * 64))
    assert "name the right dataset" in found(place / "fe")["manifest.json", "dataset.content_hash"].found


@pytest.mark.parametrize("name", ["summary.json", "scores.parquet", "manifest.json"])
@pytest.mark.parametrize("content", [b"", b"junk", None])
def test_files_that_are_damaged_or_gone_are_findings(place: Path, name: str, content: bytes | None) -> None:
    (place / "fe" / name).unlink()
    if content is not None:
        (place / "fe" / name).write_bytes(content)
    if name == "manifest.json":
        with pytest.raises(UserError, match=name):
            verify([place / "fe"])
        return
    wrong = found(place / "fe")
    assert ("SHA256SUMS", f"sha256 of {name}") in wrong
    assert (name, "") in wrong


def test_a_run_without_hashes_is_not_verified(place: Path) -> None:
    (place / "fe" / seals.FILE).unlink()
    assert "forget-eval score" in found(place / "fe")["SHA256SUMS", ""].found
    (place / "fe" / seals.FILE).write_bytes(b"\xff")
    with pytest.raises(UserError, match="not a list of hashes"):
        verify([place / "fe"])


def test_a_judge_is_read_once_more(place: Path) -> None:
    folder = place / "judged/scores"
    (summary,) = folder.glob("*.json")
    edited(summary, lambda s: s["metrics"]["ripple_survival"]["all"].update(value=0.999))
    assert (summary.name, "metrics.ripple_survival.all.value") in found(place / "judged")


@pytest.mark.parametrize("change", ["reply", "verdict", "fewer", "more"])
def test_edited_judgements_are_found(place: Path, change: str) -> None:
    (path,) = (place / "judged/scores").glob("*.judgements.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    first = next(row for row in rows if row["verdict"] is False)
    if change == "reply":
        first["raw"] = "Perhaps."
    elif change == "verdict":
        first["verdict"] = True
    else:
        rows = rows[:-1] if change == "fewer" else [*rows, rows[-1]]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert (path.name, "") in found(place / "judged")


def reported(place: Path) -> Path:
    """The tables of two runs, one of each task."""
    path = place / "tables.md"
    cases = markdown.render(results.load([place / "fe"]))
    items = membehave_text.render_markdown(membehave.load([place / "mb"]))
    path.write_text(f"{cases}\n{items}")
    return path


def test_a_report_says_what_its_runs_say_in_any_order(place: Path) -> None:
    path = reported(place)
    assert verify([place / "mb", place / "fe"], report=path) == []


def test_an_edited_cell_of_a_report_is_named(place: Path) -> None:
    path = reported(place)
    text = path.read_text()
    assert "| wipe-all | strict | 0 [0–7] |" in text
    path.write_text(text.replace("| wipe-all | strict | 0 [0–7] |", "| wipe-all | strict | 9 [0–7] |"))
    (wrong,) = verify([place / "fe", place / "mb"], report=path)
    assert wrong.key.endswith("table 1, wipe-all 1, overall")
    assert (wrong.stated, wrong.found) == ("9 [0–7]", "0 [0–7]")


@pytest.mark.parametrize(
    ("forged", "key"),
    [
        ("| wipe-all | strict | 100 [93–100] |\n| wipe-all | strict | 0 [0–7] |", "table 1, wipe-all 2, overall"),
        ("| wipe-all | strict with retries | 0 [0–7] |", "table 1, wipe-all 1, rate"),
        ("| wipe-all | strict | 0 [0–7] | more |", "table 1, wipe-all 1, column 11"),
    ],
)
def test_a_forged_row_or_cell_of_a_report_is_found(place: Path, forged: str, key: str) -> None:
    path = reported(place)
    path.write_text(path.read_text().replace("| wipe-all | strict | 0 [0–7] |", forged))
    keys = [wrong.key for wrong in verify([place / "fe", place / "mb"], report=path)]
    assert any(found.endswith(key) for found in keys), keys


def test_an_edited_sentence_of_a_report_is_named(place: Path) -> None:
    path = reported(place)
    path.write_text(path.read_text().replace("k covers all of them", "k covers most of them"))
    (wrong,) = verify([place / "fe", place / "mb"], report=path)
    assert "most of them" in wrong.stated
    assert "all of them" in wrong.found


def test_the_twin_of_a_page_is_checked(place: Path) -> None:
    pytest.importorskip("matplotlib")
    html.write([place / "fe"], place / "report")
    assert verify([place / "fe"], report=place / "report") == []
    path = place / "report/report.md"
    path.write_text(path.read_text().replace("0 [0–7]", "1 [0–7]", 1))
    (wrong,) = verify([place / "fe"], report=place / "report")
    assert (wrong.stated, wrong.found) == ("1 [0–7]", "0 [0–7]")


@pytest.mark.parametrize(
    ("stated", "edited", "key"),
    [
        ('<span class="interval">-12 to +22</span>', '<span class="interval">-12 to +12</span>', "text"),
        ("<path ", "<path  ", ""),
        ('"facts":[0,1', '"facts":[1,0', ""),
    ],
)
def test_the_page_is_checked_to_the_byte(place: Path, stated: str, edited: str, key: str) -> None:
    pytest.importorskip("matplotlib")
    html.write([place / "fe", place / "mb"], place / "report")
    runs_in_another_order = [place / "mb", place / "fe"]
    assert verify(runs_in_another_order, report=place / "report") == []
    page = place / "report/index.html"
    assert stated in page.read_text("utf-8")
    page.write_text(page.read_text("utf-8").replace(stated, edited, 1), "utf-8")
    (wrong,) = verify(runs_in_another_order, report=place / "report")
    assert (wrong.file, wrong.key) == (str(page), key)


def test_a_summary_over_repeats_is_checked(place: Path) -> None:
    for number in (1, 2):
        shutil.copytree(place / "fe", place / f"all/repeat-{number}")
    data = str(place / "cases")
    repeats.summarise(place / "all")
    assert verify([place / "all"], data) == []
    edited(place / "all/repeats.json", lambda s: s["rates"]["spec"]["drift"].update(disagree=3))
    assert set(found(place / "all", data=data)) == {("repeats.json", "rates.spec.drift.disagree")}


def test_the_command_names_what_differs_and_exits_with_one(place: Path) -> None:
    right = CliRunner().invoke(command, [str(place / "fe"), str(place / "mb")])
    assert (right.exit_code, right.stdout) == (0, "")
    assert "2 runs verified" in right.stderr
    edited(place / "fe/summary.json", lambda summary: summary["reasons"].update(leak=7))
    wrong = CliRunner().invoke(command, [str(place / "fe")])
    assert wrong.exit_code == 1
    assert f"{place / 'fe/summary.json'}, reasons.leak: stated 7, should be 0\n" in wrong.stdout
    data = json.loads(CliRunner().invoke(command, [str(place / "fe"), "--json"]).stdout)
    assert data[-1] == {"file": f"{place / 'fe/summary.json'}", "key": "reasons.leak", "stated": "7", "found": "0"}


def test_a_folder_of_runs_is_told_with_what_it_holds(place: Path) -> None:
    for number in (1, 2):
        shutil.copytree(place / "fe", place / f"several/repeat-{number}")
    (place / "torn").mkdir()
    (place / "torn/transcripts.jsonl").write_text("")
    inside = ", ".join(str(place / name) for name in ("fe", "judged", "mb", "several"))
    for chosen, arguments in ((command, [place]), (compare, [place]), (compare, [place / "fe", place])):
        with pytest.raises(UserError) as caught:
            CliRunner().invoke(chosen, list(map(str, arguments)), catch_exceptions=False)
        assert str(caught.value) == (
            f"{place} is no run: it has no manifest.json, but holds runs. Name one of them: {inside}"
        )
