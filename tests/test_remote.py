"""Datasets and runs behind fsspec URLs: built, uploaded, pulled, and never valid by halves."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from forget_datasets import load, remote
from forget_datasets.build import build_forgeteval, build_membehave
from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.forgeteval import handmade
from forget_datasets.staging import Outcome
from forget_eval import cli
from forget_eval import remote as remote_runs
from forget_eval.data import open_dataset

Command = Callable[..., tuple[int, str, str]]
Tree = Callable[[Path], dict[str, bytes]]
HANDMADE = "data/handmade/test-00000-of-00001.parquet"


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where nothing is yet: in memory, and on the disk."""
    MemoryFileSystem.store.clear()
    yield {"memory": "memory://bucket/ds", "file": f"file://{tmp_path / 'remote' / 'ds'}"}[request.param]
    MemoryFileSystem.store.clear()


def there(url: str) -> dict[str, bytes]:
    """The files behind a URL, by their path."""
    files, root = fsspec.core.url_to_fs(url)
    names = files.find(root) if files.exists(root) else []
    return {name[len(root) :].lstrip("/"): files.cat_file(name) for name in names}


def put(url: str, name: str, content: bytes) -> None:
    files, root = fsspec.core.url_to_fs(url)
    files.makedirs(f"{root}/{name}".rpartition("/")[0], exist_ok=True)
    files.pipe_file(f"{root}/{name}", content)


def remove(url: str, name: str) -> None:
    files, root = fsspec.core.url_to_fs(url)
    files.rm_file(f"{root}/{name}")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s3://bucket/x", True),
        ("memory://x", True),
        ("simplecache::gs://bucket/x", True),
        ("owner/name@v1.0.0", False),
        ("./data", False),
        ("C:\\data", False),
        ("", False),
    ],
)
def test_what_is_a_url(text: str, found: bool) -> None:
    assert remote.is_url(text) is found


def test_a_build_at_a_url_is_that_in_a_folder(url: str, tree: Tree, tmp_path: Path) -> None:
    outcomes: list[Outcome] = []
    build_forgeteval(tmp_path / "local", ("zh",), n_per_family=5)
    manifest = build_forgeteval(url, ("zh",), n_per_family=5, settled=outcomes.append)
    assert there(url) == tree(tmp_path / "local")
    assert json.loads(there(url)["manifest.json"]) == manifest
    build_forgeteval(url, ("zh",), n_per_family=5, settled=outcomes.append)
    assert outcomes == [Outcome.NEW, Outcome.UNCHANGED]


def test_membehave_is_built_at_a_url_too(url: str, membehave_built: tuple[Path, Any], tree: Tree) -> None:
    build_membehave(url, 3, seed=7)
    assert there(url) == tree(membehave_built[0])


def test_another_dataset_is_replaced_when_told_so_and_nothing_of_it_stays(url: str, tree: Tree, tmp_path: Path) -> None:
    build_forgeteval(url, ("zh",), n_per_family=5)
    before = there(url)
    with pytest.raises(UserError) as refused:
        build_forgeteval(url, ())
    assert str(refused.value).startswith(f"{url} holds a dataset with langs ['zh'], not []")
    assert there(url) == before
    outcomes: list[Outcome] = []
    build_forgeteval(url, (), force=True, settled=outcomes.append)
    build_forgeteval(tmp_path / "local", ())
    assert outcomes == [Outcome.REPLACED]
    assert there(url) == tree(tmp_path / "local")


def test_what_is_none_of_ours_is_left_alone(url: str) -> None:
    build_forgeteval(url, ())
    put(url, "notes.txt", b"mine")
    before = there(url)
    with pytest.raises(UserError) as refused:
        build_forgeteval(url, (), force=True)
    assert (
        str(refused.value)
        == f"{url} holds 'notes.txt', which is none of ours, and is left alone; choose another folder"
    )
    assert there(url) == before


def test_releases_are_carried_over(url: str) -> None:
    build_forgeteval(url, ())
    put(url, "RELEASES.md", b"# Releases of forgeteval\n")
    put(url, HANDMADE, b"damaged")
    build_forgeteval(url, ())
    assert there(url)["RELEASES.md"] == b"# Releases of forgeteval\n"
    assert there(url)[HANDMADE].startswith(b"PAR1")


def break_off(monkeypatch: pytest.MonkeyPatch, url: str, at: str, error: BaseException) -> None:
    """Lets the place fail when it is to take a file whose name holds `at`."""
    files = type(fsspec.core.url_to_fs(url)[0])
    put_file = files.put_file

    def failing(self: Any, here: str, target: str, *more: Any, **options: Any) -> None:
        if at in target:
            raise error
        put_file(self, here, target, *more, **options)

    monkeypatch.setattr(files, "put_file", failing)


@pytest.mark.parametrize("at", ["handmade", "README.md", "manifest.json"])
@pytest.mark.parametrize("old", [False, True])
def test_an_upload_that_is_cut_off_leaves_no_dataset(
    url: str, at: str, old: bool, command: Command, tree: Tree, tmp_path: Path
) -> None:
    if old:
        build_forgeteval(url, ("zh",), n_per_family=5)
    with pytest.MonkeyPatch.context() as broken:
        break_off(broken, url, at, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            build_forgeteval(url, (), force=True)
    assert "manifest.json" not in there(url)
    code, stdout, stderr = command("validate", url)
    assert (code, stdout) == (2, "")
    assert stderr.startswith(f"forget-datasets: {url}: there is ")
    with pytest.raises(UserError, match="there is "):
        open_dataset(url, "forgeteval")
    build_forgeteval(url, (), force=True)
    build_forgeteval(tmp_path / "local", ())
    assert there(url) == tree(tmp_path / "local")


def test_a_place_that_refuses_is_the_fault_of_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_off(monkeypatch, url, "handmade", RuntimeError("no credentials"))
    with pytest.raises(EnvironmentFault) as fault:
        build_forgeteval(url, ())
    assert str(fault.value).startswith(f"{url}: no credentials. What is there now is not whole")


def test_the_commands_take_urls(url: str, command: Command) -> None:
    code, stdout, _ = command("build", "forgeteval", "--lang", "zh", "--n-per-family", 5, "--out", url)
    assert (code, stdout.split(",")[0]) == (0, f"{url}: built")
    code, stdout, _ = command("validate", url)
    assert (code, stdout) == (0, f"{url}: forgeteval, 40 rows in 2 configs: valid\n")
    content = bytearray(there(url)[HANDMADE])
    put(url, HANDMADE, bytes(content[:-50]))
    code, _, stderr = command("validate", url)
    assert (code, stderr.startswith(f"forget-datasets: {url}/{HANDMADE}: not a whole Parquet file")) == (1, True)


def test_a_dataset_is_opened_at_a_url(url: str) -> None:
    build_forgeteval(url, ("zh",), n_per_family=5)
    opened = open_dataset(url, "forgeteval", "handmade")
    assert (opened.source, opened.revision, opened.n) == (url, None, 15)
    assert list(opened.cases()) == handmade.load()
    with pytest.raises(UserError, match="Did you mean 'handmade'"):
        open_dataset(url, "forgeteval", "handmad")


def test_rows_of_other_configs_are_not_pulled(url: str) -> None:
    build_forgeteval(url, ("zh",), n_per_family=5)
    folder = remote.pulled_dataset(url, "zh")
    assert [path.name for path in (folder / "data").iterdir()] == ["zh"]
    assert (folder / "README.md").is_file()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("memory://nowhere", "memory://nowhere: there is nothing."),
        ("nope://x/y", "nope://x/y: Protocol not known: nope."),
        ("s3://bucket/x", "s3://bucket/x: Install s3fs to access S3, with pip."),
    ],
)
def test_urls_of_nothing(wrong: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        open_dataset(wrong, "forgeteval")
    assert str(raised.value) == message


def test_a_url_of_a_file_is_said(url: str) -> None:
    build_forgeteval(url, ())
    with pytest.raises(UserError, match=r"manifest\.json is a file; name the folder"):
        open_dataset(f"{url}/manifest.json", "forgeteval")


def test_rows_are_loaded_from_a_url(url: str) -> None:
    build_forgeteval(url, ())
    assert load(url, "handmade") == handmade.load()
    with pytest.raises(UserError, match=r"is a URL, which has no revision 'v1\.0\.0'"):
        load(url, revision="v1.0.0")


def test_a_run_knows_the_url_of_its_dataset(url: str, tmp_path: Path) -> None:
    build_forgeteval(url, ())
    arguments = ["run", "forgeteval", "--data", url, "--config", "handmade", "--adapter", "oracle"]
    cli.main.main([*arguments, "--out", str(tmp_path / "run")], standalone_mode=False)
    assert json.loads((tmp_path / "run/manifest.json").read_bytes())["dataset"]["url"] == url
    cli.main.main(["score", str(tmp_path / "run")], standalone_mode=False)
    assert (tmp_path / "run/summary.json").is_file()


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Path:
    """A scored run."""
    return Path(shutil.copytree(root / "tests/golden/versions/v1/forgeteval/run", tmp_path / "run"))


def test_a_run_goes_up_and_comes_back(url: str, run: Path, tree: Tree) -> None:
    remote_runs.upload(run, url)
    assert there(url) == tree(run)
    assert tree(remote_runs.pulled(url)) == tree(run)


def test_scores_that_came_later_are_added(url: str, run: Path, tree: Tree) -> None:
    (run / "summary.json").rename(run.parent / "summary.json")
    remote_runs.upload(run, url)
    (run.parent / "summary.json").rename(run / "summary.json")
    remote_runs.upload(run, url)
    assert there(url) == tree(run)


def test_repeats_go_together(url: str, run: Path, tree: Tree, tmp_path: Path) -> None:
    for number in (1, 2):
        shutil.copytree(run, tmp_path / f"all/repeat-{number}")
    remote_runs.upload(tmp_path / "all", url)
    assert there(url) == tree(tmp_path / "all")
    assert tree(remote_runs.pulled(url)) == tree(tmp_path / "all")


def test_an_upload_of_a_run_that_is_cut_off_leaves_none(url: str, run: Path, tree: Tree) -> None:
    with pytest.MonkeyPatch.context() as broken:
        break_off(broken, url, "transcripts", OSError(5, "Input/output error"))
        with pytest.raises(EnvironmentFault, match="Input/output error"):
            remote_runs.upload(run, url)
    assert "manifest.json" not in there(url)
    with pytest.raises(UserError, match="an upload was cut off"):
        remote_runs.pulled(url)
    remote_runs.upload(run, url)
    assert there(url) == tree(run)


@pytest.mark.parametrize("name", ["manifest.json", "notes.txt"])
def test_a_run_replaces_nothing_else(url: str, name: str, run: Path) -> None:
    put(url, name, b"{}")
    with pytest.raises(UserError, match=f"holds '{name}', which is not of the run"):
        remote_runs.upload(run, url)
    assert there(url) == {name: b"{}"}


def test_what_is_no_run_is_not_uploaded(url: str, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="is no run"):
        remote_runs.upload(tmp_path / "none", url)
    assert there(url) == {}
