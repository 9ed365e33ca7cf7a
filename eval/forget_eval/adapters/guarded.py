"""A server of an adapter's own: started below a guard, awaited, and ended with everything that it has started."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval.isolation import guard

_PAUSE = 0.05  # seconds
_TAIL = 8  # lines of a log
_LONGEST_SOCKET = 100  # bytes of a path that every system can bind


class Guarded:
    """A command that goes on until `close`, or until this process is gone: a guard watches.

    Args:
        folder: its current folder, where its log goes.
        name: of the log, without the ending.
        command: the program and its arguments.
        env: all the variables that it sees.
        failing: begins the message of its fault, as "FalkorDB does not start".

    Attributes:
        pid: of the guard, whose child the command is.

    Raises:
        OSError: no process can be started, or the log cannot be written.
    """

    def __init__(self, folder: Path, name: str, command: Sequence[str], env: Mapping[str, str], failing: str) -> None:
        self._log, self._failing = folder / f"{name}.log", failing
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(guard.__file__), *command],
                cwd=folder,
                env=env,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the command has not ended."""
        return self._process.poll() is None

    def await_ready(self, is_ready: Callable[[], bool], longest: float) -> None:
        """Waits until the command is ready.

        Args:
            is_ready: is asked again and again.
            longest: seconds that it may take.

        Raises:
            EnvironmentFault: it ended before, or it took longer; the message has the end of its log.
        """
        deadline = time.monotonic() + longest
        while not is_ready():
            if not self.is_alive or time.monotonic() > deadline:
                raise fault(self._failing, self._log)
            time.sleep(_PAUSE)

    def await_socket(self, path: str, longest: float) -> None:
        """Waits until somebody listens at the socket. Raises EnvironmentFault as `await_ready` does."""
        self.await_ready(lambda: _listens(path), longest)

    def hang_up(self) -> None:
        """Tells the guard to end the command, and does not wait. A second time nothing."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def close(self, longest: float = 10.0) -> None:
        """Ends the command: the guard does, or is killed with it after so many seconds. A second time nothing."""
        self.hang_up()
        try:
            self._process.wait(longest)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()


def fault(failing: str, log: Path) -> EnvironmentFault:
    """The error for a program that failed, with the end of what it said."""
    lines = log.read_text("utf-8", "replace").strip().splitlines()[-_TAIL:]
    return EnvironmentFault("\n    ".join([f"{failing}. It said last:", *lines]))


def socket_path(folder: Path, name: str) -> str:
    """The path of a socket in a folder. Raises UserError if it is too long for one."""
    path = str(folder / name)
    if len(os.fsencode(path)) > _LONGEST_SOCKET:
        raise UserError(f"{folder}: too long a path for a socket. Set TMPDIR to a shorter one.")
    return path


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as asking, suppress(OSError):
        asking.connect(path)
        return True
    return False
