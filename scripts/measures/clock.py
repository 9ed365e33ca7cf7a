"""Time and memory of calls and commands."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import psutil

Value = TypeVar("Value")

_EVERY = 0.1  # seconds between two looks at memory


@dataclass(frozen=True)
class Taken:
    """What a command took: wall time in seconds, and the most memory that all its processes had together, in MB."""

    seconds: float
    peak_mb: float


def seconds(action: Callable[[], Any]) -> float:
    """Wall time of a call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def command(program: str, *arguments: object) -> Taken:
    """Runs one of our commands, quietly. Raises RuntimeError with what it said if it fails."""
    call = [str(Path(sys.executable).with_name(program)), *map(str, arguments)]
    started = time.perf_counter()
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with _Peak(process.pid) as peak:
        _, said = process.communicate()
    took = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(said)
    return Taken(took, peak.bytes / 1e6)


def apart(action: Callable[..., Value], *arguments: object) -> tuple[Value, float]:
    """Calls a function of a module in a new process; its value, and the most memory that the process had, in MB."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with _Peak(pool.submit(os.getpid).result()) as peak:
            value = pool.submit(action, *arguments).result()
        return value, peak.bytes / 1e6


@contextmanager
def cache(folder: str) -> Iterator[None]:
    """A cache of vectors of its own while the block runs."""
    before = os.environ.get("FORGET_EVAL_CACHE")
    os.environ["FORGET_EVAL_CACHE"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["FORGET_EVAL_CACHE"]
        else:
            os.environ["FORGET_EVAL_CACHE"] = before


class _Peak:
    """Watches a process and all that it starts."""

    def __init__(self, pid: int) -> None:
        self.bytes = 0
        self._process = psutil.Process(pid)
        self._done = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "_Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_EVERY):
            self.bytes = max(self.bytes, self._now())

    def _now(self) -> int:
        try:
            found = [self._process, *self._process.children(recursive=True)]
        except psutil.Error:
            return 0
        return sum(map(_resident, found))


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
