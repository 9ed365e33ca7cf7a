"""What `score`, `report` and `run` say of run folders that are damaged, stale, elsewhere, or cannot be written."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from forget_eval.cli import main

WHERE = ("manifest.json", "transcripts.jsonl", "scores.parquet", "summary.json")


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scored run of the hand-made cases by the control keep-all, with its dataset in it."""
    folder = tmp_path_factory.mktemp("folders") / "b"
    found = CliRunner().invoke(main, ["bench", "forgeteval", "--adapter", "keep-all", "--out", str(folder)])
    assert found.exit_code == 0, found.output
    return folder


@pytest.fixture
def run(scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as `b` of the current folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(scored, tmp_path / "b")
    return Path("b")


def invoke(*arguments: object, code: int = 0) -> Result:
    found = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert found.exit_code == code, found.output
    assert isinstance(found.exception, SystemExit | None)
    return found


def refused(*arguments: object, code: int = 2) -> str:
    found = invoke(*arguments, code=code)
    assert found.stdout == ""
    assert found.stderr.startswith("forget-eval: ")
    assert "should not happen" not in found.stderr
    return found.stderr


def again(run: Path, *more: str) -> tuple[str, ...]:
    return ("run", "forgeteval", "--data", "b/data", "--config", "handmade", "--adapter", "keep-all", "--out", str(run))


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def without_rates(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if name != "rates"}


def with_bad_rate(summary: dict[str, Any]) -> dict[str, Any]:
    summary["rates"]["strict"]["purge"]["low"] = float("nan")
    return summary


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda summary: {}, "field 'statuses' is missing"),
        (lambda summary: [], "the whole is a list"),
        (without_rates, "field 'rates' is missing"),
        (with_bad_rate, "field 'rates.strict.purge.low'"),
        (lambda summary: {**summary, "reasons": None}, "field 'reasons' is null"),
        (lambda summary: {**summary, "templates": {"spec": 1, "strict": {}}}, "field 'templates.spec' is 1"),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"], ["--markdown"]])
def test_a_summary_of_another_shape_is_made_again(
    run: Path, change: Callable[[Any], Any], field: str, form: list[str]
) -> None:
    edit(run / "summary.json", change)
    said = refused("report", run, *form)
    assert field in said
    assert "forget-eval score b" in said
    invoke("score", run)
    invoke("report", run)


@pytest.mark.parametrize("content", [b"", b"junk", b"PAR1junkPAR1", None])
def test_scores_that_are_junk_are_made_again(run: Path, content: bytes | None) -> None:
    (run / "scores.parquet").unlink()
    if content is not None:
        (run / "scores.parquet").write_bytes(content)
    said = refused("report", run)
    assert "scores.parquet" in said
    assert "forget-eval score b" in said
    invoke("score", run)
    invoke("report", run)


@pytest.mark.parametrize("name", WHERE)
@pytest.mark.parametrize("command", ["score", "report"])
def test_a_file_that_is_a_folder_is_named(run: Path, name: str, command: str) -> None:
    (run / name).unlink()
    (run / name).mkdir()
    written = command == "score" and name in ("scores.parquet", "summary.json")
    assert name in refused(command, run, code=1 if written else 2)


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"status": "x"}, "field 'status' is 'x'"), ({"final": "all"}, "field 'final' is 'all'")],
)
@pytest.mark.parametrize("command", ["score", "report", "run"])
def test_a_transcript_of_another_shape_is_never_scored(
    run: Path, command: str, changes: dict[str, Any], what: str
) -> None:
    lines = (run / "transcripts.jsonl").read_text().splitlines()
    lines[6] = json.dumps({**json.loads(lines[6]), **changes})
    (run / "transcripts.jsonl").write_text("\n".join(lines) + "\n")
    said = refused(*(again(run) if command == "run" else (command, run)))
    assert f"b/transcripts.jsonl, line 7: {what}" in said


def test_a_summary_of_fewer_transcripts_is_not_shown(run: Path) -> None:
    lines = (run / "transcripts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "transcripts.jsonl").write_bytes(b"".join(lines[:4]))
    invoke("score", run)
    assert "11 cases have not been run" in invoke("report", run).stdout
    invoke(*again(run))
    for form in ([], ["--json"], ["--markdown"]):
        said = refused("report", run, *form)
        assert "b was scored before its transcripts changed, when it had 4 transcripts; it has 15" in said
        assert "forget-eval score b" in said
    invoke("score", run)
    assert "not been run" not in invoke("report", run).stdout


def test_a_summary_of_other_answers_is_not_shown(run: Path) -> None:
    lines = (run / "transcripts.jsonl").read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), "final": []})
    (run / "transcripts.jsonl").write_text("\n".join(lines) + "\n")
    assert "before its transcripts changed. Score it again" in refused("report", run)


def test_a_torn_line_at_the_end_makes_nothing_stale(run: Path) -> None:
    with open(run / "transcripts.jsonl", "ab") as file:
        file.write(b'{"id": "decay')
    invoke("report", run)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_is_no_run_is_told_alike_in_every_form(run: Path, form: list[str]) -> None:
    assert refused("report", "nope", *form) == (
        "forget-eval: nope is no run: it has no manifest.json. `forget-eval run` or `bench` makes one.\n"
    )
    assert "b/manifest.json is no run" in refused("report", run / "manifest.json", *form)
    assert "is no run" in refused("report", "~nobody-of-this-name", *form)
    assert "name too long" in refused("report", "x" * 300, *form)


@pytest.mark.parametrize("data", ["b", "~nobody-of-this-name", "x" * 300, "b/manifest.json"])
def test_a_dataset_that_is_none_is_told(run: Path, data: str) -> None:
    said = refused("score", run, "--data", data)
    assert data in said
    refused("run", "forgeteval", "--data", data, "--adapter", "null", "--out", "r")


def test_a_run_behind_a_symbolic_link_is_scored_and_reported(run: Path, tmp_path: Path) -> None:
    (tmp_path / "disk" / "deep").mkdir(parents=True)
    (tmp_path / "runs").symlink_to(tmp_path / "disk" / "deep")
    invoke(*again(Path("runs/r")))
    for place in ("runs/r", "disk/deep/r"):
        invoke("score", place)
        invoke("report", place)


def test_texts_that_no_encoding_has_reach_every_form(run: Path) -> None:
    lines = (run / "transcripts.jsonl").read_text().splitlines()
    broken = {"kind": "E\udc80", "message": "a\x1b[31m\udcff 東 é", "during": "final", "traceback": ""}
    lines[0] = json.dumps({**json.loads(lines[0]), "status": "error", "error": broken})
    (run / "transcripts.jsonl").write_text("\n".join(lines) + "\n")
    edit(run / "manifest.json", lambda manifest: {**manifest, "run": "b\udcff"})
    edit(run / "manifest.json", lambda m: {**m, "adapter": {**m["adapter"], "name": "keep\udcffall"}})
    invoke("score", run)
    for form in ([], ["--markdown"], ["--json"]):
        for encoding in ("utf-8", "ascii"):
            done = program("report", run, *form, PYTHONIOENCODING=encoding)
            assert done.returncode == 0, done.stderr
            assert b"\x1b" not in done.stdout
            if form == ["--json"]:
                assert json.loads(done.stdout.decode(encoding))["adapter"] == "keep\udcffall"
            elif form == []:
                assert rb"keep\udcffall broke, first in" in done.stdout
                assert rb"E\udc80: a\x1b[31m\udcff " in done.stdout


Done = subprocess.CompletedProcess[bytes]


def program(*arguments: object, stdout: Any = subprocess.PIPE, **environment: str) -> Done:
    command = [sys.executable, "-m", "forget_eval", *map(str, arguments)]
    variables = {**os.environ, **environment}
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, check=False, env=variables)


@pytest.mark.parametrize("arguments", ["report b", "report b --json", "report b --markdown", "--help", "report -h"])
def test_a_full_device_behind_stdout_is_told(run: Path, arguments: str) -> None:
    with open("/dev/full", "wb") as full:
        done = program(*arguments.split(), stdout=full)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("closed", ["2>&-", "1>&-", "0<&- 1>&- 2>&-", "2>/dev/full"])
@pytest.mark.parametrize("arguments", ["report b", "report nope", "run {}"])
def test_streams_that_are_closed_end_no_command(run: Path, closed: str, arguments: str) -> None:
    words = arguments.format(" ".join(again(Path("r"))[1:]))
    command = f"{sys.executable} -m forget_eval {words} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert b"Traceback" not in done.stderr + done.stdout
    if closed != "2>/dev/full":
        assert done.returncode == (2 if "nope" in arguments else 0)
    assert done.returncode < 3
    if arguments.startswith("run") and closed != "2>/dev/full":
        lines = Path("r/transcripts.jsonl").read_text().splitlines()
        assert [json.loads(line)["status"] for line in lines] == ["ok"] * 15


def as_anybody(*arguments: object) -> Done:
    """The command by a user whom the disk can refuse, which it cannot root as long as root may override it."""
    command = [sys.executable, "-m", "forget_eval", *map(str, arguments)]
    if os.geteuid() == 0:
        if not (setpriv := shutil.which("setpriv")):
            pytest.skip("this machine has no setpriv, by which root gives up its rights")
        command = [setpriv, "--bounding-set=-dac_override,-dac_read_search", *command]
    return subprocess.run(command, capture_output=True, check=False)


def make_read_only(folder: Path) -> None:
    """Takes the right to write from everybody."""
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)


def test_a_finished_run_that_cannot_be_written_does_nothing(run: Path) -> None:
    make_read_only(run)
    done = as_anybody(*again(run))
    assert done.returncode == 0, done.stderr
    assert b"finished before, nothing to do" in done.stderr
    shown = as_anybody("report", run)
    assert shown.returncode == 0, shown.stderr
    assert b"15 cases" in shown.stdout
    refused = as_anybody("score", run)
    assert refused.returncode == 1
    assert b"cannot write b/scores.parquet: Permission denied" in refused.stderr


def test_an_unfinished_run_that_cannot_be_written_says_so(run: Path) -> None:
    lines = (run / "transcripts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "transcripts.jsonl").write_bytes(b"".join(lines[:4]))
    make_read_only(run)
    done = as_anybody(*again(run))
    assert done.returncode == 1
    assert b"cannot write b/transcripts.jsonl: Permission denied" in done.stderr


def test_a_run_that_cannot_be_started_over_is_still_a_run(run: Path) -> None:
    (run / "scores").mkdir()
    (run / "scores" / "chat-small.json").write_text("{}")
    make_read_only(run / "scores")
    done = as_anybody(*again(run), "--force")
    assert done.returncode == 1
    assert b"cannot empty b: Permission denied" in done.stderr
    assert {path.name for path in run.iterdir()} >= {"manifest.json", "transcripts.jsonl"}


def test_a_secret_that_is_a_common_word_leaves_a_run_usable(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in (("DB_PASSWORD", "forgeteval"), ("A_TOKEN", "keep-all"), ("B_TOKEN", "handmade")):
        monkeypatch.setenv(variable, value)
    invoke(*again(Path("r")))
    manifest = json.loads(Path("r/manifest.json").read_text())
    assert (manifest["task"], manifest["adapter"]["name"]) == ("forgeteval", "keep-all")
    invoke("score", "r")
    assert "ForgetEval, config handmade · 15 cases" in invoke("report", "r").stdout
    assert "nothing to do" in invoke(*again(Path("r"))).stderr


@pytest.fixture(scope="module")
def of_membehave(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scored run of three items of MemBehave by the control oracle."""
    folder = tmp_path_factory.mktemp("folders") / "m"
    asked = ["bench", "membehave", "--triplets", "1", "--adapter", "oracle", "--out", str(folder)]
    found = CliRunner().invoke(main, asked)
    assert found.exit_code == 0, found.output
    return folder


@pytest.fixture
def other(of_membehave: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as `m` of the current folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(of_membehave, tmp_path / "m")
    return Path("m")


def test_a_run_of_membehave_is_held_to_the_shape_of_its_own_lines(other: Path) -> None:
    lines = (other / "transcripts.jsonl").read_text().splitlines()
    lines[1] = json.dumps({**json.loads(lines[1]), "after": "nothing"})
    (other / "transcripts.jsonl").write_text("\n".join(lines) + "\n")
    for command in ("score", "report"):
        assert "m/transcripts.jsonl, line 2: field 'after' is 'nothing', not a list or null" in refused(command, other)


@pytest.mark.parametrize("field", ["metrics", "paired", "excluded", "statuses", "transcripts"])
def test_a_summary_of_membehave_that_lacks_a_field_is_made_again(other: Path, field: str) -> None:
    edit(other / "summary.json", lambda summary: {k: v for k, v in summary.items() if k != field})
    assert f"field '{field}' is missing. Score it again: forget-eval score m" in refused("report", other)


def test_a_judge_of_other_transcripts_is_left_out_and_said_so(other: Path) -> None:
    summary = json.loads((other / "summary.json").read_text())
    judge = {"model": "small", "kappa": 1.0, "agreed": 3, "n": 3, "undecided": 0}
    (other / "scores").mkdir()
    place = other / "scores" / "chat-small.json"
    place.write_text(json.dumps({**summary, "judge": judge}))
    assert "judged by small" in invoke("report", other).stdout
    place.write_text(json.dumps({**summary, "judge": judge, "transcripts": {"n": 1, "sha256": "ab"}}))
    found = invoke("report", other)
    assert "judged by small" not in found.stdout
    assert "chat-small.json was judged before the transcripts changed, and is left out" in found.stderr
    place.write_text("{}")
    assert "chat-small.json: field" in refused("report", other)


@pytest.mark.parametrize(
    ("task", "options"),
    [("forgeteval", ()), ("forgeteval", ("--repeats", 2)), ("membehave", ("--triplets", 1))],
    ids=["forgeteval", "repeats", "membehave"],
)
def test_one_more_system_joins_those_that_are_there(task: str, options: tuple[object, ...], tmp_path: Path) -> None:
    bench = ("bench", task, *options, "--out", tmp_path / "all")
    invoke(*bench, "--adapter", "null", "--adapter", "keep-all")
    invoke(*bench, "--adapter", "oracle")
    assert {path.name for path in (tmp_path / "all").iterdir()} == {"data", "null", "keep-all", "oracle"}
    assert "finished before" in invoke(*bench, "--adapter", "null").stderr
