"""Results of several sources as one ranking: ranks by hand, what is refused, and the text, JSON and CSV of a board."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.build import build_forgeteval
from forget_datasets.errors import UserError
from forget_eval import bench, plots, scores
from forget_eval.cli import main
from forget_eval.data import open_dataset
from forget_eval.leaderboard import files, ranking, rows, shown
from forget_eval.membehave.bench import run_system
from forget_eval.membehave.systems import Settings

Built = tuple[Path, dict[str, Any]]
Row = dict[str, Any]

MEMORIES = '''
class Keeps:
    """Has everything, and lacks every operation."""

    name = "keeps"

    def reset(self): self.facts = []
    def inscribe(self, text): self.facts.append(text)
    def recall_texts(self, query, k=5): return self.facts[:k]


class Empty(Keeps):
    """Knows nothing, and says that it forgets."""

    name = "empty"

    def recall_texts(self, query, k=5): return []
    def supersede(self, old_query, new_text): pass
    def release(self, query): return 0
    def purge(self, query): return 0
'''


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["leaderboard", *map(str, arguments)])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, membehave_built: Built) -> Path:
    """Scored runs on one dataset a task: fe/keeps, fe/empty, fe/oracle, mb/redactor, with the datasets beside them."""
    out = tmp_path_factory.mktemp("ranked")
    (out / "memories.py").write_text(MEMORIES)
    build_forgeteval(out / "cases", n_per_family=4, seed=7)
    shutil.copytree(membehave_built[0], out / "items")
    cases = open_dataset(str(out / "cases"), "forgeteval", "en")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(out))
        for name in ("memories:Keeps", "memories:Empty", "oracle"):
            bench.run_adapter(cases, name, out / "fe" / name.rpartition(":")[2].lower(), None)
        run_system(
            open_dataset(str(out / "items"), "membehave", "default"), "redactor", out / "mb/redactor", None, Settings()
        )
    for run in (*(out / "fe").iterdir(), out / "mb/redactor"):
        scores.score(run)
    return out


@pytest.fixture
def place(whole: Path, tmp_path: Path) -> Path:
    """A copy of all that, to be changed."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def row(name: str, value: float | None, low: float, high: float, **more: Any) -> Row:
    known = dict.fromkeys(rows.SUMMARIES.names)
    return known | {
        "run_id": name.ljust(64, "0"), "run": "run", "task": "forgeteval", "system": name, "told_the_case": False,
        "dataset_config": "en", "dataset_hash": "a" * 64, "value": value, "low": low, "high": high, "rates": [],
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([(0.9, 1.0), (0.8, 0.95), (0.5, 0.7), (0.2, 0.6), (0.0, 0.1)], [(1, 2), (1, 2), (3, 4), (3, 4), (5, 5)]),
        ([(0.0, 0.5), (0.5, 1.0)], [(1, 2), (1, 2)]),  # touching at one point is no difference
        ([(0.6, 0.7), (0.1, 0.9), (0.2, 0.3)], [(1, 2), (1, 3), (2, 3)]),  # a wide one is open on both sides
        ([(0.3, 0.4)], [(1, 1)]),
        ([], []),
    ],
)
def test_ranks_by_hand(intervals: list[tuple[float, float]], expected: list[tuple[int, int]]) -> None:
    assert ranking.ranks(intervals) == expected


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted).map(tuple), max_size=12))
def test_every_order_that_the_intervals_allow_is_in_the_ranges(intervals: list[tuple[float, float]]) -> None:
    for choose in (min, max):
        found = ranking.ranks(intervals)
        values = [choose(interval) for interval in intervals]
        for place, (best, worst) in enumerate(found):
            above = sum(other > values[place] for other in values)
            equal = sum(other == values[place] for other in values)
            assert best <= above + equal
            assert worst >= above + 1


def test_controls_and_what_was_not_measured_have_no_rank() -> None:
    found = [
        row("told", 1.0, 0.9, 1.0, told_the_case=True),
        row("low", 0.2, 0.1, 0.3),
        row("unknown", None, 0.0, 1.0),
        row("high", 0.9, 0.8, 1.0),
    ]
    [board] = ranking.boards(found)
    assert [(entry.label, entry.rank) for entry in board.entries] == [
        ("high", "1"), ("low", "2"), ("unknown", ""), ("told", ""),
    ]  # fmt: skip


def test_runs_of_one_system_are_told_apart() -> None:
    found = [
        row("a", 0.9, 0.8, 1.0, run_id="1" * 64, run="monday"),
        row("a", 0.9, 0.8, 1.0, run_id="2" * 64, run="tuesday"),
        row("a", 0.9, 0.8, 1.0, run_id="3" * 64, run="tuesday"),
        row("a", 0.9, 0.8, 1.0, run_id="4" * 64, policy="single"),
        row("b", 0.9, 0.8, 1.0, run_id="5" * 64, policy="named"),
    ]
    [board] = ranking.boards(found)
    assert {entry.row["run_id"][0]: entry.label for entry in board.entries} == {
        "1": "a monday", "2": "a 22222222", "3": "a 33333333", "4": "a*", "5": "b",
    }  # fmt: skip
    assert {entry.rank for entry in board.entries} == {"1–5"}
    assert list(shown.notes(board))[-1] == "* with another forget policy than `named`."


def test_the_note_on_policies_stays_where_labels_are_longer() -> None:
    twice = [row("a", 0.9, 0.8, 1.0, run_id=n * 64, run=f"run-{n}", policy="single", k=10) for n in "12"]
    [board] = ranking.boards(twice)
    assert [entry.label for entry in board.entries] == ["a* run-1", "a* run-2"]
    assert list(shown.notes(board))[-1] == "* with another forget policy than `named`."


def test_runs_are_ranked_with_their_intervals(whole: Path) -> None:
    result = call(whole / "fe", whole / "mb")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    [keeps] = [line for line in lines if line.startswith("1") and " keeps " in line]
    summary = json.loads((whole / "fe/keeps/summary.json").read_text())["rates"]["strict"]["overall"]
    assert (summary["value"], summary["n"]) == (0.0, 20)
    assert keeps.split()[:4] == ["1–2", "keeps", "0", f"[0–{round(100 * summary['high'])}]"]
    assert [line.split()[:2] for line in lines if " oracle " in line] == [["oracle", "100"]]
    assert "MemBehave: Forgetting, config default · 9 items · content hash " in result.stdout


def test_other_rows_of_the_same_config_are_refused_and_both_named(place: Path) -> None:
    build_forgeteval(place / "others", n_per_family=5, seed=7)
    bench.run_adapter(open_dataset(str(place / "others"), "forgeteval", "en"), "wipe-all", place / "other", None)
    scores.score(place / "other")
    one, other = (
        json.loads((place / run / "manifest.json").read_text())["dataset"]["content_hash"]
        for run in ("fe/keeps", "other")
    )
    result = call(place / "fe", place / "other")
    assert (result.exit_code, result.stdout) == (2, "")
    assert one in result.stderr
    assert other in result.stderr
    assert "wipe-all" in result.stderr
    chosen = call(place / "fe", place / "other", "--dataset", other[:12].upper())
    assert chosen.exit_code == 0
    assert "25 cases" in chosen.stdout
    assert "keeps" not in chosen.stdout
    unknown = call(place / "fe", "--dataset", "ffff")
    assert unknown.exit_code == 2
    assert f"{one[:12]} (forgeteval, en)" in unknown.stderr


def test_a_run_that_comes_twice_counts_once(place: Path) -> None:
    files.write(place / "shared", rows.of_runs([place / "fe/keeps", place / "fe/empty"]))
    result = call(place / "shared", place / "fe/keeps", place / "fe/keeps", "--json")
    [board] = json.loads(result.stdout)
    assert sorted(entry["label"] for entry in board["entries"]) == ["empty", "keeps"]


def test_a_copy_of_a_run_is_published_once(place: Path) -> None:
    copy = Path(shutil.copytree(place / "fe/keeps", place / "copy"))
    assert files.runs_of([place / "fe/keeps", copy]) == [place / "fe/keeps"]
    (copy / "SHA256SUMS").write_text("")
    with pytest.raises(UserError, match="are one run with other numbers"):
        files.runs_of([place / "fe/keeps", copy])


def test_two_states_of_a_run_are_refused(place: Path) -> None:
    found = rows.of_runs([place / "fe/keeps"])
    found.summaries[0]["value"] = 0.5
    files.write(place / "shared", found)
    result = call(place / "fe", place / "shared")
    assert result.exit_code == 2
    assert f"{place / 'fe'} and {place / 'shared'} state different numbers of the run 'keeps' of keeps" in result.stderr


def test_json_markdown_and_csv_hold_the_same(whole: Path) -> None:
    [board] = json.loads(call(whole / "fe", "--json").stdout)
    assert (board["task"], board["config"], board["metric"]) == ("forgeteval", "en", "strict")
    assert [(entry["label"], entry["rank"], entry["control"]) for entry in board["entries"]] == [
        ("empty", [1, 2], False), ("keeps", [1, 2], False), ("oracle", None, True),
    ]  # fmt: skip
    keeps = board["entries"][1]
    assert keeps["not_applicable"] == 20
    summary = json.loads((whole / "fe/keeps/summary.json").read_text())
    purge = next(rate for rate in keeps["rates"] if (rate["metric"], rate["place"]) == ("spec", "purge"))
    assert purge == {"metric": "spec", "place": "purge"} | {
        name: summary["rates"]["spec"]["purge"][name] for name in ("value", "low", "high", "n")
    }
    table = list(csv.DictReader(io.StringIO(call(whole / "fe", "--csv").stdout)))
    assert [(line["system"], line["best"], line["worst"]) for line in table] == [
        ("empty", "1", "2"), ("keeps", "1", "2"), ("oracle", "", ""),
    ]  # fmt: skip
    assert {line["dataset_hash"] for line in table} == {board["content_hash"]}
    markdown = call(whole / "fe", "--markdown").stdout.splitlines()
    lines = [line for line in markdown if line.startswith("|")]
    assert len(lines) == 5
    assert {line.count("|") for line in lines} == {13}
    assert lines[3].startswith("| 1–2 | keeps | 0 [0–")


@pytest.mark.parametrize("options", [("--json", "--csv"), ("--markdown", "--json"), ("--csv", "--markdown")])
def test_one_form_is_chosen(whole: Path, options: tuple[str, str]) -> None:
    result = call(whole / "fe", *options)
    assert (result.exit_code, result.stderr) == (2, "forget-eval: choose one of --markdown, --json and --csv.\n")


def test_a_run_that_is_not_scored_or_not_finished_is_refused(place: Path) -> None:
    transcripts = place / "fe/keeps/transcripts.jsonl"
    transcripts.write_text("".join(transcripts.read_text().splitlines(keepends=True)[:15]))
    assert call(place / "fe/keeps").exit_code == 2  # scored before its transcripts changed
    scores.score(place / "fe/keeps")
    result = call(place / "fe/keeps")
    assert result.exit_code == 2
    assert "keeps is not finished: 5 rows have not been run." in result.stderr


@pytest.mark.parametrize("source", ["nowhere", "a/b/c", "./acme/x"])
def test_a_source_that_is_nothing_is_said(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = call(source)
    assert (result.exit_code, result.stderr) == (
        2, f"forget-eval: {source} is no folder here, and names no dataset on the Hub: write owner/name.\n",
    )  # fmt: skip


def test_a_folder_of_nothing_is_said(tmp_path: Path) -> None:
    result = call(tmp_path)
    assert result.exit_code == 2
    assert "is no run: it has no manifest.json" in result.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "chess"}, "a run of the task 'chess', which this version does not know"),
        ({"run_id": None}, "a row without run_id: these are no results of ours"),
    ],
)
def test_rows_that_make_no_sense_are_refused(place: Path, change: Row, message: str) -> None:
    found = rows.of_runs([place / "fe/keeps"])
    found.summaries[0] |= change
    files.write(place / "shared", found)
    result = call(place / "shared")
    assert result.exit_code == 2
    assert message in result.stderr


def test_what_would_steer_a_terminal_or_a_page_is_text(place: Path) -> None:
    found = rows.of_runs([place / "fe/keeps"])
    found.summaries[0]["system"] = "\x1b[2J|<b>[red]"
    files.write(place / "shared", found)
    text = call(place / "shared").stdout
    assert "\x1b" not in text
    assert "<b>[red]" in text
    assert r"| \x1b[2J\|&lt;b>[red] |" in call(place / "shared", "--markdown").stdout


def test_rows_name_no_place_of_a_machine(place: Path) -> None:
    """An embedder may be a folder, and a manifest says where the dataset was."""
    path = place / "fe/keeps/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["embedder"] = {"name": f"{place}/models/small", "weights_sha256": None}
    path.write_text(json.dumps(manifest))
    scores.score(place / "fe/keeps")
    found = rows.of_runs([place / "fe/keeps"])
    assert found.summaries[0]["embedder"] == "small"
    assert str(place) not in json.dumps([found.summaries, found.scores])
    assert "../" not in json.dumps([found.summaries, found.scores])


def test_the_rows_are_those_of_the_runs(whole: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    files.write(tmp_path, rows.of_runs([whole / "fe/keeps", whole / "mb/redactor"]))
    back = files.read(tmp_path)
    assert [(r["task"], r["run"], r["dataset_rows"]) for r in back.summaries] == [
        ("forgeteval", "keeps", 20), ("membehave", "redactor", 9),
    ]  # fmt: skip
    for run, key in (("fe/keeps", "case"), ("mb/redactor", "item")):
        theirs = pq.read_table(whole / run / "scores.parquet").to_pylist()
        ours = [r for r in back.scores if r["run"] == Path(run).name]
        assert len(ours) == len(theirs)
        assert {(r["row"], r["metric"], r["value"]) for r in ours} == {
            (r[key], r["metric"], r["value"]) for r in theirs
        }


def test_repeats_are_runs_of_their_own(place: Path) -> None:
    (place / "several").mkdir()
    for number in (1, 2):
        shutil.copytree(place / "fe/keeps", place / f"several/keeps/repeat-{number}")
        path = place / f"several/keeps/repeat-{number}/manifest.json"
        manifest = json.loads(path.read_text()) | {"run": f"repeat-{number}"}
        manifest["dataset"]["path"] = "../../../cases"
        path.write_text(json.dumps(manifest))
    for folder in (place / "several", place / "several/keeps"):
        [board] = json.loads(call(folder, "--json").stdout)
        assert [entry["label"] for entry in board["entries"]] == ["keeps repeat-1", "keeps repeat-2"]


def test_the_plot_says_the_same(whole: Path) -> None:
    boards = ranking.boards(rows.of_runs(sorted((whole / "fe").iterdir()), with_scores=False).summaries)
    [axis] = plots.leaderboard(shown.frame(boards), shown.RANKED_BY["forgeteval"]).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["empty   1–2", "keeps   1–2", "oracle"]
    points = [line.get_xdata()[0] for line in axis.lines if line.get_marker() == "o"]
    assert list(points) == [0.0, 0.0, 100.0]
