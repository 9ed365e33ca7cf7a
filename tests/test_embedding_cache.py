"""The cache of vectors against kills, damage and several processes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forget_eval.embedding import Embedder
from forget_eval.embedding.cache import VectorCache, folder
from tests.embedding_doubles import Lengths

pytest_plugins = ("tests.embedding_doubles",)
pytestmark = pytest.mark.usefixtures("own_cache")


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/xdg")
    monkeypatch.setenv("FORGET_EVAL_CACHE", "/var/mine")
    assert folder() == Path("/var/mine")
    monkeypatch.setenv("FORGET_EVAL_CACHE", "")
    assert folder() == Path("/var/xdg/forget-eval")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the XDG rules say to ignore it
    assert folder() == Path("/home/someone/.cache/forget-eval")


@pytest.mark.filterwarnings("error")
def test_an_unusable_folder_is_done_without(
    lengths: Callable[[], tuple[Lengths, Embedder]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("FORGET_EVAL_CACHE", str(tmp_path / "file" / "cache"))
    _, embed = lengths()
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        first = embed(["abc"])
    embed(["de", "fgh"])  # a second warning would be an error here
    assert first[0].tolist() == pytest.approx([3 / 10**0.5, 1 / 10**0.5])


def _filled(path: Path, count: int = 200) -> VectorCache:
    cache = VectorCache(path, 64)
    texts = [f"text {i}" for i in range(count)]
    cache.put(texts, np.stack([_vector(text) for text in texts]))
    cache.close()
    return cache


def _vector(text: str) -> Any:
    return np.full(64, int(text.split()[1]), dtype=np.float32)


def _all_right(found: dict[str, Any]) -> bool:
    return all(np.array_equal(vector, _vector(text)) for text, vector in found.items())


@pytest.mark.filterwarnings("ignore:embedding cache")
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_costs_entries_and_nothing_else(tmp_path: Path, share: float) -> None:
    path = tmp_path / "vectors.sqlite3"
    cache = _filled(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert _all_right(cache.get([f"text {i}" for i in range(200)]))
    cache.put(["text 7"], _vector("text 7")[None])
    cache.put(["text 7"], _vector("text 7")[None])
    assert _all_right(cache.get(["text 7"]))
    cache.close()


@pytest.mark.filterwarnings("ignore:embedding cache")
@settings(deadline=None, max_examples=30)
@given(place=st.floats(0, 1, exclude_max=True), noise=st.binary(min_size=1, max_size=64))
def test_flipped_bytes_never_come_back_as_a_vector(
    tmp_path_factory: pytest.TempPathFactory, place: float, noise: bytes
) -> None:
    path = tmp_path_factory.mktemp("cache") / "vectors.sqlite3"
    cache = _filled(path)
    whole = bytearray(path.read_bytes())
    at = int(len(whole) * place)
    whole[at : at + len(noise)] = noise[: len(whole) - at]
    path.write_bytes(whole)
    assert _all_right(cache.get([f"text {i}" for i in range(200)]))
    cache.close()


def test_a_damaged_file_is_moved_aside_once(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite3"
    cache = _filled(path)
    path.write_bytes(b"no database" * 1000)
    with pytest.warns(RuntimeWarning, match=r"is damaged .* moved to vectors\.sqlite3\.damaged"):
        assert cache.get(["text 1"]) == {}
    cache.put(["text 1"], _vector("text 1")[None])
    assert _all_right(found := cache.get(["text 1"]))
    assert list(found) == ["text 1"]
    cache.close()
    assert path.with_name("vectors.sqlite3.damaged").read_bytes().startswith(b"no database")


WRITER = """
import sys, numpy as np
from pathlib import Path
from forget_eval.embedding.cache import VectorCache
cache = VectorCache(Path(sys.argv[1]), 64)
for start in range(0, int(sys.argv[2]), 8):
    texts = [f"text {i}" for i in range(start, start + 8)]
    cache.put(texts, np.stack([np.full(64, int(t.split()[1]), dtype=np.float32) for t in texts]))
    print(start, flush=True)
"""


def test_a_kill_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite3"
    command = [sys.executable, "-c", WRITER, str(path), "1000000"]
    for round_ in range(3):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout
            kept = [int(writer.stdout.readline()) for _ in range(20 + 7 * round_)][-1] + 8
            writer.kill()
        cache = VectorCache(path, 64)
        found = cache.get([f"text {i}" for i in range(kept)])
        cache.close()
        assert len(found) == kept
        assert _all_right(found)


def test_several_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite3"
    command = [sys.executable, "-W", "error", "-c", WRITER, str(path), "400"]
    writers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    cache = VectorCache(path, 64)
    found = cache.get([f"text {i}" for i in range(400)])
    cache.close()
    assert len(found) == 400
    assert _all_right(found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_opens_the_file_anew(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite3"
    cache = VectorCache(path, 64)
    cache.put(["text 1"], _vector("text 1")[None])
    child = os.fork()
    if child == 0:
        cache.put(["text 2"], _vector("text 2")[None])
        os._exit(0 if _all_right(cache.get(["text 1", "text 2"])) else 1)
    assert os.waitpid(child, 0)[1] == 0
    cache.put(["text 3"], _vector("text 3")[None])
    assert sorted(cache.get(["text 1", "text 2", "text 3"])) == ["text 1", "text 2", "text 3"]
    cache.close()
