"""The hashes of a run's files, `SHA256SUMS`: what `score` read and wrote. `sha256sum --check` reads it too."""

from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path

from forget_datasets.errors import UserError
from forget_datasets.shapes import unreadable
from forget_eval import runs

FILE = "SHA256SUMS"
_NAMES = (runs.MANIFEST, runs.TRANSCRIPTS, "scores.parquet", "summary.json", "residue.json")
SCORERS = "scores"


def write(folder: Path) -> None:
    """Records the hash of every file of a scored run: the run's own, and those of all its scorers.

    Raises:
        UserError: a file cannot be read.
        EnvironmentFault: the disk refuses.
    """
    lines = (f"{_hash(folder / name)}  {name}\n" for name in files(folder))
    runs.write_whole(folder / FILE, "".join(lines).encode("utf-8", "backslashreplace"))


def add(folder: Path, name: str) -> None:
    """Records the hash of one more file, or anew, and leaves what is recorded of the others; nothing if nothing is.

    Raises as `write` and `read`.
    """
    if recorded := read(folder):
        lines = (f"{digest}  {each}\n" for each, digest in {**recorded, name: _hash(folder / name)}.items())
        runs.write_whole(folder / FILE, "".join(lines).encode("utf-8", "backslashreplace"))


def read(folder: Path) -> dict[str, str]:
    """The recorded hash of each file, by its path within the folder; empty if none are recorded.

    Raises:
        UserError: the record is something else than lines of a hash, two blanks and a path.
    """
    path = folder / FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise _damaged(folder) from error
    found: dict[str, str] = {}
    for line in lines:
        digest, gap, name = line.partition("  ")
        if not gap or name in found:
            raise _damaged(folder)
        found[name] = digest
    return found


def current(folder: Path) -> dict[str, str]:
    """The hash that each file of a run has now. Raises as `write`."""
    return {name: _hash(folder / name) for name in files(folder)}


def files(folder: Path) -> Iterator[str]:
    """The files of a run that are there: paths within its folder, with slashes."""
    yield from (name for name in _NAMES if (folder / name).is_file())
    yield from sorted(path.relative_to(folder).as_posix() for path in (folder / SCORERS).glob("*") if path.is_file())


def _hash(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error


def _damaged(folder: Path) -> UserError:
    return UserError(f"{folder / FILE}: not a list of hashes. Score the run again: forget-eval score {folder}")
