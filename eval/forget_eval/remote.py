"""Runs behind fsspec URLs. A run that goes on lies in a local folder, as does the cache of embeddings; it is uploaded
once it has ended, and pulled to be scored or reported.
"""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from forget_datasets import remote
from forget_datasets.errors import UserError
from forget_datasets.remote import is_url, pulled
from forget_eval import locks, runs

__all__ = ["is_url", "pulled", "upload"]


def upload(folder: Path, url: str) -> None:
    """Copies a run, or a folder of its repeats, to a URL; manifests come last, so what was cut off is no run.

    What is there may be the same run, which is brought up to date, say with its scores, or what is left of an upload.

    Raises:
        UserError: the folder is no run, or in use; the URL holds anything else, or is of a kind that is not known.
        EnvironmentFault: the place does not take it; what is there then has no manifest.
    """
    with ExitStack() as stack:
        for run in runs.repeats_in(folder) or [folder]:
            runs.read(run)
            stack.enter_context(locks.held(run, "a run"))
        place = remote.place(url)
        _require_own(folder, place)
        place.put(folder)


def _require_own(folder: Path, place: remote.Place) -> None:
    """Raises UserError if there is anything behind a URL but the run in a folder, or a part of it."""
    there = place.sizes()
    manifests = [name for name in there if name.rpartition("/")[2] == runs.MANIFEST]
    with TemporaryDirectory(prefix="forget-") as temporary:
        copies = Path(temporary)
        place.fetch(manifests, copies)
        other = [name for name in manifests if not _same(copies / name, folder / name)]
    if not manifests:
        other = [name for name in there if not (folder / name).is_file()]
    if other:
        raise UserError(f"{place.url} holds '{other[0]}', which is not of the run in {folder}. Name another URL.")


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()
