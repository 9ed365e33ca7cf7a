"""Two processes and one run folder: the second is refused, and the lock dies with the first however it dies."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from forget_datasets.errors import UserError
from forget_eval import bench, locks, runs

SLOW = '''
import os
import sys
import time


class Slow:
    """Says that it has begun, and then waits for a line of the pipe that the environment names."""

    name = "slow"

    def reset(self):
        self.facts = []
        if pipe := os.environ.get("WAIT"):
            print("begun", file=sys.stderr, flush=True)
            open(pipe).readline()

    def inscribe(self, text):
        self.facts.append(text)
        return len(self.facts)

    def recall_texts(self, query, k=5):
        return self.facts[:k]
'''
HOLDER = """
import os, subprocess, sys, time
from pathlib import Path
from forget_eval import locks

with locks.held(Path(sys.argv[1]), "a run"):
    if sys.argv[2] == "fork" and os.fork() == 0:
        print("held", flush=True)
        time.sleep(600)
    if sys.argv[2] == "subprocess":
        subprocess.Popen([sys.executable, "-c", "import time; print('held', flush=True); time.sleep(600)"])
    if sys.argv[2] == "alone":
        print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dataset, a system that waits, and the pipe on which it does."""
    monkeypatch.chdir(tmp_path)
    bench.build_data(tmp_path / "data", bench.Shape())
    (tmp_path / "slow_memory.py").write_text(SLOW)
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def command(*more: str) -> list[str]:
    chosen = ["--data", "data", "--config", "handmade", "--adapter", "slow_memory:Slow", "--out", "run", *more]
    return [sys.executable, "-m", "forget_eval", "run", "forgeteval", *chosen]


@contextmanager
def running() -> Iterator[subprocess.Popen[str]]:
    """A run that has begun and waits; it is killed in the end."""
    environment = {**os.environ, "WAIT": "pipe"}
    process = subprocess.Popen(command(), stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    try:
        assert "begun\n" in iter(process.stderr.readline, "")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def second(*more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*more), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("more", [(), ("--force",)])
def test_a_second_process_is_refused_and_spoils_nothing(place: Path, more: tuple[str, ...]) -> None:
    with running():
        manifest = (place / "run" / "manifest.json").read_bytes()
        refused = second(*more)
        assert refused.returncode == 2
        assert "run is in use: a run is going on there in another process" in refused.stderr
        assert "Traceback" not in refused.stderr
        assert (place / "run" / "manifest.json").read_bytes() == manifest
        assert (place / "run" / "transcripts.jsonl").read_bytes() == b""


def test_a_run_that_was_killed_lets_go_and_goes_on(place: Path) -> None:
    with running() as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert second().returncode == 0
    lines = (place / "run" / "transcripts.jsonl").read_text().splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert len(ids) == len(set(ids)) == 15
    assert {path.name for path in (place / "run").iterdir()} == {"manifest.json", "transcripts.jsonl"}


def test_another_folder_beside_it_is_free(place: Path) -> None:
    with running():
        assert second("--out", "other").returncode == 0


@pytest.mark.parametrize("child", ["alone", "fork", "subprocess"])
def test_no_child_holds_the_lock_of_a_process_that_was_killed(tmp_path: Path, child: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), child],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that its children can be ended with it
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(UserError, match="in use"), locks.held(tmp_path, "a run"):
            pass
        process.kill()
        process.wait()
        with locks.held(tmp_path, "a run"):
            pass
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()


def test_a_block_that_has_ended_holds_nothing(tmp_path: Path) -> None:
    with locks.held(tmp_path, "a run"):
        pass
    with locks.held(tmp_path, "a run"), pytest.raises(UserError, match="in use"), locks.held(tmp_path, "a run"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused_while_a_run_begins_leaves_the_folder_free(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(UserError, match="not the manifest of a run"), runs.opened(tmp_path, {"task": "forgeteval"}):
        pass
    with locks.held(tmp_path, "a run"):
        pass
