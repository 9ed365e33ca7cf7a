"""A folder for modules of a user's, and the command that runs them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MEMORY = '''
class Plain:
    """The mandatory methods."""

    name = "plain"

    def reset(self):
        self.facts = []

    def inscribe(self, text):
        self.facts.append(text)
        return len(self.facts)

    def recall_texts(self, query, k=5):
        return self.facts[:k]
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, whose modules can be imported and are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("FORGET_EVAL_CACHE", str(tmp_path / "cache"))
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def module(folder: Path, name: str, code: str) -> None:
    (folder / f"{name}.py").write_text(code)


def forget_eval(folder: Path, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, for what only a process has: file descriptors, an exit."""
    environment = {**os.environ, "FORGET_EVAL_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "forget_eval", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, **options)
