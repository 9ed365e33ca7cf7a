"""What a system answered: one JSON line a case, appended as it ends and never changed."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from forget_datasets.errors import EnvironmentFault, UserError

Transcript = dict[str, Any]


def encode(transcript: Mapping[str, Any]) -> bytes:
    """A transcript as one line. A lone surrogate, which UTF-8 lacks, becomes its JSON escape and reads back."""
    text = json.dumps(transcript, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"


def read(path: Path) -> Iterator[Transcript]:
    """The whole lines of a file, in their order; a torn last line is left out, and a file that is not there is empty.

    Raises:
        UserError: a line before the last one cannot be read, or an id comes twice.
    """
    seen: set[str] = set()
    for transcript, _ in _lines(path):
        if transcript["id"] in seen:
            raise UserError(f"{path}: the id '{transcript['id']}' has two transcripts. Run it again in a new folder.")
        seen.add(transcript["id"])
        yield transcript


class Writer:
    """Appends transcripts to a file. Opening drops a torn last line; `done` holds the ids that are there.

    Raises:
        EnvironmentFault: the file cannot be opened or written (a full disk, say). What was written is whole.
        UserError: the file holds something else than transcripts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.done: set[str] = set()
        end = 0
        for transcript, end in _lines(path):  # noqa: B007 (the last `end` is used)
            self.done.add(transcript["id"])
        try:
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by `close`)
            if os.path.getsize(path) > end:
                self._file.truncate(end)
        except OSError as error:
            raise _fault(path, error) from error

    def append(self, transcript: Mapping[str, Any]) -> None:
        """Writes one whole line, or nothing."""
        rest = memoryview(encode(transcript))
        start = os.fstat(self._file.fileno()).st_size
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(start)
            raise _fault(self._path, error) from error
        self.done.add(transcript["id"])

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lines(path: Path) -> Iterator[tuple[Transcript, int]]:
    """Transcripts with the offset at which each one's line ends. Only the last line may be torn."""
    if not path.exists():
        return
    end, number, torn = 0, 0, False
    with open(path, "rb") as file:
        for line in file:
            number += 1
            if torn:
                raise UserError(f"{path}, line {number - 1}: not a transcript. Remove the line, and run again.")
            transcript = _parse(line)
            if transcript is None:
                torn = True
                continue
            end += len(line)
            yield transcript, end


def _parse(line: bytes) -> Transcript | None:
    if not line.endswith(b"\n"):
        return None
    try:
        transcript = json.loads(line)
    except ValueError:
        return None
    return transcript if isinstance(transcript, dict) and isinstance(transcript.get("id"), str) else None


def _fault(path: Path, error: OSError) -> EnvironmentFault:
    return EnvironmentFault(
        f"cannot write {path}: {error.strerror or error}. What was written is whole: make room, and run the same"
        " command."
    )
