"""Measures what a call costs more in a worker than in this process; `benchmark.py isolation` prints it."""

import os
import time
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from forget_eval.isolation.selection import Isolation, select

ECHO = '''
class Echo:
    """Answers at once, so that what is measured is the way there and back."""
    def __init__(self, embed): self.embed = embed
    def reset(self): self.texts = []
    def inscribe(self, text): return 1
    def recall_texts(self, query, k=5): return [query] * k
    def purge(self, query): return len(self.embed([query]))
'''


def overhead(calls: int = 3000) -> dict[str, tuple[float, float]]:
    """Median and 95th percentile in milliseconds, over the same call in process: of a recall of ten texts, and of a
    call that asks for one vector of 384 dimensions."""
    vectors = np.ones((1, 384), dtype=np.float32)
    here = os.getcwd()
    with TemporaryDirectory() as folder:
        Path(folder, "echo_memory.py").write_text(ECHO, encoding="utf-8")
        os.chdir(folder)
        try:
            memories = [
                select("echo_memory:Echo", lambda texts: vectors, Isolation(isolate)) for isolate in (True, False)
            ]
            return {what: _compared(memories, what, calls) for what in ("recall", "recall and embed")}
        finally:
            memories[0].close()
            os.chdir(here)


def _compared(memories: list[Any], what: str, calls: int) -> tuple[float, float]:
    worker, direct = (_milliseconds(memory, what, calls) for memory in memories)
    return median(worker) - median(direct), quantiles(worker, n=20)[-1] - quantiles(direct, n=20)[-1]


def _milliseconds(memory: Any, what: str, calls: int) -> list[float]:
    took = []
    text = "User works at Stripe, and has done so since the spring of last year."
    for _ in range(calls):
        started = time.perf_counter()
        memory.recall_texts(text, k=10) if what == "recall" else memory.purge(text)
        took.append(1000 * (time.perf_counter() - started))
    return took
