"""What is not published, and what is said then."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hub_double import Fault, Hub, Repo
from tests.hub_fixtures import commits

pytest_plugins = ("tests.hub_fixtures",)

Built = tuple[Path, dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]

SHARD = "data/handmade/test-00000-of-00001.parquet"
FILES = {".gitattributes", "README.md", "RELEASES.md", "croissant.json", "manifest.json", SHARD}
AGAIN = "Run the same command again: it compares what is there and tags it, without another commit."


def test_a_public_repository_is_not_taken_for_a_private_one(
    hub: Hub, publish: Command, handmade_folder: Path, there: Repo
) -> None:
    code, _, err = publish(handmade_folder, "--private")
    assert (code, commits(hub)) == (2, 0)
    assert "acme/forget is public" in err


def test_without_a_token_nothing_is_tried(
    hub: Hub, publish: Command, handmade_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    code, _, err = publish(handmade_folder)
    assert (code, hub.repos) == (2, {})
    assert "log in with `hf auth login`, or set HF_TOKEN. Nothing was done." in err


def test_a_token_that_an_answer_repeats_is_not_printed(hub: Hub, publish: Command, handmade_folder: Path) -> None:
    hub.faults.append(Fault("POST .*/repos/create", status=400, says=f"bad token {hub.token}"))
    code, _, err = publish(handmade_folder)
    assert code == 1
    assert "bad token <token>" in err


def test_offline_is_said(hub: Hub, publish: Command, handmade_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    code, _, err = publish(handmade_folder)
    assert (code, hub.requests) == (1, [])
    assert "HF_HUB_OFFLINE" in err


def test_a_hub_that_is_not_there_is_said(
    hub: Hub, publish: Command, handmade_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    code, _, err = publish(handmade_folder)
    assert code == 1
    assert err.startswith("forget-datasets: reading acme/forget: ")


@pytest.mark.parametrize("repo", ["forget", "a/b/c", "acme/", "acme/x@", "acme/x y", "../x"])
def test_a_name_that_is_none_is_refused(hub: Hub, publish: Command, handmade_folder: Path, repo: str) -> None:
    code, _, err = publish(handmade_folder, repo=repo)
    assert (code, hub.requests) == (2, [])
    assert f"'{repo}' names no dataset on the Hub" in err


def test_another_dataset_is_not_overwritten(
    hub: Hub, publish: Command, handmade_folder: Path, membehave_folder: Path
) -> None:
    publish(handmade_folder)
    code, _, err = publish(membehave_folder, version="2.0.0")
    assert (code, commits(hub)) == (2, 1)
    assert "lists releases of forgeteval, and this is membehave" in err


def test_an_invalid_dataset_is_not_published(hub: Hub, publish: Command, handmade_folder: Path) -> None:
    (handmade_folder / "README.md").unlink()
    code, _, err = publish(handmade_folder)
    assert (code, hub.repos) == (1, {})
    assert "README.md: is missing" in err
