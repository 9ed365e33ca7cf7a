"""The package HippoRAG, imported without what it wants for other models, and mended where it fails on small stores."""

import logging
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from forget_datasets.errors import UserError
from forget_eval.packages import require
from forget_eval.protocols import Embedder

QUIET = {"TQDM_DISABLE": "1", "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
"""Variables for its import and its making: no progress bars, no advice, no hub, and no threads for small matrices."""

_UNUSED = {
    "vllm": ("LLM", "SamplingParams"),
    "gritlm": ("GritLM",),
    "litellm": (),
    "boto3": (),
    "botocore": (),
    "botocore.exceptions": ("ClientError",),
}
"""Imported by it at once, for models that nobody asks here; they weigh gigabytes, and one fetches a list on import."""

_LEAST = 1e-6
_MODULES = ("hipporag.HippoRAG", "hipporag.utils.config_utils", "hipporag.utils.misc_utils")


def sha256_of_work_arounds() -> str:
    """The hash of this file: what it mends decides scores."""
    return sha256(Path(__file__).read_bytes()).hexdigest()


class Package:
    """The package, imported.

    Attributes:
        configured: its class of settings.
        rows: its module of what extraction returns.
        model: makes its client of a language model from settings.

    Raises:
        UserError: it is not installed; no extra of ours can install it, for its own requirements exclude each other.
    """

    def __init__(self) -> None:
        if find_spec("hipporag") is None:
            raise UserError("adapter 'hipporag' needs hipporag.\n    forget-eval env create hipporag")
        with _stand_ins(), redirect_stdout(None):
            modules: list[Any] = [require(name, "hipporag", "adapter 'hipporag'") for name in _MODULES]
        self._core, config, self.rows = modules
        logging.getLogger("hipporag").setLevel(logging.ERROR)  # it would warn of every store that is small
        self.configured = config.BaseConfig
        self._mended = _mended(self._core)
        self.model: Callable[[Any], Any] = self._core._get_llm_class

    def made(self, config: Any, embeddings: "Embeddings", model: Callable[[Any], Any]) -> Any:
        """A HippoRAG of the given settings, with the embeddings and the model that stand for its own."""
        config.embedding_model_name = "injected"
        makers = {"_get_embedding_model_class": lambda **name: lambda **how: embeddings, "_get_llm_class": model}
        own = {name: getattr(self._core, name) for name in makers}
        vars(self._core).update(makers)  # where HippoRAG looks them up
        try:
            return self._mended(global_config=config)
        finally:
            vars(self._core).update(own)


class Embeddings:
    """An embedder as HippoRAG calls one. Instructions are left out, as its own client of OpenAI's leaves them out."""

    def __init__(self, embed: Embedder) -> None:
        self._embed = embed

    def batch_encode(self, texts: str | Sequence[str], **instructions: Any) -> Any:
        """Vectors of unit length, a float32 array of shape (len(texts), dim)."""
        return self._embed([texts] if isinstance(texts, str) else list(texts))


def _mended(core: Any) -> type:
    """Two work-arounds, without which the package fails an assertion of its own at one or two documents."""
    import numpy as np

    class Mended(core.HippoRAG):  # type: ignore[misc]
        def get_fact_scores(self, query: str) -> Any:
            """The least of normalised scores is 0, and among few facts it is one of the best; weights must not be 0."""
            return np.maximum(super().get_fact_scores(query), _LEAST)

        def index(self, docs: list[str]) -> None:
            """It would go on searching by what it looked up before."""
            with redirect_stdout(None):  # it prints the size of its graph
                super().index(docs)
            self.ready_to_retrieve = False

        def retrieve(self, queries: list[str], **how: Any) -> Any:
            """It divides by how often each node occurs, and drops what comes of those that do not."""
            with np.errstate(invalid="ignore"):
                return super().retrieve(queries, **how)

    return Mended


@contextmanager
def _stand_ins() -> Iterator[None]:
    """While the block runs, empty modules stand for what is not installed, and a dict for a cache.

    That one is never used, but a process would be started for it, and go on.
    """
    processes: Any = multiprocessing
    manager, processes.Manager = processes.Manager, lambda: SimpleNamespace(dict=dict)
    absent = [name for name in _UNUSED if find_spec(name.partition(".")[0]) is None]
    for name in absent:
        sys.modules[name] = module = ModuleType(name)
        for attribute in _UNUSED[name]:
            setattr(module, attribute, type(attribute, (Exception,), {}))
    try:
        yield
    finally:
        processes.Manager = manager
        for name in absent:
            del sys.modules[name]
