"""Vectors on disk, one SQLite file for each model.

SQLite's write-ahead log makes the file safe for several processes and for a kill at any moment; they read it through
one mapping in memory. A cache is never worth a failed run: a damaged file is moved aside, an unusable folder is done
without, each with one warning.
"""

import os
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
_PAGE = 16_384  # bytes; the usual 4,096 hold two vectors of 384 dimensions and waste a quarter
_MAPPED = (1 << 31) - (1 << 16)  # bytes of the file, the most that SQLite maps; what lies beyond is read
_AT_ONCE = 500  # keys in one SELECT; the lowest limit of any SQLite is 999
_INHERITED: list[sqlite3.Connection] = []


def folder() -> Path:
    """Where vectors are kept: $FORGET_EVAL_CACHE, else $XDG_CACHE_HOME/forget-eval, else ~/.cache/forget-eval."""
    if chosen := os.environ.get("FORGET_EVAL_CACHE"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser()) / "forget-eval"


class VectorCache:
    """The vectors of one model, float32, found by text.

    Args:
        path: the SQLite file; it and its folders are made when they are first needed.
        dim: length of a vector. Entries of another length or with a wrong checksum count as absent.
    """

    def __init__(self, path: Path, dim: int) -> None:
        self.path = path
        self._bytes = dim * 4
        self._file: sqlite3.Connection | None = None
        self._owner = 0
        self._off = False

    def get(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors that are there, shape (dim,) each."""
        by_key = {_key(text): text for text in texts}
        try:
            return {by_key[key]: vector for key, vector in self._read(sorted(by_key))}  # in the order of the file
        except (sqlite3.Error, OSError) as error:
            self._recover(error)
            return {}

    def put(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Keeps vectors, shape (len(texts), dim), in one transaction; those that are there already stay."""
        keys = [_key(text) for text in texts]
        blobs = [vector.tobytes() for vector in vectors]
        rows = [(key, blob + _seal(key, blob)) for key, blob in zip(keys, blobs, strict=True)]
        try:
            if file := self._open():
                with file:
                    file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            self._recover(error)

    def close(self) -> None:
        """Closes the file; the next call opens it again."""
        if self._file and self._owner == os.getpid():
            self._file.close()
        self._file = None

    def _read(self, keys: list[bytes]) -> Iterator[tuple[bytes, NDArray[np.float32]]]:
        file = self._open()
        if not file:
            return
        wanted = set(keys)  # a damaged file may answer with anything
        for start in range(0, len(keys), _AT_ONCE):
            asked = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(asked))
            for key, blob in file.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", asked):
                if key in wanted and self._is_sound(key, blob):
                    yield key, np.frombuffer(blob, dtype="<f4", count=self._bytes // 4)

    def _is_sound(self, key: bytes, blob: object) -> bool:
        return (
            isinstance(blob, bytes) and len(blob) == self._bytes + 4 and blob[-4:] == _seal(key, memoryview(blob)[:-4])
        )

    def _open(self) -> sqlite3.Connection | None:
        if self._off:
            return None
        if self._file is None or self._owner != os.getpid():  # a connection must not cross a fork
            if self._file is not None:
                _INHERITED.append(self._file)  # closing it here would close the parent's log
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
            self._owner = os.getpid()
            self._file.text_factory = bytes  # a blob that damage has turned into text need not be text
            self._file.execute(f"PRAGMA page_size = {_PAGE}")
            self._file.execute(f"PRAGMA mmap_size = {_MAPPED}")
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.execute(_SCHEMA)
        return self._file

    def _recover(self, error: Exception) -> None:
        """A damaged file makes room for a new one; whatever else is wrong, go on without a cache."""
        self.close()
        if _is_damage(error) and self._move_aside():
            _warn(f"embedding cache {self.path} is damaged ({error}): moved to {self._aside.name}, a new one is begun")
        else:
            self._off = True
            _warn(f"embedding cache {self.path} cannot be used ({error}): going on without; FORGET_EVAL_CACHE moves it")

    @property
    def _aside(self) -> Path:
        return self.path.with_name(self.path.name + ".damaged")

    def _move_aside(self) -> bool:
        try:
            os.replace(self.path, self._aside)
            for tail in ("-wal", "-shm"):
                Path(f"{self.path}{tail}").unlink(missing_ok=True)
        except OSError:
            return False
        return True


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _seal(key: bytes, vector: bytes | memoryview) -> bytes:
    """The checksum of both."""
    return crc32(vector, crc32(key)).to_bytes(4, "little")


def _is_damage(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)
