"""Replies of chat models on disk, one file a request, so that no question is paid for twice."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from forget_datasets.errors import EnvironmentFault
from forget_datasets.rows import canonical


class Replies:
    """Replies by their full request.

    Args:
        folder: holds the files; None keeps nothing.
        fresh: whether replies that were kept before count as none, and are written over.
    """

    def __init__(self, folder: Path | None, fresh: bool = False) -> None:
        self._folder = folder
        self._fresh = fresh
        self._written = set[Path]()

    def get(self, request: Mapping[str, Any]) -> str | None:
        """The reply to a request; None if there is none, or its file is damaged."""
        if self._folder is None:
            return None
        path = _place(self._folder, request)
        if self._fresh and path not in self._written:
            return None
        try:
            kept = json.loads(path.read_bytes())
            return str(kept["reply"]) if kept["request"] == request else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def put(self, request: Mapping[str, Any], reply: str) -> None:
        """Keeps a reply. Raises EnvironmentFault with path and reason if the disk refuses."""
        if self._folder is None:
            return
        from forget_eval.runs import write_json  # which reads datasets, and so takes longer to import

        path = _place(self._folder, request)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentFault(f"cannot make {path.parent}: {error.strerror or error}") from error
        write_json(path, {"request": request, "reply": reply})
        self._written.add(path)


def _place(folder: Path, request: Mapping[str, Any]) -> Path:
    key = sha256(canonical(request)).hexdigest()
    return folder / key[:2] / f"{key}.json"
