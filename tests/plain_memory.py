"""A module of plain classes, as a user may have it in a folder of theirs, and the embedder of tests of adapters."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forget_eval import embedding
from forget_eval.embedding import Embedder

PLAIN = '''
class PlainMemory:
    """The spec's mandatory methods, purge, and nothing else."""

    def reset(self):
        self.facts = []

    def inscribe(self, text):
        self.facts.append(text)
        return len(self.facts)

    def recall_texts(self, query, k=5):
        return self.facts[:k]

    def release(self, query):
        raise NotImplementedError

    def purge(self, query):
        self.facts = [fact for fact in self.facts if query not in fact]
        return 1


class WithEmbedder(PlainMemory):
    name = "mine"

    def __init__(self, embed, size=3):
        self.embed, self.size = embed, size


class Half:
    def reset(self): ...


class Asked(PlainMemory):
    def recall_texts(self, query, k=5):
        import os
        return [os.environ.get(name, "") for name in query.split()]
'''


@pytest.fixture(scope="module")
def embed() -> Embedder:
    """The offline default, without the disk."""
    return embedding.load("minilm-int8", cache=False)


@pytest.fixture(scope="module")
def module_of_a_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a module of plain classes, entered."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "plain_memory_module.py").write_text(PLAIN)
    before, path = Path.cwd(), list(sys.path)
    os.chdir(folder)
    yield folder
    os.chdir(before)
    sys.path[:] = path
