"""Processes with Graphiti's adapter in them, in its environment, and their databases: for `test_graphiti.py`."""

import json
import os
import runpy
import select
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from forget_eval import adapters
from forget_eval.isolation import environments
from forget_eval.isolation.process import Limits
from forget_eval.isolation.proxy import WorkerMemory

TARGET = "forget_eval.adapters.graphiti:GraphitiMemory"
LONGEST = 300  # seconds
embed = runpy.run_path(str(Path(__file__).with_name("conformance.py")))["embed"]

BEGIN = """
import os, signal
from conformance import embed
from forget_eval.adapters.graphiti import GraphitiMemory
memory = GraphitiMemory(embed)
def info(): return memory._wait(memory._database.connection.info())
database = info()["process_id"]
JOB, NEW, CAT = "The user works at Stripe.", "The user works at Anthropic.", "Miso is a grey cat."
"""


def interpreter() -> list[str]:
    """The Python that has Graphiti."""
    environment = environments.find("graphiti")
    if environment is None or environment.state is not environments.State.COMPLETE:
        pytest.fail("graphiti is not installed: forget-eval env create graphiti")
    return environment.command


def worker() -> WorkerMemory:
    """The adapter in a worker with that Python."""
    return WorkerMemory(TARGET, interpreter(), embed, Limits(), (adapters.MANDATORY,), {})


class Killing:
    """A memory whose database is killed in the second case, between reset and the first fact."""

    def __init__(self, memory: Any, watch: Callable[[], int]) -> None:
        self.name = memory.name
        self._memory, self._watch, self._cases = memory, watch, 0

    def reset(self) -> None:
        self._memory.reset()
        self._cases += 1
        if self._cases == 2:
            database = self._watch()
            signal.pidfd_send_signal(database, signal.SIGKILL)
            assert has_ended(database)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)


class running:
    """A process with a memory in it; with `full_disk`, its home and TMPDIR are on a file system without room."""

    def __init__(self, code: str, full_disk: bool = False) -> None:
        self._folder = TemporaryDirectory(ignore_cleanup_errors=True)
        root = Path(__file__).parent.parent
        ours = [Path(__file__).parent, root, root / "eval"]
        paths = "import sys\nsys.path[:0] = " + repr(list(map(str, ours)))
        names = ("HOME", "TMPDIR")
        self._process = subprocess.Popen(
            [
                *(on_a_full_disk(self._folder.name) if full_disk else []),
                *interpreter(),
                "-c",
                f"{paths}\n{BEGIN}\n{code}",
            ],
            env={"PATH": os.environ["PATH"]} | dict.fromkeys(names, self._folder.name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "subprocess.Popen[str]":
        return self._process

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._folder.cleanup()


def on_a_full_disk(folder: str) -> list[str]:
    """The command that runs another where `folder` is a file system of its own, filled to the last page."""
    fill = 'mount -t tmpfs -o size=64k full . && cd . && { head -c 1000000 /dev/zero >fill 2>/dev/null; exec "$@"; }'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"cd {folder} && {fill}", "sh"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here, even in a namespace")
    return command


def evaluated(code: str, full_disk: bool = False) -> Any:
    """What the code assigns to `result`, in a process that then closes its memory."""
    with running(f"{code}\nmemory.close()\nimport json\nprint(json.dumps(result))", full_disk) as process:
        out, err = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, err[-4000:]
    return json.loads(out.splitlines()[-1])


def children_of(process: int) -> int:
    """The database below a process: its guard's child."""
    (guard,) = child_ids(process)
    (database,) = child_ids(guard)
    return database


def child_ids(process: int) -> list[int]:
    return [int(id) for id in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def watched(process: int) -> int:
    """A descriptor that becomes readable when the process has ended."""
    descriptor: int = os.pidfd_open(process)  # type: ignore[attr-defined, unused-ignore]
    return descriptor


def has_ended(descriptor: int) -> bool:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    ended = bool(waiting.poll(LONGEST * 1000))
    os.close(descriptor)
    return ended
