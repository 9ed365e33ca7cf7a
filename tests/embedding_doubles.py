"""An embedder with known answers, and a cache folder of its own for every test."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forget_eval import embedding
from forget_eval.embedding import Embedder


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a cache folder of its own."""
    monkeypatch.setenv("FORGET_EVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Lengths:
    """A function with known answers: (characters, 1), so "abc" becomes (3, 1) / sqrt(10). It keeps its batches."""

    weights_sha256 = "known"

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> Any:
        self.batches.append(list(texts))
        return np.array([[len(text), 1.0] for text in texts])


@pytest.fixture
def lengths() -> Iterator[Callable[[], tuple[Lengths, Embedder]]]:
    """Makes embedders over `Lengths`, each with a fresh memory and the same file on disk."""
    made: list[Embedder] = []

    def make() -> tuple[Lengths, Embedder]:
        function = Lengths()
        made.append(embedding.load(function))
        function.batches.clear()  # the one that measured the dimension
        return function, made[-1]

    yield make
    for embedder in made:
        embedder.close()
