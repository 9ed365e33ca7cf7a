"""Runs of every version of the schema are read and scored, what is run is named in full, and running is not scoring."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from forget_datasets.errors import UserError
from forget_eval import runs, scores, transcripts
from forget_eval.cli import main

GOLDEN = Path(__file__).parent / "golden" / "versions"
VERSIONS = range(1, runs.SCHEMA_VERSION + 1)
TASKS = ("forgeteval", "membehave")


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[int, str], Path]:
    """A copy of a golden run, beside its dataset."""

    def copy(version: int, task: str) -> Path:
        return Path(shutil.copytree(GOLDEN / f"v{version}" / task, tmp_path / task)) / "run"

    return copy


def numbers(summary: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    """What the answers alone decide: all but the bounds of intervals, whose method may improve."""
    for name, value in summary.items():
        if isinstance(value, dict):
            yield from numbers(value, f"{place}{name}.")
        elif name not in ("low", "high"):
            yield f"{place}{name}", value


def counted(folder: Path) -> dict[str, Any]:
    parts = ("n", "statuses", "rates", "templates", "reasons", "excluded", "metrics", "transcripts")
    summary = json.loads((folder / "summary.json").read_text())
    return dict(numbers({name: summary[name] for name in parts if name in summary}))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_of_every_version_is_scored_to_the_numbers_of_then(
    golden: Callable[[int, str], Path], version: int, task: str
) -> None:
    folder = golden(version, task)
    assert json.loads((folder / "manifest.json").read_text())["schema_version"] == version
    recorded = counted(folder)
    (folder / "summary.json").unlink()
    (folder / "scores.parquet").unlink()
    scores.score(folder)
    assert counted(folder) == recorded
    assert runs.read(folder)["schema_version"] == runs.SCHEMA_VERSION
    shown = CliRunner().invoke(main, ["report", str(folder)])
    assert shown.exit_code == 0, shown.output
    assert "keyword" in shown.stdout


def test_the_golden_runs_hold_every_way_in_which_a_case_can_end(golden: Callable[[int, str], Path]) -> None:
    statuses = json.loads((golden(1, "forgeteval") / "summary.json").read_text())["statuses"]["strict"]
    assert statuses == {"pass": 5, "fail": 3, "n/a": 6, "error": 1, "unscored": 0}


def test_every_version_has_a_golden_run_and_a_step_to_the_next() -> None:
    assert {path.name for path in GOLDEN.glob("v*")} == {f"v{version}" for version in VERSIONS}
    assert set(runs.MIGRATIONS) == set(VERSIONS[:-1])


@pytest.mark.parametrize("task", TASKS)
def test_a_run_of_the_future_is_refused_with_what_to_do(golden: Callable[[int, str], Path], task: str) -> None:
    folder = golden(1, task)
    version(folder, runs.SCHEMA_VERSION + 1)
    for command in ("score", "report"):
        found = CliRunner().invoke(main, [command, str(folder)])
        assert found.exit_code == 2
        assert f"newer version of forget-datasets (schema {runs.SCHEMA_VERSION + 1}; 0.1.0" in found.stderr
        assert "pip install --upgrade forget-datasets" in found.stderr


@pytest.mark.parametrize("number", [0, -3])
def test_a_version_that_never_was_is_refused(golden: Callable[[int, str], Path], number: int) -> None:
    folder = golden(1, "forgeteval")
    version(folder, number)
    with pytest.raises(UserError, match=f"schema {number} is none that was ever written"):
        runs.read(folder)


def begun(folder: Path, manifest: runs.Manifest) -> runs.Manifest:
    """A run begun, or found begun: the manifest that is there afterwards."""
    with runs.opened(folder, manifest):
        return runs.read(folder)


def version(folder: Path, number: int) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": number}))


# What makes a run the same --------------------------------------------------------------------------------------------

OTHER = {
    ("dataset", "content_hash"): "dataset content hash was .*, is x",
    ("dataset", "config"): "dataset config was handmade, is x",
    ("adapter", "class"): "adapter class was keyword_memory:Keyword, is x",
    ("adapter", "version"): "adapter version was None, is x",
    ("adapter", "source_sha256"): "adapter source was [0-9a-f]{64}, is x",
    ("adapter", "configuration", "depth"): r"adapter configuration was \{\}, is \{'depth': 'x'\}",
    ("adapter", "isolation", "environment"): "environment was None, is x",
    ("adapter", "isolation", "python"): "environment's Python was None, is x",
    ("adapter", "isolation", "requirements_sha256"): "environment's requirements was None, is x",
    ("embedder",): "embedder was None, is x",
    ("assistant", "forget_policy"): "forget policy was named, is x",
    ("assistant", "answerer"): "answerer was extractive, is x",
    ("assistant", "recall", "target"): r"recalled texts was \{'target': 50\}, is \{'target': 'x'\}",
    ("assistant", "model", "name"): r"chat model was None, is \{'name': 'x'\}",
    ("k",): "k was 10, is x",
}


@pytest.mark.parametrize("place", OTHER, ids=".".join)
def test_a_run_does_not_go_on_under_another_parameter(
    golden: Callable[[int, str], Path], place: tuple[str, ...]
) -> None:
    folder = golden(1, "forgeteval" if place == ("dataset", "config") else "membehave")
    manifest = runs.read(folder)
    before = (folder / "transcripts.jsonl").read_bytes()
    inner = manifest if place != ("embedder",) else {"embedder": manifest.setdefault("embedder", {}) or {}}
    if place == ("embedder",):
        manifest["embedder"] = {"name": "x"}
    else:
        for name in place[:-1]:
            inner = inner.setdefault(name, {})
        inner[place[-1]] = "x"
    with pytest.raises(UserError, match=f"run with other parameters: {OTHER[place]}. Name another --out"):
        begun(folder, manifest)
    assert (folder / "transcripts.jsonl").read_bytes() == before


def test_of_many_packages_those_that_differ_are_named(tmp_path: Path) -> None:
    manifest = runs.read(GOLDEN / "v1" / "forgeteval" / "run")
    packages = {"mem0ai": "1.0", **{f"package-{i}": "1" for i in range(99)}}
    manifest["adapter"]["isolation"] = {"environment": "mem0", "packages": packages}
    begun(tmp_path, manifest)
    manifest["adapter"]["isolation"] = {"environment": "mem0", "packages": {**packages, "mem0ai": "1.1", "new": "2"}}
    said = r"environment's packages was \{'mem0ai': '1.0'\}, is \{'mem0ai': '1.1', 'new': '2'\}\. Name"
    with pytest.raises(UserError, match=said):
        begun(tmp_path, manifest)


def test_a_run_in_a_worker_goes_on_where_one_without_has_ended(tmp_path: Path) -> None:
    manifest = runs.read(GOLDEN / "v1" / "forgeteval" / "run")
    there = begun(tmp_path, manifest)
    again = {**manifest, "adapter": {**manifest["adapter"], "isolation": {"environment": None}}}
    assert begun(tmp_path, again) == there


# What a transcript holds, and who reads it ----------------------------------------------------------------------------

BREAKS = """
class Breaks:
    name = "breaks"
    def reset(self): self.facts = []
    def inscribe(self, text): self.facts.append(text)
    def recall_texts(self, query, k=5): return self.facts[:2]
    def supersede(self, old_query, new_text): return "replaced"
    def release(self, query): return 7
    def purge(self, query): return self.deeper(query)
    def deeper(self, query): raise LookupError("nothing by that name")
"""
RUN = """
import sys
from pathlib import Path
from forget_eval import bench
from forget_eval.data import open_dataset
from forget_eval.membehave.bench import run_system
from forget_eval.membehave.systems import Settings

task, data = sys.argv[1:]
dataset, run = open_dataset(data, task), Path("run")
if task == "forgeteval":
    bench.run_adapter(dataset, "breaking:Breaks", run, None)
else:
    run_system(dataset, "breaking:Breaks", run, None, Settings())
print(*sys.modules)
"""


@pytest.fixture
def ran(tmp_path: Path) -> Callable[[str], tuple[Path, set[str]]]:
    """Runs a system that breaks on a golden dataset; gives the run, and the modules that were imported for it."""
    (tmp_path / "breaking.py").write_text(BREAKS)

    def run(task: str) -> tuple[Path, set[str]]:
        data = str(GOLDEN / "v1" / task / "data")
        call = [sys.executable, "-c", RUN, task, data]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return tmp_path / "run", set(done.stdout.split())

    return run


@pytest.mark.parametrize("task", TASKS)
def test_a_run_imports_nothing_that_scores_and_writes_no_score(
    ran: Callable[[str], tuple[Path, set[str]]], task: str
) -> None:
    folder, modules = ran(task)
    assert {path.name for path in folder.iterdir()} == {"manifest.json", "transcripts.jsonl"}
    scorers = ("scores", "scoring", "report", "plots", "paired", "comparison", "membehave.scores")
    scorers += ("membehave.judges", "membehave.disclosure", "membehave.agreement")
    assert not {name for name in modules if name.startswith(tuple(f"forget_eval.{scorer}" for scorer in scorers))}
    assert not {name for name in modules if name.startswith(("scipy", "pandas"))}


def test_a_transcript_holds_all_that_scoring_reads(ran: Callable[[str], tuple[Path, set[str]]]) -> None:
    folder, _ = ran("forgeteval")
    found = {t["id"]: t for t in transcripts.read(folder / "transcripts.jsonl", transcripts.SHAPES["forgeteval"])}
    ok = next(t for t in found.values() if t["operations"][0]["op"] == "release")
    assert (ok["operations"][0]["returned"], ok["operations"][0]["status"]) == (7, "ok")
    assert ok["operations"][0]["seconds"] > 0
    assert set(ok["seconds"]) == {"reset", "inscribe", "final", "probes", "again"}
    assert [len(ok["final"]), *map(len, ok["probes"]), *map(len, ok["again"])] == [2] * (
        1 + len(ok["probes"]) + len(ok["again"])
    )
    assert len(ok["again"]) >= 1
    superseded = next(t for t in found.values() if t["operations"][0]["op"] == "supersede")
    assert superseded["operations"][0]["returned"] == "replaced"
    broken = next(t for t in found.values() if t["operations"][0]["op"] == "purge")
    assert (broken["status"], broken["final"], broken["operations"][0]["status"]) == ("error", None, "error")
    error = broken["error"]
    assert (error["kind"], error["message"], error["during"]) == ("LookupError", "nothing by that name", "purge")
    assert "breaking.py" in error["traceback"]
    assert "in deeper" in error["traceback"]


def test_the_golden_runs_name_no_place_of_the_machine_that_made_them() -> None:
    for path in GOLDEN.rglob("*"):
        if path.suffix in (".json", ".jsonl"):
            assert not re.search(r'File \\"/|[": ]/(home|root|tmp|work|Users)/', path.read_text("utf-8")), path
