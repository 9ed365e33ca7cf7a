"""One rule for every command of `forget-datasets`: a finding about the data is 1, bad usage is 2."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub_double import Hub, Repo

pytest_plugins = ("tests.hub_fixtures",)

Command = Callable[..., tuple[int, str, str]]

SHARD = "data/handmade/test-00000-of-00001.parquet"


@pytest.fixture
def published(hub: Hub, publish: Command, handmade_folder: Path) -> Repo:
    """The hand-made cases as acme/forget 1.0.0, and in `out`, the current folder's."""
    assert publish(handmade_folder)[0] == 0
    return hub.repos["acme/forget"]


def less(parquet: bytes) -> bytes:
    """The same table without its last row."""
    from io import BytesIO

    import pyarrow.parquet as pq

    sink = BytesIO()
    pq.write_table(pq.read_table(BytesIO(parquet)).slice(0, 14), sink)
    return sink.getvalue()


def other_hash(manifest: bytes) -> bytes:
    found = json.loads(manifest)
    found["configs"]["handmade"]["content_hash"] = "0" * 64
    return json.dumps(found).encode()


DAMAGE = {
    "a row is gone": (SHARD, less),
    "a file is cut": (SHARD, lambda parquet: parquet[: len(parquet) // 2]),
    "another hash is stated": ("manifest.json", other_hash),
    "the manifest is no JSON": ("manifest.json", lambda manifest: manifest[:-9]),
    "the manifest lacks its configs": ("manifest.json", lambda manifest: b'{"dataset": "forgeteval"}'),
    "the table of releases lists nothing": ("RELEASES.md", lambda table: b"# Releases of forgeteval\n"),
    "the table of releases is none": ("RELEASES.md", lambda table: b"\xff"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_verify_exits_with_1_for_data_that_is_not_what_it_says(forget: Command, published: Repo, damage: str) -> None:
    path, change = DAMAGE[damage]
    published.tags["v1.0.0"] = published.commit({**published.files, path: change(published.files[path])})
    code, out, err = forget("verify", "acme/forget@v1.0.0")
    assert (code, out) == (1, ""), err
    assert err.startswith("forget-datasets: ")


@pytest.mark.parametrize("damage", [name for name in DAMAGE if "releases" not in name])
def test_validate_release_and_publish_do_so_too(
    hub: Hub, forget: Command, publish: Command, handmade_folder: Path, damage: str
) -> None:
    path, change = DAMAGE[damage]
    (handmade_folder / path).write_bytes(change((handmade_folder / path).read_bytes()))
    assert forget("validate", handmade_folder)[0] == 1
    assert forget("release", handmade_folder, "--version", "1.0.0")[0] == 1
    assert publish(handmade_folder)[0] == 1
    assert hub.repos == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "acme/forget@v2.0.0"),
        ("verify", "acme/none@v1.0.0"),
        ("verify", "acme/forget"),
        ("verify", "acme/notes@v1.0.0"),
        ("verify",),
        ("verify", "acme/forget@v1.0.0", "--fast"),
        ("verfy", "acme/forget@v1.0.0"),
        ("validate", "nowhere"),
        ("validate", "empty"),
        ("release", "empty", "--version", "1.0.0"),
        ("release", "out", "--version", "one"),
        ("publish", "nowhere", "--repo-id", "acme/forget", "--version", "1.0.0"),
    ],
    ids=" ".join,
)
def test_a_command_that_cannot_be_meant_exits_with_2(
    hub: Hub,
    forget: Command,
    published: Repo,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    notes = hub.create("acme/notes", {"README.md": b"# Notes\n"})
    notes.tags["v1.0.0"] = notes.head
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert forget(*arguments)[:2] == (2, "")
