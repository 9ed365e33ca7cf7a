"""What a system answered: one JSON line a case, appended as it ends and never changed."""

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.shapes import Shape, misfit, unreadable

Transcript = dict[str, Any]

FILE = "transcripts.jsonl"
"""In a run folder."""
_ENDING = ("ok", "n/a", "error")
_ERROR = ({"kind": str, "message": str, "during": str}, None)
SHAPES: Mapping[str, Shape] = {
    "forgeteval": {
        "id": str,
        "status": _ENDING,
        "operations": [{"op": str, "status": _ENDING}],
        "final": ([str], None),
        "probes": [[str]],
        "again": [[str]],
        "store": int,
        "error": _ERROR,
    },
    "membehave": {
        "id": str,
        "status": _ENDING,
        "before": ([str], None),
        "after": ([str], None),
        "operations": {"forget?": {"status": _ENDING}},
        "answerer?": str,
        "error": _ERROR,
    },
}
"""What scores and reports read of a line, by task; `forgeteval.replay` and `membehave.replay` say what it means."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # made before a system can patch `json`
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def encode(transcript: Mapping[str, Any]) -> bytes:
    """A transcript as one line. A lone surrogate, which UTF-8 lacks, becomes its JSON escape and reads back."""
    return _ENCODER.encode(transcript).encode("utf-8", "backslashreplace") + b"\n"


def read(path: Path, shape: Shape = dict) -> Iterator[Transcript]:
    """The whole lines of a file, in their order; a torn last line is left out, and a file that is not there is empty.

    Args:
        path: of the file.
        shape: of every line, one of `SHAPES`; by default only the id is looked at.

    Raises:
        UserError: a line before the last one cannot be read, a line has another shape, or an id comes twice; the
            message names file and line.
        EnvironmentFault: the disk refuses.
    """
    seen: set[str] = set()
    for transcript, _ in _lines(path, shape):
        if transcript["id"] in seen:
            raise UserError(f"{path}: the id '{transcript['id']}' has two transcripts. Run it again in a new folder.")
        seen.add(transcript["id"])
        yield transcript


def state(path: Path, shape: Shape = dict) -> dict[str, Any]:
    """What a file holds, so that what was computed from it can be told from what it holds later.

    Args:
        path: of the file.
        shape: of every line.

    Returns:
        n, how many transcripts; sha256, of all that they say but for the times that it took. Two runs in which a system
        answered the same are in one state.

    Raises:
        UserError, EnvironmentFault: as `read`.
    """
    n, digest = 0, sha256()
    for transcript in read(path, shape):
        n += 1
        digest.update(json.dumps(_timeless(transcript), sort_keys=True).encode() + b"\n")
    return {"n": n, "sha256": digest.hexdigest()}


class Writer:
    """Appends transcripts to a file. Opening drops a torn last line; `done` holds the ids that are there.

    A file that is there and cannot be written is opened all the same, since a run that is finished appends nothing.

    Raises:
        EnvironmentFault: the file cannot be opened or written (a full disk, say). What was written is whole.
        UserError: the file holds something else than transcripts.
    """

    def __init__(self, path: Path, shape: Shape = dict) -> None:
        self._path = path
        self._is_open = True
        self.done: set[str] = set()
        end = 0
        for transcript, end in _lines(path, shape):  # noqa: B007 (the last `end` is used)
            self.done.add(transcript["id"])
        try:
            with self._opened() as file:
                if os.path.getsize(path) > end:
                    file.truncate(end)
        except OSError as error:
            if error.errno not in _UNWRITABLE or not path.exists():
                raise _fault(path, error) from error

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self._path.parent

    def append(self, transcript: Mapping[str, Any]) -> None:
        """Writes one whole line, or nothing."""
        self.append_encoded(transcript["id"], encode(transcript))

    def append_encoded(self, id: str, line: bytes | memoryview) -> None:
        """Writes the line of a transcript that is encoded already."""
        if not self._is_open:
            raise ValueError(f"{self._path} is closed")
        try:
            with self._opened() as file:
                _write(file, line)
        except OSError as error:
            raise _fault(self._path, error) from error
        self.done.add(id)

    def close(self) -> None:
        """Ends the writing."""
        self._is_open = False

    def _opened(self) -> BinaryIO:
        """The file, opened anew for every line: a system that closes all files, or all that it knows, closes none."""
        return open(self._path, "ab", buffering=0)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _write(file: BinaryIO, line: bytes | memoryview) -> None:
    rest = memoryview(line)
    start = os.fstat(file.fileno()).st_size
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        with suppress(OSError):
            file.truncate(start)
        raise


def _lines(path: Path, shape: Shape) -> Iterator[tuple[Transcript, int]]:
    """Transcripts with the offset at which each one's line ends. Only the last line may be torn."""
    end, torn = 0, False
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below)
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable(path, error) from error
    with file:
        for number, line in enumerate(file, 1):
            if torn:
                raise UserError(f"{path}, line {number - 1}: not a transcript. Remove the line, and run again.")
            transcript = _parse(line)
            if transcript is None:
                torn = True
                continue
            if what := misfit(transcript, shape):
                raise UserError(f"{path}, line {number}: {what}. Remove the line, and run again.")
            end += len(line)
            yield transcript, end


def _parse(line: bytes) -> Transcript | None:
    if not line.endswith(b"\n"):
        return None
    try:
        transcript = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return transcript if isinstance(transcript, dict) and isinstance(transcript.get("id"), str) else None


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(inner) for name, inner in value.items() if name != "seconds"}
    return [_timeless(inner) for inner in value] if isinstance(value, list) else value


def _fault(path: Path, error: OSError) -> EnvironmentFault:
    return EnvironmentFault(
        f"cannot write {path}: {error.strerror or error}. What was written is whole: make room, and run the same"
        " command."
    )
