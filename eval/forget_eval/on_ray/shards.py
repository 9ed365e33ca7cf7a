"""What actors have played, a file a piece: the lines of the transcripts, as the run will append them."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from forget_datasets import remote
from forget_datasets.errors import EnvironmentFault
from forget_eval.runs import MANIFEST, SHARDS


def folder_of(run: Path, url: str | None) -> str:
    """Where the shards of a run lie.

    Each run has a folder of its own, whose name holds a hash of the manifest: a run that is started over has another
    one, and never finds the shards of the old.

    Args:
        run: its folder, with the manifest.
        url: of a place that several runs share, or a path; None for one in the run's own folder.
    """
    url = url or str(run / SHARDS)
    root = url.rstrip("/") if remote.is_url(url) else str(Path(url).expanduser().resolve())
    return f"{root}/{run.resolve().name}-{sha256((run / MANIFEST).read_bytes()).hexdigest()[:16]}"


class Shards:
    """The shards of one run. Raises UserError for a URL of a kind that is not known."""

    def __init__(self, url: str) -> None:
        self._place = remote.place(url)
        self.url = url

    def names(self) -> frozenset[str]:
        """Those that are there.

        Raises:
            UserError: the URL names a file.
            EnvironmentFault: the place cannot be reached.
        """
        return frozenset(self._place.sizes())

    def write(self, name: str, lines: Iterable[bytes]) -> None:
        """Writes a shard, whole or not at all. Raises EnvironmentFault if the place does not take it."""
        self._place.write(name, b"".join(lines))

    def read(self, name: str, ids: Sequence[str]) -> list[bytes]:
        """The lines of some rows.

        Raises:
            EnvironmentFault: the shard cannot be read here, or lacks one of the rows.
        """
        try:
            content = self._place.read(name)
        except EnvironmentFault as error:
            reach = (
                "What actors write must be readable here: on several machines --shards names a place that all reach."
            )
            raise EnvironmentFault(f"{error} {reach}") from error
        lines = {found: line for line in content.splitlines(keepends=True) if (found := _id(line))}
        if missing := [id for id in ids if id not in lines]:
            raise EnvironmentFault(f"{self.url}/{name} lacks the transcript of {missing[0]}. Remove it, and run again.")
        return [lines[id] for id in ids]


def _id(line: bytes) -> str | None:
    """The id of a transcript; None for what is no whole line of one."""
    try:
        id = json.loads(line)["id"] if line.endswith(b"\n") else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return id if isinstance(id, str) else None
