"""Folders behind fsspec URLs (`s3://bucket/name`, `file:///data/x`): pulled to be read, uploaded once they are whole.

What makes a folder a dataset or a run is its manifest. An upload removes the old one first and writes the new one last,
so that what was cut off on the way is neither.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from forget_datasets.errors import EnvironmentFault, UserError

MANIFEST = "manifest.json"
RELEASES = "RELEASES.md"

_URL = re.compile(r"[a-z][a-z0-9+.:-]*://", re.IGNORECASE)
_CUT_OFF = f"there is no {MANIFEST}, which an upload writes last. It is none of ours, or an upload was cut off"
_pulled: list[TemporaryDirectory[str]] = []  # they go when the process ends


@dataclass(frozen=True, slots=True)
class Place:
    """A folder behind a URL."""

    url: str
    root: str
    _files: Any = field(repr=False)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        from fsspec.implementations.local import LocalFileSystem

        return isinstance(self._files, LocalFileSystem)

    def sizes(self) -> dict[str, int]:
        """The files, by their path within the folder, with their bytes; empty if there is no such folder.

        Raises:
            UserError: the URL names a file, or a file has a name that would lead out of the folder.
            EnvironmentFault: the place cannot be reached.
        """
        with _faults(self.url):
            self._files.invalidate_cache()
            try:
                found = self._files.find(self.root, detail=True)
            except FileNotFoundError:
                return {}
        names = {name[len(self.root) :].lstrip("/"): entry["size"] for name, entry in found.items()}
        if "" in names:
            raise UserError(f"{self.url} is a file; name the folder that holds {MANIFEST}.")
        if odd := [name for name in names if ".." in name.split("/")]:
            raise UserError(f"{self.url} holds '{odd[0]}', whose name leads out of the folder.")
        return names

    def fetch(self, names: Iterable[str], folder: Path) -> None:
        """Copies files into a local folder. Raises EnvironmentFault if a file or the disk cannot be had."""
        with _faults(self.url):
            for name in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                self._files.get_file(self._path(name), str(folder / name))

    def fetch_columns(self, name: str, path: Path) -> None:
        """Makes an empty Parquet file with the columns of one that is there; nothing, if that one is damaged.

        Raises EnvironmentFault as `fetch`.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        with _faults(self.url), self._files.open(self._path(name), "rb") as file, suppress(pa.ArrowException):
            pq.write_table(pq.read_schema(file).empty_table(), path)

    def read(self, name: str) -> bytes:
        """The content of a file. Raises EnvironmentFault if it cannot be had."""
        with _faults(self.url):
            return bytes(self._files.cat_file(self._path(name)))

    def write(self, name: str, content: bytes) -> None:
        """Writes a file that appears whole or not at all. Raises EnvironmentFault if the place does not take it."""
        path = self._path(name)
        part = f"{path}.{uuid4().hex}.part"
        with _faults(self.url):
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(part, content)
            self._files.mv(part, path)

    def put(self, folder: Path, stale: Iterable[str] = ()) -> None:
        """Uploads all files of a local folder but hidden ones, and removes the stale; manifests go first and come last.

        Raises EnvironmentFault if the place does not take them: what is left there has no manifest.
        """
        found = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        names = [path.as_posix() for path in found if not any(part.startswith(".") for part in path.parts)]
        # Rows come first: by their columns what was cut off is known as ours, and may be replaced.
        data = sorted((name for name in names if not _is_manifest(name)), key=lambda name: not name.startswith("data/"))
        manifests = sorted((name for name in names if _is_manifest(name)), key=lambda name: -name.count("/"))
        with _faults(self.url, " What is there now is not whole, and has no manifest; do it again."):
            self._remove(name for name in self.sizes() if _is_manifest(name))
            self._upload(folder, data)
            self._remove({*stale} - {*names})
            self._upload(folder, manifests)

    def add(self, folder: Path, names: Iterable[str], stale: Iterable[str] = ()) -> None:
        """Uploads some files of a local folder, and removes the stale; all others, manifests too, stay as they are.

        Raises EnvironmentFault if the place does not take them.
        """
        with _faults(self.url, " Do it again."):
            self._upload(folder, names)
            self._remove(stale)

    def _upload(self, folder: Path, names: Iterable[str]) -> None:
        for name in names:
            self._files.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
            self._files.put_file(str(folder / name), self._path(name))

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            self._files.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"


def is_url(text: object) -> bool:
    """Whether a text names a place by a URL, and not a local folder or a repository of the Hub."""
    return isinstance(text, str) and _URL.match(text) is not None


def place(url: str) -> Place:
    """The place of a URL. Raises UserError for a kind of URL that fsspec does not know, or not without a package."""
    from fsspec.core import url_to_fs

    try:
        files, root = url_to_fs(url)
    except ImportError as error:
        raise UserError(f"{url}: {error}, with pip.") from error
    except ValueError as error:
        raise UserError(f"{url}: {error}.") from error
    return Place(url, str(root).rstrip("/"), files)


def pulled(url: str, wanted: Callable[[str], bool] | None = None) -> Path:
    """A local copy of a folder behind a URL, which goes when the process ends.

    Args:
        url: of a dataset or a run, or of a folder of runs.
        wanted: which files, by their path within the folder; by default all.

    Raises:
        UserError: nothing there has a manifest; and as `place`.
        EnvironmentFault: the place cannot be reached.
    """
    source = place(url)
    names = source.sizes()
    if not any(map(_is_manifest, names)):
        raise UserError(f"{url}: {_CUT_OFF}." if names else f"{url}: there is nothing.")
    kept = TemporaryDirectory(prefix="forget-")
    _pulled.append(kept)
    folder = Path(kept.name, PurePosixPath(source.root).name or "pulled")
    source.fetch((name for name in names if wanted is None or wanted(name)), folder)
    return folder


def pulled_dataset(url: str, config: str | None = None) -> Path:
    """As `pulled`, of a dataset; without the rows of other configs than the one that is wanted, if it is there."""
    source = place(url).sizes()
    if MANIFEST not in source:
        raise UserError(f"{url}: {_CUT_OFF}." if source else f"{url}: there is nothing.")
    own = f"data/{config}/"
    alone = config is not None and any(name.startswith(own) for name in source)
    return pulled(url, (lambda name: name.startswith(own) or not name.startswith("data/")) if alone else None)


@contextmanager
def rebuilt(url: str) -> Iterator[tuple[Path, Callable[[], bool]]]:
    """Lends a local folder in which the dataset of a URL is built anew, and what uploads it.

    In the folder stands what is at the URL, as far as whoever replaces a dataset looks: manifest and releases, of all
    other files the names, and without a manifest the columns of Parquet files. The upload says whether there was
    anything to do: not if the manifest is the same and all files have the same sizes.

    Raises:
        UserError, EnvironmentFault: as `place`, `Place.sizes` and `Place.put`; errors of the block speak of the URL.
    """
    target = place(url)
    there = target.sizes()
    with TemporaryDirectory(prefix="forget-") as temporary:
        local = Path(temporary, "dataset")
        target.fetch((name for name in (MANIFEST, RELEASES) if name in there), local)
        for name in there:
            (local / name).parent.mkdir(parents=True, exist_ok=True)
            (local / name).touch()
            if MANIFEST not in there and name.endswith(".parquet"):
                target.fetch_columns(name, local / name)
        before = (local / MANIFEST).read_bytes() if MANIFEST in there else b""

        def upload() -> bool:
            here = {p.relative_to(local).as_posix(): p.stat().st_size for p in local.rglob("*") if p.is_file()}
            if here == there and (local / MANIFEST).read_bytes() == before:
                return False
            target.put(local, stale=there)
            return True

        with spoken_of(local, url):
            yield local, upload


@contextmanager
def spoken_of(local: Path, url: str) -> Iterator[None]:
    """Lets errors name the URL instead of the local copy."""
    try:
        yield
    except UserError as error:
        if str(local) not in str(error):
            raise
        raise type(error)(str(error).replace(str(local), url)) from error


def _is_manifest(name: str) -> bool:
    return name.rpartition("/")[2] == MANIFEST


@contextmanager
def _faults(url: str, left: str = "") -> Iterator[None]:
    """Turns whatever a file system raises, each in its own way, into EnvironmentFault."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        what = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise EnvironmentFault(f"{url}: {what}.{left}") from error
