"""One process at a time in a folder."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from forget_datasets.errors import EnvironmentFault, UserError

if sys.platform != "win32":
    import fcntl

_descriptors: set[int] = set()


@contextmanager
def held(folder: Path, what: str) -> Iterator[int | None]:
    """Keeps other processes out of a folder while the block runs; however this process dies, the lock dies with it.

    The folder itself is locked: no file is made, so that it works on a disk that cannot be written.

    Args:
        folder: it must exist.
        what: the folder is used for, as "a run".

    Yields:
        A descriptor, None if there is none. A child that gets it holds the lock too, until it ends.

    Raises:
        UserError: another process holds it.
        EnvironmentFault: the folder cannot be opened.
    """
    if sys.platform == "win32":  # a folder cannot be locked there
        yield None
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise EnvironmentFault(f"cannot open {folder}: {error.strerror or error}") from error
    _descriptors.add(descriptor)
    try:
        _lock(descriptor, folder, what)
        yield descriptor
    finally:
        if descriptor in _descriptors:
            _descriptors.discard(descriptor)
            with suppress(OSError):  # a system that closes all files has closed it
                os.close(descriptor)


def _lock(descriptor: int, folder: Path, what: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(
            f"{folder} is in use: {what} is going on there in another process. Wait until it has ended, or name another"
            " folder."
        ) from None
    except OSError as error:  # some network disks have no locks
        warnings.warn(
            f"{folder} cannot be locked ({error.strerror or error}): see to it that no other process uses it.",
            stacklevel=4,
        )


def _let_go() -> None:
    """A child that a system forks must not go on holding the lock when this process has been killed."""
    while _descriptors:
        os.close(_descriptors.pop())


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_let_go)
