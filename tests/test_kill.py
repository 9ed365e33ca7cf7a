"""A run that is killed, at any moment and any byte, goes on to the transcripts of a run that was not, times apart."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.forgeteval import generate
from forget_datasets.rows import Item
from forget_eval import adapters, bench, forgeteval, runner
from forget_eval.data import open_dataset
from forget_eval.membehave import bench as membehave
from forget_eval.membehave.replay import Replay
from forget_eval.membehave.systems import Settings, load
from forget_eval.transcripts import SHAPES, Transcript, Writer

Built = tuple[Path, dict[str, Any]]

STORE = '''
class Store:
    """Recalls what shares a word with the query; one ingest serves a triplet, by a snapshot."""

    name = "store"

    def reset(self):
        self.facts = {}

    def inscribe(self, text):
        self.facts[text] = set(text.lower().split())
        return len(self.facts)

    def recall_texts(self, query, k=5):
        asked = set(query.lower().split())
        return [fact for fact, words in self.facts.items() if words & asked][:k]

    def purge(self, query):
        return int(self.facts.pop(query, None) is not None)

    def snapshot(self):
        return dict(self.facts)

    def restore(self, state):
        self.facts = dict(state)
'''


def timeless(lines: Iterable[bytes]) -> list[Any]:
    return [_without_seconds(json.loads(line)) for line in lines]


def _without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_seconds(inner) for name, inner in value.items() if name != "seconds"}
    return [_without_seconds(inner) for inner in value] if isinstance(value, list) else value


# The command, killed --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Killed:
    """A run by the command that is killed again and again."""

    task: tuple[str, ...]
    folder: Path

    @property
    def transcripts(self) -> Path:
        return self.folder / "run" / "transcripts.jsonl"

    def begin(self, out: str = "run") -> subprocess.Popen[bytes]:
        call = [sys.executable, "-m", "forget_eval", "run", *self.task, "--out", out]
        return subprocess.Popen(call, cwd=self.folder, stderr=subprocess.DEVNULL)

    def unbroken(self) -> list[bytes]:
        assert self.begin("unbroken").wait() == 0
        return (self.folder / "unbroken" / "transcripts.jsonl").read_bytes().splitlines(keepends=True)

    def size(self) -> int:
        with suppress(FileNotFoundError):
            return self.transcripts.stat().st_size
        return -1

    def kill_at(self, place: int) -> bool:
        """Kills a run when its transcripts have so many bytes, and cuts them there if they have more.

        -1 stands for the moment when the folder appears. Returns whether the run was still going on.
        """
        process = self.begin()
        ready = (self.folder / "run").exists if place < 0 else lambda: self.size() >= place
        while process.poll() is None and not ready():
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.0003)
        process.kill()
        was_running = process.wait() < 0
        if self.size() > place >= 0:
            os.truncate(self.transcripts, place)
        return was_running


def kill(run: Killed, times: int, seed: int) -> None:
    whole = run.unbroken()
    places = random.Random(seed)
    killed, reached = int(run.kill_at(-1)), 0
    for _ in range(3 * times):
        if killed == times:
            break
        most = reached + max(1, (sum(map(len, whole)) - reached) // (times - killed))
        reached = places.randrange(reached, most + 1)
        killed += run.kill_at(reached)
    assert killed == times
    assert timeless(run.transcripts.read_bytes().splitlines(keepends=True)[:-1]) != timeless(whole)
    assert run.begin().wait() == 0
    assert timeless(run.transcripts.read_bytes().splitlines()) == timeless(whole)


def test_forgeteval_killed_25_times_is_as_if_it_was_not(tmp_path: Path) -> None:
    bench.build_data(tmp_path / "data", bench.Shape("en", 60, 4, seed=7))
    kill(Killed(("forgeteval", "--data", "data", "--config", "en", "--adapter", "keep-all"), tmp_path), 25, seed=1)


def test_membehave_killed_4_times_is_as_if_it_was_not(membehave_built: Built, tmp_path: Path) -> None:
    (tmp_path / "stores.py").write_text(STORE)
    kill(Killed(("membehave", "--data", str(membehave_built[0]), "--adapter", "stores:Store"), tmp_path), 4, seed=2)


# Cut at every byte ----------------------------------------------------------------------------------------------------


def resumed(path: Path, content: bytes, run: Callable[[Writer], object], task: str) -> list[Any]:
    path.write_bytes(content)
    with Writer(path, SHAPES[task]) as writer:
        run(writer)
    return timeless(path.read_bytes().splitlines())


def two_lines(whole: bytes) -> range:
    """Where the last two lines can be cut: before each of their bytes."""
    lines = whole.splitlines(keepends=True)
    return range(len(whole) - len(lines[-1]) - len(lines[-2]), len(whole))


def test_forgeteval_cut_at_every_byte_of_two_lines_is_completed(tmp_path: Path) -> None:
    cases, memory = list(generate(1, seed=7, distractors=0))[:3], adapters.load("keep-all")

    def run(writer: Writer) -> None:
        runner.run(cases, partial(forgeteval.replay, memory=memory), writer)

    path = tmp_path / "transcripts.jsonl"
    whole = resumed(path, b"", run, "forgeteval")
    content = path.read_bytes()
    assert len(two_lines(content)) > 500
    for cut in two_lines(content):
        assert resumed(path, content[:cut], run, "forgeteval") == whole


@dataclass(frozen=True)
class Row:
    item: Item

    @property
    def id(self) -> str:
        return self.item.item_id


@pytest.fixture
def items(membehave_built: Built) -> list[Row]:
    return list(map(Row, membehave.items(open_dataset(str(membehave_built[0]), "membehave", "default"))))


def player(name: str) -> Callable[[Row], Transcript]:
    """Plays items as a process that has just begun."""
    system = load(name, None, Settings())
    play = Replay(system.assistant, answerer=system.made["answerer"])
    return lambda row: play(row.item)


def test_membehave_cut_at_every_byte_of_two_lines_is_completed(items: list[Row], tmp_path: Path) -> None:
    def run(writer: Writer) -> None:
        runner.run(items[:3], player("oracle"), writer)

    path = tmp_path / "transcripts.jsonl"
    whole = resumed(path, b"", run, "membehave")
    content = path.read_bytes()
    for cut in two_lines(content):
        assert resumed(path, content[:cut], run, "membehave") == whole


def test_membehave_cut_within_a_triplet_is_completed_without_the_snapshot_of_before(
    items: list[Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kill_stores.py").write_text(STORE)
    monkeypatch.syspath_prepend(tmp_path)

    def run(writer: Writer) -> None:
        runner.run(items[:6], player("kill_stores:Store"), writer)

    path = tmp_path / "transcripts.jsonl"
    whole = resumed(path, b"", run, "membehave")
    content = path.read_bytes()
    places = random.Random(3)
    for cut in [places.randrange(len(content)) for _ in range(12)]:
        assert resumed(path, content[:cut], run, "membehave") == whole
