"""Any model of sentence-transformers, by its name on the Hub or a local folder."""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from forget_datasets.errors import UserError
from forget_eval.embedding.backend import file_sha256
from forget_eval.packages import require

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


class SentenceBackend:
    """A sentence-transformers model on whatever device the library picks.

    Args:
        source: a name on the Hub (owner/name) or a folder.
        name: as reports print it, if not `source`.
        local_only: never ask the Hub.

    Raises:
        UserError: sentence-transformers is missing, or cannot load the model.
    """

    def __init__(self, source: str, name: str = "", local_only: bool = False) -> None:
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        self.name = name or source
        library = require("sentence_transformers", "embed", f"embedder '{self.name}'")
        require("transformers.utils.logging", "embed", f"embedder '{self.name}'").disable_progress_bar()
        try:
            self._model = library.SentenceTransformer(source, local_files_only=local_only)
        except (OSError, ValueError) as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise UserError(f"embedder '{self.name}': sentence-transformers cannot load {source}: {reason}") from error
        self.weights_sha256 = _weights_sha256(source, self._model)
        self.settings = (
            f"sentence-transformers {library.__version__}, device {self._model.device.type}, "
            f"{self._model.max_seq_length} tokens"
        )

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Characters of each text; the library counts tokens itself."""
        return [len(text) for text in texts]

    def encode(self, texts: list[str]) -> NDArray[Any]:
        """Unit vectors, shape (len(texts), dim)."""
        vectors: NDArray[Any] = self._model.encode(
            texts, batch_size=len(texts), convert_to_numpy=True, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors


def in_hub_cache(name: str) -> bool:
    """Whether a model's weights lie in the local cache of the Hub."""
    return _cached_weights(name) is not None


def _cached_weights(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = (try_to_load_from_cache(name, file) for file in _WEIGHTS)
    return next((Path(path) for path in found if isinstance(path, str)), None)


def _weights_sha256(source: str, model: Any) -> str:
    """Of the weights file if there is one, else of the parameters in the order of their names."""
    folder = Path(source)
    if folder.is_dir():
        path = next((folder / file for file in _WEIGHTS if (folder / file).is_file()), None)
    else:
        path = _cached_weights(source)
    if path:
        return file_sha256(path)
    digest = sha256()
    for name, values in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(values.detach().cpu().double().numpy().tobytes())
    return digest.hexdigest()
