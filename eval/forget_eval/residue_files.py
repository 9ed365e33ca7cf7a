"""Which words lie in the files below a folder, byte for byte, and which of the files could hold them unseen."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_BLOCK = 1 << 22  # bytes read at once
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xff\x06\x00\x00sNaPpY": "snappy",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"PK\x03\x04": "zip",
}
_PARQUET = b"PAR1"
"""How files begin whose bytes are no text, whatever is in them."""


@dataclass(frozen=True)
class Found:
    """What was seen.

    Attributes:
        places: for each word that was found, the files that hold it, as paths within the folder, sorted.
        opaque: the files that were not searched, as `path (gzip)` or `path (Permission denied)`, sorted.
    """

    places: dict[str, tuple[str, ...]]
    opaque: tuple[str, ...]


def search(folder: Path, words: Sequence[str]) -> Found:
    """Looks for words in every regular file below a folder; links are not followed.

    A word is found in UTF-8 and in UTF-16 of either order, in capitals too. A file that goes while this looks is gone.

    Args:
        folder: of a store, which may be in use.
        words: of ASCII letters in lower case.

    Raises:
        UserError: there is no such folder.
    """
    from forget_datasets.errors import UserError

    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder, though the store is said to lie there.")
    patterns = {word: [word.encode(encoding) for encoding in _ENCODINGS] for word in words}
    places: dict[str, list[str]] = {}
    opaque = []
    for path in sorted(_files(folder)):
        name = path.relative_to(folder).as_posix()
        try:
            held = _held(path, patterns)
        except FileNotFoundError:
            continue
        except OSError as error:
            held = str(error.strerror or error)
        if isinstance(held, str):
            opaque.append(f"{name} ({held})")
            continue
        for word in held:
            places.setdefault(word, []).append(name)
    return Found({word: tuple(names) for word, names in places.items()}, tuple(opaque))


def _files(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            try:
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path
            except FileNotFoundError:
                continue


def _held(path: Path, patterns: dict[str, list[bytes]]) -> list[str] | str:
    """The words of a file in the order of `patterns`, or how it is compressed. Of Parquet the rows are read."""
    overlap = max(len(pattern) for each in patterns.values() for pattern in each) - 1
    found: set[str] = set()
    with open(path, "rb") as file:
        block = file.read(_BLOCK)
        for magic, name in _COMPRESSED.items():
            if block.startswith(magic):
                return name
        if block.startswith(_PARQUET):
            return [word for word in patterns if word.encode() in rows] if (rows := _rows(path)) else "parquet"
        while block:
            folded = block.lower()  # the ASCII letters alone
            found |= {word for word, each in patterns.items() if word not in found and any(p in folded for p in each)}
            more = file.read(_BLOCK)
            block = block[-overlap:] + more if more else b""
    return [word for word in patterns if word in found]


def _rows(path: Path) -> bytes:
    """All values of a Parquet file, in small letters; empty if it cannot be read, half written as it may be."""
    from pyarrow import ArrowException, parquet

    try:
        return repr(parquet.read_table(path).to_pydict()).lower().encode("utf-8", "replace")
    except ArrowException:
        return b""
