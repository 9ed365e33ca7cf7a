"""A folder that appears whole or not at all: built beside its place, then renamed into it."""

import filecmp
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from errno import ELOOP
from glob import escape
from pathlib import Path

from forget_datasets.errors import EnvironmentFault, UserError

if sys.platform != "win32":
    import fcntl


class Outcome(StrEnum):
    """What became of the target folder."""

    NEW = "new"
    UNCHANGED = "unchanged"
    REPLACED = "replaced"


class Stage:
    """A temporary folder, and what became of its target once the block has ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outcome: Outcome | None = None


@contextmanager
def staged(target: Path) -> Iterator[Stage]:
    """Lends a folder to fill; when the block ends well it takes the place of `target`, else it is removed.

    A target with the same files and bytes is left alone. What a killed run left beside the target is removed first.

    Raises:
        UserError: the target is the current folder or holds it, or its path is not UTF-8.
        EnvironmentFault: the disk refuses, with path and reason.
    """
    with disk_faults(target):
        target = _place(target)
        stage = Stage(target.parent / f".{target.name}.building-{secrets.token_hex(4)}")
        missing = [parent for parent in target.parents if not parent.exists()]
        try:
            _sweep(target)
            stage.folder.mkdir(parents=True)
            with _held(stage.folder, needed=False):
                yield stage
                stage.outcome = _settle(stage.folder, target)
        finally:
            shutil.rmtree(stage.folder, ignore_errors=True)
            if stage.outcome is None:
                with suppress(OSError):  # they hold something by now, or were never made
                    for parent in missing:
                        parent.rmdir()


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that appears whole or not at all. Raises EnvironmentFault with path and reason."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise EnvironmentFault(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def disk_faults(target: Path) -> Iterator[None]:
    """Turns errors of the disk into EnvironmentFault, which says what they left at the target: all or nothing."""
    try:
        yield
    except OSError as error:
        left = "It is as it was before." if os.path.lexists(target) else "Nothing was left there."
        raise EnvironmentFault(f"{target}: {error.strerror or error}. {left}") from error


def _place(target: Path) -> Path:
    """Where a target really lies."""
    place = Path(os.path.realpath(target))
    if place.is_symlink():  # what cannot be resolved goes round in circles
        raise OSError(ELOOP, os.strerror(ELOOP))
    if Path.cwd().is_relative_to(place):
        raise UserError(f"{target} is the current folder or holds it; name a folder that can be made anew")
    try:
        str(place).encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{place}: the path is not UTF-8, and Arrow opens no such file; name another folder") from error
    return place


def _settle(folder: Path, target: Path) -> Outcome:
    if target.exists() and _same(folder, target):
        return Outcome.UNCHANGED
    for path in (*folder.rglob("*"), folder):
        _sync(path)
    if not target.exists() or not any(target.iterdir()):
        folder.rename(target)
        _sync(target.parent)
        return Outcome.NEW
    old = target.parent / f".{target.name}.replaced-{secrets.token_hex(4)}"
    try:
        target.rename(old)
        folder.rename(target)
    except BaseException:  # an interrupt too
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    _sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)
    return Outcome.REPLACED


def _same(one: Path, other: Path) -> bool:
    names = [sorted(p.relative_to(root) for p in root.rglob("*") if p.is_file()) for root in (one, other)]
    return names[0] == names[1] and not any(filecmp.cmpfiles(one, other, names[0], shallow=False)[1:])


def _sweep(target: Path) -> None:
    if sys.platform == "win32":  # a folder cannot be locked there, so nobody can tell a leftover from a running build
        return
    for kind in ("building", "replaced"):
        for left in target.parent.glob(f".{escape(target.name)}.{kind}-*"):
            # A folder that a running build holds stays; gone in the meantime is as good as removed.
            with suppress(OSError), _held(left, needed=True):
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _held(folder: Path, needed: bool) -> Iterator[None]:
    """Locks a folder as long as this process lives.

    Raises BlockingIOError if another process holds it; where the disk has no locks, OSError if one is needed.
    """
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if needed or isinstance(error, BlockingIOError):
                raise
        yield
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    """Waits until a file or a folder is on the disk, so that a rename cannot come before what it names."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
