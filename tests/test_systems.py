"""Every packaged system through the same checks (`conformance.py`), each in a process of its own, which is watched.

A system runs in the environment made for it (`forget-eval env create NAME`), else in this Python if it is installed
here, else its checks fail and say how to make one.
"""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from forget_eval import residue
from forget_eval.adapters.lookup import BUILT_IN, find
from forget_eval.isolation import environments
from forget_eval.packages import version

pytestmark = pytest.mark.systems

CONFORMANCE = Path(__file__).parent / "conformance.py"
WATCH = CONFORMANCE.with_name("conformance_watch.py")
SYSTEMS = ("lethe", "mem0", "mempalace", "langgraph", "llama-index", "qdrant", "chroma", "lancedb")
SERVERS = ("graphiti", "letta", "hipporag")
TARGETS = {name: BUILT_IN[name] for name in (*SYSTEMS, *SERVERS)}
NAMES = [*SYSTEMS, *(pytest.param(name, marks=pytest.mark.servers) for name in SERVERS)]
CONFORMANCE_SUITE = runpy.run_path(str(CONFORMANCE))
CHECKS = tuple(CONFORMANCE_SUITE["CHECKS"])
KINDS = {
    "lethe": {"supersede": "native", "release": "native", "purge": "native"},
    "mem0": {"supersede": "native", "release": "native", "purge": "native"},
    "mempalace": {"supersede": "native", "purge": "native"},
    "langgraph": {"supersede": "native", "release": "emulated", "purge": "native"},
    "llama-index": {"supersede": "native", "purge": "native"},
    "qdrant": {"supersede": "native", "release": "emulated", "purge": "native"},
    "chroma": {"supersede": "native", "release": "emulated", "purge": "native"},
    "lancedb": {"supersede": "native", "release": "emulated", "purge": "native"},
    "graphiti": {"supersede": "native", "release": "native", "purge": "native"},
    "hipporag": {"supersede": "emulated", "purge": "native"},
    "letta": {"supersede": "emulated", "purge": "native"},
}
LONGEST = 5400  # seconds: the slowest asks a server, which asks a database, 2,000 times and starts both four times

RESIDUE = {  # after a purge, after maintenance, and the file; Qdrant's answer is that of the SQLite below it
    "lethe": ("yes", None, "1.db"),
    "mem0": ("yes", None, "history.db"),  # the history of every memory, by design
    "mempalace": ("yes", "yes", "palace/chroma.sqlite3"),  # its repair keeps a copy of what it repaired
    "chroma": ("yes", "yes", "chroma.sqlite3"),  # its queue of writes
    "lancedb": ("yes", "no", "1/facts.lance/"),
    "graphiti": (
        "yes",
        "yes or unknown",
        "appendonlydir/appendonly.aof.1.incr.aof",
    ),  # a stream of queries
    "letta": ("yes", "yes", "0/data/pg_wal/"),  # PostgreSQL uses the segments of its log again as they are
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", NAMES)
def test_conforms(name: str, check: str) -> None:
    why_not = results(name)[check]
    assert why_not is None, why_not


@pytest.mark.parametrize("name", NAMES)
def test_declares(name: str) -> None:
    assert {op: str(kind) for op, kind in find(TARGETS[name]).operations.items()} == KINDS[name]


@pytest.mark.parametrize("name", NAMES)
def test_was_tried_with_the_version_that_is_pinned(name: str, root: Path) -> None:
    adapter = find(TARGETS[name])
    pins = (root / "eval" / "forget_eval" / "environments" / f"{name}.txt").read_text().splitlines()
    assert f"{adapter.distribution}=={adapter.tried}" in pins


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.servers] if name in SERVERS else []) for name in RESIDUE]
)
def test_what_a_purge_leaves_in_the_files(name: str) -> None:
    interpreter(name)
    before, after, file = RESIDUE[name]
    found = residue.measure(name, HashedTrigrams())
    assert str(found.before.answer) == before
    assert (found.after and str(found.after.answer)) in (after.split(" or ") if after else [None])
    assert found.before.found == found.purged == 3
    assert found.before.files[0].startswith(file)


def test_mempalace_says_what_it_refuses() -> None:
    code = (
        "import conformance; from forget_eval.adapters.mempalace import MempalaceMemory\n"
        "memory = MempalaceMemory(conformance.embed)\n"
        "try: memory.inscribe('  ')\n"
        "except RuntimeError as error: print(error)\n"
        "memory.close()"
    )
    with TemporaryDirectory() as folder:
        done = run("mempalace", ["-c", code], Path(folder))
    assert done.stdout.strip() == "mempalace: add_drawer: content must be a non-empty string", done.stderr


def test_mem0_says_what_it_refuses() -> None:
    code = (
        "import conformance; from forget_eval.adapters.mem0 import Mem0Memory\n"
        "memory = Mem0Memory(conformance.embed); memory.reset()\n"
        "try: memory.recall_texts(' ')\n"
        "except ValueError as error: print(error)\n"
        "memory.close()"
    )
    with TemporaryDirectory() as folder:
        done = run("mem0", ["-c", code], Path(folder))
    assert done.stdout.strip() == "Invalid query: cannot be empty or whitespace-only.", done.stderr


class HashedTrigrams:
    """The embedder of the conformance suite, with a name and a width."""

    name, dim = "trigrams", CONFORMANCE_SUITE["WIDTH"]

    def __call__(self, texts: Sequence[str]) -> Any:
        return CONFORMANCE_SUITE["embed"](texts)


@cache
def results(name: str) -> dict[str, str | None]:
    """What became of each check: None, or why a system does not pass it."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        done = run(name, [str(WATCH), TARGETS[name], str(report)], Path(folder))
        assert done.returncode == 0, done.stderr[-4000:]
        assert "Exception ignored" not in done.stderr, done.stderr[-4000:]
        found: dict[str, str | None] = json.loads(report.read_text())
    return found


def run(name: str, arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a system's Python with an empty home, an empty current folder and a TMPDIR, all below `folder`."""
    python = interpreter(name)
    for place in ("home", "here", "tmp"):
        (folder / place).mkdir()
    ours = [CONFORMANCE.parent, CONFORMANCE.parent.parent, CONFORMANCE.parent.parent / "eval"]
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": os.pathsep.join(map(str, ours)),
    }
    command = [python, *arguments]
    return subprocess.run(
        command, cwd=folder / "here", env=variables, capture_output=True, text=True, timeout=LONGEST, check=False
    )


def interpreter(name: str) -> str:
    """The Python that has the system's package."""
    environment = environments.find(name)
    if environment is not None and environment.state is environments.State.COMPLETE:
        return str(environment.interpreter)
    if version(find(TARGETS[name]).distribution) is None:
        pytest.fail(f"{name} is not installed: forget-eval env create {name}")
    return sys.executable
