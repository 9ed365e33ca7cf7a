"""Loading and verifying releases: pinned, compared with their hash, from the cache when there is no network."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import forget_datasets
from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.forgeteval import handmade
from forget_datasets.hub.pull import pull
from forget_datasets.hub.reference import Reference, is_reference, parse
from forget_datasets.manifest import read
from forget_datasets.rows import Item
from tests.hub_double import Hub, Repo

pytest_plugins = ("tests.hub_fixtures",)

Command = Callable[..., tuple[int, str, str]]
Elsewhere = Callable[..., subprocess.CompletedProcess[str]]

SHARD = "data/handmade/test-00000-of-00001.parquet"


@pytest.fixture
def published(hub: Hub, publish: Command, handmade_folder: Path) -> Repo:
    """The hand-made cases as acme/forget 1.0.0; what the test asks for from then on is what `hub.requests` holds."""
    assert publish(handmade_folder)[0] == 0
    hub.requests.clear()
    return hub.repos["acme/forget"]


def test_cases_come_as_objects_or_as_rows(published: Repo) -> None:
    cases = handmade.load()
    assert forget_datasets.load("acme/forget", "handmade", revision="v1.0.0") == cases
    assert forget_datasets.load("acme/forget@v1.0.0", "handmade", split="test") == cases
    assert forget_datasets.load("acme/forget@v1.0.0", as_rows=True) == [case.to_row() for case in cases]


def test_items_come_as_objects(hub: Hub, publish: Command, membehave_folder: Path) -> None:
    assert publish(membehave_folder)[0] == 0
    hub.requests.clear()
    high = forget_datasets.load("acme/forget", "extended", split="high", revision="v1.0.0")
    assert [(type(item), item.level) for item in high] == [(Item, "high")] * 3
    everything = forget_datasets.load(str(membehave_folder), "extended")
    assert [item.level for item in everything] == ["low"] * 3 + ["med"] * 3 + ["high"] * 3
    assert everything[6:] == high
    assert not any("data/default" in request for request in hub.requests)  # of one config, that one is fetched


def test_a_loaded_release_is_pinned_and_cached(hub: Hub, published: Repo) -> None:
    forget_datasets.load("acme/forget", revision="v1.0.0")
    published.commit({**published.files, SHARD: b"moved on"})
    hub.requests.clear()
    assert len(forget_datasets.load("acme/forget", revision="v1.0.0")) == 15
    assert hub.requests == ["GET /api/datasets/acme/forget/revision/v1.0.0"]


LOAD = 'import forget_datasets; print(len(forget_datasets.load("acme/forget", "handmade", revision="v1.0.0")))'


def test_offline_works_after_the_first_load(published: Repo, hub: Hub, elsewhere: Elsewhere) -> None:
    refused = elsewhere(LOAD, HF_HUB_OFFLINE="1")
    assert "EnvironmentFault: acme/forget@v1.0.0 is not whole in the local cache" in refused.stderr
    assert elsewhere(LOAD).stdout == "15\n"
    hub.requests.clear()
    for environment in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
        done = elsewhere(LOAD, **environment)
        assert (done.stdout, done.returncode) == ("15\n", 0), done.stderr
    assert hub.requests == []


def test_load_dataset_reads_a_release_streaming_or_not(
    hub: Hub, publish: Command, forgeteval_folder: Path, elsewhere: Elsewhere
) -> None:
    assert publish(forgeteval_folder)[0] == 0
    hub.repos["acme/forget"].commit({"README.md": b"# gone\n"})
    done = elsewhere(
        "import json; from datasets import load_dataset; from forget_datasets.rows import content_hash\n"
        "found = {}\n"
        "for streaming in (False, True):\n"
        "    rows = load_dataset('acme/forget', 'zh', split='test', revision='v1.0.0', streaming=streaming)\n"
        "    found[str(streaming)] = content_hash(rows)\n"
        "print(json.dumps(found))"
    )
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout).values()) == {read(forgeteval_folder)["configs"]["zh"]["content_hash"]}


def test_a_release_has_to_be_named(published: Repo) -> None:
    with pytest.raises(UserError, match=r"such as revision='v1\.0\.0'"):
        forget_datasets.load("acme/forget", "handmade")
    with pytest.raises(UserError, match=r"has no revision 'v2.0.0'. It has v1.0.0."):
        forget_datasets.load("acme/forget", "handmade", revision="v2.0.0")
    with pytest.raises(UserError, match="choose one"):
        forget_datasets.load("acme/forget@v1.0.0", "handmade", revision="v2.0.0")
    assert len(forget_datasets.load("acme/forget", "handmade", revision=published.head)) == 15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"config": "handmad"}, "no config named 'handmad'. Did you mean 'handmade'?"),
        ({"split": "tset"}, "no split named 'tset'. Did you mean 'test'?"),
    ],
)
def test_an_unknown_name_is_said(published: Repo, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(UserError) as error:
        forget_datasets.load("acme/forget", revision="v1.0.0", **arguments)
    assert str(error.value) == message


def test_a_gated_repository_needs_a_token(
    hub: Hub, published: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    published.gated = "auto"
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(UserError) as error:
        forget_datasets.load("acme/forget", revision="v1.0.0")
    assert str(error.value) == (
        f"acme/forget is gated: ask for access at {hub.endpoint}/datasets/acme/forget, then log in with "
        "`hf auth login`, or set HF_TOKEN."
    )
    monkeypatch.setenv("HF_TOKEN", hub.token)
    assert len(forget_datasets.load("acme/forget", revision="v1.0.0")) == 15


def test_a_private_repository_or_none_is_said(
    hub: Hub, published: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    published.private = True
    assert len(forget_datasets.load("acme/forget", revision="v1.0.0")) == 15
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody_else")
    with pytest.raises(UserError, match="no dataset acme/forget on the Hub, or a private one"):
        pull(Reference("acme/forget", "v1.0.0"), into=tmp_path / "fresh")
    with pytest.raises(UserError, match="no dataset acme/none on the Hub"):
        forget_datasets.load("acme/none", revision="v1.0.0")


def test_a_hub_that_does_not_answer_is_no_fault_of_the_user(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(EnvironmentFault, match=r"fetching acme/forget@v1\.0\.0: "):
        forget_datasets.load("acme/forget", revision="v1.0.0")


def test_a_renamed_repository_loads_under_its_old_name(hub: Hub, published: Repo) -> None:
    hub.renamed["acme/old"] = "acme/forget"
    assert len(forget_datasets.load("acme/old", revision="v1.0.0")) == 15


def test_rows_that_are_not_the_releases_are_refused(hub: Hub, published: Repo) -> None:
    manifest = json.loads(published.files["manifest.json"])
    manifest["configs"]["handmade"]["splits"]["test"]["content_hash"] = "0" * 64
    published.tags["v1.0.0"] = published.commit({**published.files, "manifest.json": json.dumps(manifest).encode()})
    with pytest.raises(UserError, match="the rows of handmade/test are not those that were built"):
        forget_datasets.load("acme/forget", revision="v1.0.0")
    manifest["configs"]["handmade"]["content_hash"] = "0" * 64
    published.tags["v1.0.0"] = published.commit({**published.files, "manifest.json": json.dumps(manifest).encode()})
    with pytest.raises(UserError, match=r"acme/forget@v1\.0\.0 is not the release 1\.0\.0"):
        forget_datasets.load("acme/forget", revision="v1.0.0")


def test_verify_goes_over_every_row(forget: Command, published: Repo) -> None:
    code, out, _ = forget("verify", "acme/forget@v1.0.0")
    assert code == 0
    assert out.startswith(f"acme/forget@v1.0.0: 15 rows at {published.head}, content hash ")
    assert out.endswith(", as released\n")


@pytest.mark.parametrize("reference", ["acme/forget", "acme/forget@main"])
def test_verify_wants_a_release(forget: Command, published: Repo, reference: str) -> None:
    code, _, err = forget("verify", reference)
    assert (code, err) == (2, f"forget-datasets: '{reference}' names no release: write acme/forget@v1.0.0\n")


def test_a_moved_tag_is_caught_by_the_table_on_main(
    hub: Hub, forget: Command, published: Repo, publish: Command, forgeteval_folder: Path
) -> None:
    main = dict(published.files)
    assert publish(forgeteval_folder, repo="acme/other")[0] == 0
    published.tags["v1.0.0"] = published.commit(dict(hub.repos["acme/other"].files))
    published.commit(main)
    code, _, err = forget("verify", "acme/forget@v1.0.0")
    assert code == 1
    assert "acme/forget@v1.0.0 was moved" in err


@pytest.mark.parametrize("row_only", [True, False], ids=["no row", "no table"])
def test_a_moved_tag_is_caught_where_main_no_longer_lists_it(forget: Command, published: Repo, row_only: bool) -> None:
    files = dict(published.files)
    table = files.pop("RELEASES.md")
    published.commit({**files, "RELEASES.md": without_rows(table)} if row_only else files)
    code, _, err = forget("verify", "acme/forget@v1.0.0")
    assert code == 1
    assert "on main 1.0.0 is not listed" in err


def test_that_main_cannot_be_looked_at_is_said(
    forget: Command, published: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert forget("verify", "acme/forget@v1.0.0")[0] == 0
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    code, _, err = forget("verify", "acme/forget@v1.0.0")
    assert code == 0
    assert "forget-datasets: warning: the list of releases on main was not looked at" in err


def without_rows(table: bytes) -> bytes:
    return b"\n".join(line for line in table.split(b"\n") if b"1.0.0" not in line)


def test_references_are_read() -> None:
    assert parse("acme/forget@v1.0.0") == Reference("acme/forget", "v1.0.0")
    assert parse("acme/forget", "main") == Reference("acme/forget", "main")
    assert parse("a.b/c-d_1@feature/x").revision == "feature/x"
    assert (parse("a/b@v1.2.3").version, parse("a/b@v1.2").version, parse("a/b").version) == ("1.2.3", None, None)
    assert [text for text in ("a/b", "a/b@v1", "a", "a/b/c", "./a", "~/a", "/a/b") if is_reference(text)] == [
        "a/b",
        "a/b@v1",
    ]
