"""Runs behind fsspec URLs. A run that goes on lies in a local folder, as does the cache of embeddings; it is uploaded
once it has ended, and pulled to be scored or reported.
"""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from forget_datasets import remote
from forget_datasets.errors import UserError
from forget_datasets.remote import pulled
from forget_eval import locks, runs, seals

__all__ = ["pulled", "upload", "upload_scores"]


def upload(folder: Path, url: str) -> None:
    """Copies a run, or a folder of its repeats, to a URL; manifests come last, so what was cut off is no run.

    What is there may be the same run, which is brought up to date, say with its scores, or what is left of an upload.

    Raises:
        UserError: the folder is no run, or in use; the URL holds anything else, leads into the folder or around it, or
            is of a kind that is not known.
        EnvironmentFault: the place does not take it; what is there then has no manifest.
    """
    require_apart(folder, url)
    with ExitStack() as stack:
        for run in runs.repeats_in(folder) or [folder]:
            runs.read(run)
            stack.enter_context(locks.held(run, "a run"))
        place = remote.place(url)
        _require_own(folder, place)
        place.put(folder, _scorers_of(place))


def require_apart(folder: Path, url: str) -> None:
    """Raises UserError if a URL, or a path, is the folder of a run, or one of the two lies in the other."""
    place = remote.place(url)
    if not place.is_local:
        return
    here, there = folder.resolve(), Path(place.root).resolve()
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise UserError(f"{url} is no other place than that of the run, {folder}. Name another URL.")


def upload_scores(folder: Path, url: str) -> None:
    """Copies what scoring wrote into a pulled run to where it was pulled from; the run itself is left alone.

    Raises EnvironmentFault if the place does not take it.
    """
    place = remote.place(url)
    written = [name for name in (*seals.files(folder), seals.FILE) if name not in (runs.MANIFEST, runs.TRANSCRIPTS)]
    place.add(folder, written, {*_scorers_of(place)} - {*written})


def _scorers_of(place: remote.Place) -> list[str]:
    """What scorings have written there, of this run or its repeats."""
    return [name for name in place.sizes() if seals.SCORERS in name.split("/")[:-1]]


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
