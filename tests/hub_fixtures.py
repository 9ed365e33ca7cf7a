"""Fixtures of the tests that talk to the double of the Hub with the real client."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import constants, file_download
from huggingface_hub.utils import _http, disable_progress_bars, enable_progress_bars

from forget_datasets.hub import faults
from tests.hub_double import Hub, Repo, running

CANARY = "hf_canary_that_nobody_may_read"

Built = tuple[Path, dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The double, which the client takes for the Hub: with a token, a cache of the test's own, and no patience."""
    with running(Hub(token=CANARY)) as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.endpoint)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.split("/{repo_id}")[1]
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{served.endpoint}/{{repo_id}}{template}")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", CANARY)
        for module in (_http, file_download, faults):  # the client, and we, wait between its retries
            monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda seconds: None))
        disable_progress_bars()
        yield served
        enable_progress_bars()
        assert served.unknown == []


@pytest.fixture
def forget(command: Command) -> Command:
    """The command `forget-datasets`, which must never print the token."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code, out, err = command(*arguments)
        assert CANARY not in out + err
        return code, out, err

    return run


@pytest.fixture
def publish(forget: Command) -> Callable[..., tuple[int, str, str]]:
    """Publishes a folder, which then lists the release, as acme/forget 1.0.0 unless told otherwise."""

    def run(folder: Path, *options: object, repo: str = "acme/forget", version: str = "1.0.0") -> tuple[int, str, str]:
        return forget("publish", folder, "--repo-id", repo, "--version", version, "--yes", *options)

    return run


@pytest.fixture
def forgeteval_folder(forgeteval_built: Built, tmp_path: Path) -> Path:
    """ForgetEval in two languages, in a folder of the test's own."""
    return Path(shutil.copytree(forgeteval_built[0], tmp_path / "forgeteval"))


@pytest.fixture
def membehave_folder(membehave_built: Built, tmp_path: Path) -> Path:
    """MemBehave, in a folder of the test's own."""
    return Path(shutil.copytree(membehave_built[0], tmp_path / "membehave"))


@pytest.fixture
def elsewhere(hub: Hub, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs code in a process whose Hub is the double: what is set before the client is imported counts there."""

    def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {
            "HF_ENDPOINT": hub.endpoint, "HF_TOKEN": CANARY, "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            env=os.environ | settings | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert CANARY not in done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def there(hub: Hub) -> Repo:
    """A repository that holds a card alone."""
    return hub.create("acme/forget", {"README.md": b"# Mine\n"})


def commits(hub: Hub) -> int:
    return sum(request.startswith("POST /api/datasets") and "/commit/" in request for request in hub.requests)
