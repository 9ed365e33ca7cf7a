"""MemBehave through the command line: run, resume, score, report."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from forget_datasets import manifest
from forget_datasets.build import build_membehave
from forget_datasets.membehave import generate
from forget_datasets.membehave.controls import CONTROLS
from forget_datasets.rows import LEVELS, Item, RowHash
from forget_datasets.schema import SCHEMAS
from forget_datasets.shards import ShardWriter
from forget_eval.bench import TASKS
from forget_eval.cli import main
from forget_eval.data import open_dataset
from forget_eval.membehave.bench import items
from forget_eval.membehave.names import people
from forget_eval.scoring.membehave import METRICS

TRIPLETS = 2
MODULE = '''
from zlib import crc32

import numpy as np

from forget_eval.adapters.reference import ReferenceMemory


def bag(texts):
    """Unit vectors that count words, so that no model is needed."""
    rows = np.full((len(texts), 512), 1e-3, dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().split():
            row[crc32(word.strip(".,!?").encode()) % 512] += 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Keeping(ReferenceMemory):
    """Has no operation of forgetting."""

    purge = release = supersede = None


class Parrot:
    """An assistant of its own, which knows nothing but the question."""

    def ingest(self, sessions): ...

    def ask(self, question):
        return question

    def forget(self, request):
        raise NotImplementedError
'''


def write(folder: Path, rows: Callable[[Item], dict[str, Any]]) -> Path:
    """A dataset folder of the first triplets, changed as no build would let them through."""
    configs: dict[str, Any] = {"default": {"splits": {}}, "extended": {"splits": {}}}
    triplets = list(generate(TRIPLETS))
    for config, entry in configs.items():
        digest = RowHash()
        for number, level in enumerate(LEVELS):
            with ShardWriter(folder / "data" / config, level, SCHEMAS["membehave"]) as writer:
                for triplet in triplets:
                    writer.add(row := rows(getattr(triplet, config)[number]))
                    digest.add(row)
                entry["splits"][level] = manifest.split_figures(f"data/{config}", writer.close())
        entry["content_hash"] = digest.hexdigest()
    content = {"dataset": "membehave", "schema_version": 1, "parameters": {"seed": 42}, "configs": configs}
    (folder / manifest.MANIFEST).write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("membehave") / "data"
    build_membehave(folder, triplets=TRIPLETS)
    return folder


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the user's own module, and a cache of its own."""
    (tmp_path / "mine_membehave.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("FORGET_EVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path


def invoke(*arguments: object, code: int = 0) -> Result:
    found = CliRunner().invoke(main, [str(a) for a in arguments])
    assert found.exit_code == code, found.output
    return found


def run(data: Path, name: str, out: Path, *more: object, code: int = 0) -> Result:
    words = ("--embedder", "mine_membehave:bag")
    return invoke("run", "membehave", "--data", data, "--adapter", name, *words, "--out", out, *more, code=code)


def transcripts(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "transcripts.jsonl").read_text(encoding="utf-8").splitlines()]


def untimed(folder: Path) -> list[dict[str, Any]]:
    found = transcripts(folder)
    for transcript in found:
        del transcript["seconds"]
        for operation in transcript["operations"].values():
            del operation["seconds"]
    return found


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return found


def test_the_items_of_a_triplet_follow_each_other(data: Path) -> None:
    found = list(items(open_dataset(str(data), "membehave", "default")))
    assert [item.level for item in found] == [*LEVELS] * TRIPLETS
    assert found[0].triplet_id == found[1].triplet_id == found[2].triplet_id != found[3].triplet_id


def test_the_policy_finds_the_target_in_every_request(data: Path) -> None:
    for item in items(open_dataset(str(data), "membehave", "default")):
        assert people(item.forget_request) == [item.target]


def test_a_run_is_a_folder_that_is_scored_without_the_system(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(data, "reference", out)
    found = transcripts(out)
    assert ["restore" in t["seconds"] for t in found] == [False, True, True] * TRIPLETS
    assert {t["status"] for t in found} == {"ok"}
    described = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert described["assistant"] == {
        "answerer": "extractive",
        "forget_policy": "named",
        "recall": {"default": 10, "target": 50, "alias": 50},
    }
    assert described["task"] in TASKS
    assert isinstance(described["seeds"]["bootstrap"], int)

    invoke("score", out)
    first = {name: (out / name).read_bytes() for name in ("summary.json", "scores.parquet")}
    invoke("score", out)
    assert first == {name: (out / name).read_bytes() for name in first}
    parts = ["task", "adapter", "n", "statuses", "excluded", "metrics", "paired"]
    assert list(summary(out))[: len(parts)] == parts
    assert (summary(out)["task"], summary(out)["adapter"], summary(out)["n"]) == (
        "membehave",
        "reference",
        3 * TRIPLETS,
    )
    assert pq.read_table(out / "scores.parquet").num_rows == 3 * TRIPLETS * (len(METRICS) + 1)


def test_forgetting_by_name_is_cleaner_than_one_release(data: Path, tmp_path: Path) -> None:
    coverage = {}
    for policy in ("named", "single"):
        run(data, "reference", tmp_path / policy, "--forget-policy", policy)
        invoke("score", tmp_path / policy)
        coverage[policy] = summary(tmp_path / policy)["metrics"]["attributed_coverage"]["all"]["value"]
    assert coverage["named"] < 0.2
    assert coverage["single"] > 0.6


def test_a_run_that_was_cut_off_goes_on(data: Path, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        run(data, "reference", folder)
    path = cut / "transcripts.jsonl"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    again = run(data, "reference", cut)
    assert "items run" in again.stderr
    assert untimed(cut) == untimed(whole)


def test_a_run_under_another_policy_is_refused(data: Path, tmp_path: Path) -> None:
    run(data, "reference", tmp_path / "run")
    found = run(data, "reference", tmp_path / "run", "--forget-policy", "single", code=2)
    assert "forget policy was named, is single" in found.stderr


@pytest.mark.parametrize("config", ["default", "extended"])
@pytest.mark.parametrize("name", CONTROLS)
def test_controls_land_where_they_should(data: Path, tmp_path: Path, name: str, config: str) -> None:
    run(data, name, tmp_path, "--config", config)
    invoke("score", tmp_path)
    found = summary(tmp_path)
    rates = {metric: found["metrics"][metric]["all"]["value"] for metric in METRICS}
    assert found["statuses"]["scored"] == 3 * TRIPLETS
    if name == "null":
        assert found["excluded"]["selective_forgetting"] == found["excluded"]["ripple_survival"] == 3 * TRIPLETS
        return
    assert (rates["baseline_recall_target"], rates["baseline_recall_ripple"]) == (1.0, 1.0)
    assert rates["attributed_coverage"] == (1.0 if name == "keep-all" else 0.0)
    expected = {"keep-all": 1.0, "wipe-all": 0.0, "oracle": 1.0}
    assert name == "redactor" or rates["ripple_survival"] == expected[name]
    assert rates["selective_forgetting"] == pytest.approx(
        {"keep-all": 0.0, "wipe-all": 0.0, "oracle": 1.0}.get(name, rates["selective_forgetting"])
    )


def test_a_system_that_cannot_forget_is_listed_apart(data: Path, tmp_path: Path) -> None:
    run(data, "mine_membehave:Keeping", tmp_path / "run")
    invoke("score", tmp_path / "run")
    found = summary(tmp_path / "run")
    assert found["statuses"] == {"scored": 0, "n/a": 3 * TRIPLETS, "error": 0, "unscored": 0}
    assert found["metrics"]["attributed_coverage"]["all"]["value"] == 1.0
    assert found["metrics"]["selective_forgetting"]["all"]["value"] == 0.0


def test_an_assistant_of_its_own_is_taken_as_it_is(data: Path, tmp_path: Path) -> None:
    run(data, "mine_membehave:Parrot", tmp_path / "run")
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["assistant"] == {"answerer": "own"}
    assert {t["status"] for t in transcripts(tmp_path / "run")} == {"n/a"}


def test_the_report_fits_a_terminal_and_names_the_policy(data: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("reference", "single", "oracle")]
    run(data, "reference", folders[0])
    run(data, "reference", folders[1], "--forget-policy", "single")
    run(data, "oracle", folders[2])
    invoke("score", *folders)
    shown = invoke("report", *folders).stdout
    assert max(map(len, shown.splitlines())) <= 100
    assert "reference*: forget policy single" in shown
    assert "reference: forget policy named" in shown
    for part in ("attributed", "high-low", "existence", "excludes"):
        assert part in shown
    table = invoke("report", "--markdown", *folders).stdout
    assert "| oracle | all | 100 [" in table


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--forget-policy", "nmaed"), "no forget policy named 'nmaed'. Did you mean 'named'?"),
        (("--answerer", "chatt"), "no answerer named 'chatt'. Did you mean 'chat'?"),
        (("--answerer", "chat"), "--answerer chat needs --chat-url and --chat-model"),
        (("--chat-url", "http://host/v1"), "--chat-url and --chat-model belong together"),
    ],
)
def test_options_that_make_no_sense_say_so(data: Path, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in run(data, "reference", tmp_path / "run", *arguments, code=2).stderr
    assert not (tmp_path / "run").exists()


def test_options_of_one_task_are_none_of_the_other(tmp_path: Path) -> None:
    ours = invoke("bench", "membehave", "--adapter", "null", "--profile", "smoke", code=2)
    assert "--profile means nothing to membehave" in ours.stderr
    others = invoke("bench", "forgeteval", "--adapter", "null", "--forget-policy", "single", code=2)
    assert "--forget-policy means nothing to forgeteval" in others.stderr
    judged = invoke("score", tmp_path, "--judge", "chat", code=2)
    assert "--judge chat needs --judge-url and --judge-model" in judged.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shared": 12}, "column 'shared': 12, but"),
        ({"level": "high"}, "column 'level': 'high' contradicts shared"),
        ({"evidence": []}, "column 'evidence': none for"),
        ({"sessions": []}, "column 'evidence': the quote for"),
    ],
)
def test_a_row_that_contradicts_itself_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    def changed(item: Item) -> dict[str, Any]:
        return item.to_row() | (change if item.level == "low" else {})

    folder = write(tmp_path / "bad", changed)
    found = run(folder, "null", tmp_path / "run", code=2)
    assert said in found.stderr
    assert "low-00000-of-00001.parquet, row user-0001#" in found.stderr


def test_rows_that_are_no_triplet_are_named_before_anything_runs(tmp_path: Path) -> None:
    """Each row alone is well formed."""

    def strange(item: Item) -> dict[str, Any]:
        return item.to_row() | ({"triplet_id": f"{item.user}#9"} if item.level == "med" else {})

    def longer(item: Item) -> dict[str, Any]:
        row = item.to_row()
        if item.level == "high":
            row["sessions"].append({**row["sessions"][-1], "session_id": "one-more"})
        return row

    found = run(write(tmp_path / "strange", strange), "null", tmp_path / "run", code=2)
    assert "column 'triplet_id': user-0001#9 stands in its place at another level" in found.stderr
    found = run(write(tmp_path / "longer", longer), "null", tmp_path / "run", code=2)
    assert "column 'sessions': differ within the triplet" in found.stderr
    assert not (tmp_path / "run").exists()


def test_an_unknown_role_is_named(tmp_path: Path) -> None:
    def changed(item: Item) -> dict[str, Any]:
        row = item.to_row()
        row["sessions"][0]["messages"][1]["role"] = "system"
        return row

    found = run(write(tmp_path / "bad", changed), "null", tmp_path / "run", code=2)
    assert "unknown role 'system' (known: user, assistant)" in found.stderr


def test_a_control_of_this_task_is_among_the_names_that_may_have_been_meant(data: Path, tmp_path: Path) -> None:
    assert "Did you mean 'redactor'?" in run(data, "redactr", tmp_path / "run", code=2).stderr


def test_transcripts_of_another_dataset_are_refused_and_missing_ones_counted(data: Path, tmp_path: Path) -> None:
    run(data, "oracle", tmp_path / "run")
    path = tmp_path / "run" / "transcripts.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(reversed(lines[1:])))
    invoke("score", tmp_path / "run")
    assert summary(tmp_path / "run")["statuses"] == {"scored": 3 * TRIPLETS - 1, "n/a": 0, "error": 0, "unscored": 1}
    path.write_bytes(lines[0].replace(b'{"id":"user-0001#', b'{"id":"user-9999#'))
    assert "the dataset has no item 'user-9999#" in invoke("score", tmp_path / "run", code=2).stderr


def test_a_bench_does_it_all_and_goes_on_where_it_was(tmp_path: Path) -> None:
    asked = ("bench", "membehave", "--triplets", 1, "--embedder", "mine_membehave:bag", "--adapter", "reference")
    asked += ("--adapter", "oracle", "--forget-policy", "named", "--forget-policy", "single", "--out", tmp_path / "out")
    first = invoke(*asked)
    folders = {path.name for path in (tmp_path / "out").iterdir()}
    assert folders == {"data", "reference", "reference-single", "oracle"}
    assert "reference*" in first.stdout
    assert "reference, forget policy single: 3 items run, 3 in" in first.stderr
    again = invoke(*asked)
    assert "finished before, nothing to do" in again.stderr
    assert again.stdout == first.stdout
    as_json = json.loads(invoke(*asked, "--json").stdout)
    assert [entry["adapter"] for entry in as_json] == ["reference", "reference", "oracle"]


def test_one_adapter_is_run_in_the_folder_that_was_named(tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = invoke("bench", "membehave", "--triplets", 1, "--adapter", "oracle", "--out", out, "--json")
    assert json.loads(found.stdout) == summary(out)
    assert (out / "data" / "manifest.json").exists()
