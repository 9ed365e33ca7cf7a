"""Finished runs behind fsspec URLs: uploaded by the run, scored there, and read from there."""

from pathlib import Path
from typing import Any

import fsspec
import pytest
from click.testing import CliRunner, Result

from forget_eval import remote
from forget_eval.cli import main

Built = tuple[Path, dict[str, Any]]
URL = "memory://results/oracle"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def empty_memory() -> None:
    """Nothing is left of another test's uploads."""
    files = fsspec.filesystem("memory")
    if files.exists("/results"):
        files.rm("/results", recursive=True)


@pytest.fixture
def uploaded(tmp_path: Path, forgeteval_built: Built) -> tuple[Path, Path]:
    """A run that was uploaded, and its dataset."""
    data, run = forgeteval_built[0], tmp_path / "run"
    done = call(
        "run", "forgeteval", "--data", data, "--config", "en", "--adapter", "oracle", "--out", run, "--upload", URL
    )
    assert done.exit_code == 0, done.output
    assert f"uploaded to {URL}" in done.stderr
    return run, data


def test_a_finished_run_is_uploaded_and_scored_where_it_is(uploaded: tuple[Path, Path]) -> None:
    run, data = uploaded
    files = fsspec.filesystem("memory")
    assert {name.rpartition("/")[2] for name in files.ls("/results/oracle", detail=False)} == {
        "manifest.json", "transcripts.jsonl"
    }  # fmt: skip
    done = call("score", URL, "--data", data)
    assert done.exit_code == 0, done.output
    assert call("score", run).exit_code == 0
    assert files.cat_file("/results/oracle/summary.json") == (run / "summary.json").read_bytes()


def test_scoring_behind_a_url_never_takes_the_run_away(
    uploaded: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = fsspec.filesystem("memory")
    monkeypatch.setattr(type(files), "put_file", broken)
    done = call("score", URL, "--data", uploaded[1])
    assert done.exit_code == 1
    assert "Do it again" in done.stderr
    monkeypatch.undo()
    assert files.cat_file("/results/oracle/manifest.json") == (uploaded[0] / "manifest.json").read_bytes()
    assert call("score", URL, "--data", uploaded[1]).exit_code == 0


def test_uploading_again_takes_away_what_only_an_earlier_scoring_wrote(uploaded: tuple[Path, Path]) -> None:
    files = fsspec.filesystem("memory")
    files.pipe_file("/results/oracle/scores/other.json", b"{}")
    files.pipe_file("/results/oracle/notes.txt", b"mine")
    remote.upload(uploaded[0], URL)
    assert not files.exists("/results/oracle/scores/other.json")
    assert files.exists("/results/oracle/notes.txt")


@pytest.mark.parametrize("place", ["run", "run/inner", "", "link"])
def test_a_run_is_not_uploaded_into_itself_nor_around_itself(
    place: str, uploaded: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, data = uploaded
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(run)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    for url in (place, (tmp_path / place).as_uri()):
        done = call(
            "run", "forgeteval", "--data", data, "--config", "en", "--adapter", "oracle", "--out", run, "--upload", url
        )
        assert done.exit_code == 2
        assert "is no other place than that of the run" in done.stderr
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def broken(*_: object, **__: object) -> None:
    raise ConnectionResetError("cut off")


def test_a_place_of_an_unknown_kind_is_refused_before_anything_is_played(
    tmp_path: Path, forgeteval_built: Built
) -> None:
    asked = ("--data", forgeteval_built[0], "--config", "en", "--adapter", "oracle", "--out", tmp_path / "run")
    done = call("run", "forgeteval", *asked, "--upload", "nowhere://results")
    assert done.exit_code == 2
    assert "nowhere://results: Protocol not known: nowhere" in done.stderr
    assert not (tmp_path / "run").exists()


def test_reports_comparisons_and_checks_read_runs_from_urls(uploaded: tuple[Path, Path], tmp_path: Path) -> None:
    _, data = uploaded
    assert call("score", URL, "--data", data).exit_code == 0
    assert "oracle" in call("report", URL).stdout
    assert call("verify", URL, "--data", data).exit_code == 0
    other = tmp_path / "other"
    call("run", "forgeteval", "--data", data, "--config", "en", "--adapter", "null", "--out", other)
    call("score", other)
    compared = call("compare", other, URL).stdout
    assert "Pass in oracle alone" in compared
    assert compared == call("compare", other, URL).stdout


def test_a_url_with_nothing_behind_it_is_named() -> None:
    done = call("report", "memory://results/nothing")
    assert done.exit_code == 2
    assert "memory://results/nothing: there is nothing." in str(done.stderr)
