"""Measures what a call costs more in a worker than in this process; `benchmark.py isolation` prints it."""

import time
from contextlib import chdir, closing
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
    with TemporaryDirectory() as folder, chdir(folder):
        Path(folder, "echo_memory.py").write_text(ECHO, encoding="utf-8")
        direct, isolated = (
            select("echo_memory:Echo", lambda texts: vectors, Isolation(isolate)) for isolate in (False, True)
        )
        with closing(isolated):
            return {what: _compared(isolated, direct, what, calls) for what in ("recall", "recall and embed")}


def _compared(isolated: Any, direct: Any, what: str, calls: int) -> tuple[float, float]:
    worker, here = _milliseconds(isolated, what, calls), _milliseconds(direct, what, calls)
    return median(worker) - median(here), quantiles(worker, n=20)[-1] - quantiles(here, n=20)[-1]


def _milliseconds(memory: Any, what: str, calls: int) -> list[float]:
    took = []
    text = "User works at Stripe, and has done so since the spring of last year."
    for _ in range(calls):
        started = time.perf_counter()
        memory.recall_texts(text, k=10) if what == "recall" else memory.purge(text)
        took.append(1000 * (time.perf_counter() - started))
    return took
