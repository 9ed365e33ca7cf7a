"""A mapped server with what it needs around it: its Python, a temporary home, and the address of the embedder."""

import os
import shutil
import sys
import warnings
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forget_datasets.errors import UserError
from forget_eval.adapters.scratch import Scratch
from forget_eval.mcp_servers.mapping import ServerMapping
from forget_eval.mcp_servers.templates import ENVIRONMENT, filled, placeholders
from forget_eval.mcp_servers.tools import require_tools
from forget_eval.packages import require
from forget_eval.protocols import Embedder

if TYPE_CHECKING:
    from forget_eval.isolation.environments import Environment
    from forget_eval.mcp_servers.connection import Connection

_OURS = {path.name: path for path in sorted(Path(__file__).parent.glob("*.py")) if path.stem != "proposal"}
_PROGRAMS = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh")


class Host:
    """Keeps one server going, until `close`. Whatever it writes below its home is gone with the next start.

    Args:
        mapping: says how it is started.
        embed: answers the server's wishes for vectors; None if it has none.
        wanted_by: begins the message of an error.
        limit: seconds that a call may last, None for what the mapping says.

    Attributes:
        version: of the mapped distribution if there is one, else as the server gives it.
        configuration: what a manifest says of it.
        folder: that it may write to; its home is in it.

    Raises:
        UserError: its environment is not there, it does not start, or it lacks a tool that the mapping names.
    """

    def __init__(
        self, mapping: ServerMapping, embed: Embedder | None, wanted_by: str, limit: float | None = None
    ) -> None:
        require("mcp", "mcp", wanted_by)
        self._mapping, self._server, self._limit = mapping, mapping.server, limit
        self._python, environment = _python(self._server.get("environment"), wanted_by)
        self._connection: Connection | None = None
        self._endpoint: Any = None
        self._scratch = Scratch()
        self.folder = self._scratch.folder
        try:
            self._values = {**self._variables(), **self._embedding(embed), "here": str(mapping.folder)}
            self._start_checked(wanted_by)
        except BaseException:
            self.close()
            raise
        self.version = self.connection.version
        self.configuration = {
            "mapping": mapping.content,
            "server": self.connection.server,
            "protocol": self.connection.protocol,
            "files": _hashes(_OURS | self._programs()),
        }
        if environment is not None:
            self.version = environment.packages.get(self._server.get("distribution", ""), self.version)
            self.configuration["environment"] = {
                "name": environment.name,
                "python": environment.python,
                "requirements_sha256": environment.requirements_sha256,
            }

    @property
    def connection(self) -> "Connection":
        """To the server that runs now."""
        assert self._connection is not None
        return self._connection

    def restart(self) -> None:
        """Ends the server that runs, and starts one on an empty folder; at a URL only the connection is new.

        Raises:
            ServerFault: it does not start.
        """
        from forget_eval.mcp_servers import connection

        if self._connection is not None:
            self._connection.close()
        timeouts = self._mapping.timeouts(self._limit)
        if "url" in self._server:
            url, headers = (filled(self._server.get(key, {}), self._values) for key in ("url", "headers"))
            self._connection = connection.to_url(url, headers, timeouts)
            return
        folder = os.path.join(self._scratch.folder, "home")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        values = self._values | {"data": folder, "python": self._python[0]}
        variables = self._at_home(folder, filled(self._server.get("env", {}), values))
        # A command of the user's runs where `mcp inspect` ran it: its files may be named from there.
        where = folder if self._mapping.is_shipped else None
        self._connection = connection.to_command(self._command(values), variables, where, timeouts)

    def close(self) -> None:
        """Ends the server and the embedder's address, and removes the home."""
        if self._connection is not None:
            self._connection.close()
        if self._endpoint is not None:
            self._endpoint.close()
        self._scratch.close()

    def _start_checked(self, wanted_by: str) -> None:
        from forget_eval.mcp_servers.connection import ServerFault, described

        try:
            self.restart()
        except ServerFault as error:
            raise UserError(f"{wanted_by}: {described(error)}") from error
        require_tools(self._mapping, self.connection.tools)

    def _command(self, values: dict[str, Any]) -> list[str]:
        """The Python of an environment is called with an option."""
        words: list[str] = []
        for word in self._server["command"]:
            words += self._python if word == "{python}" else [str(filled(word, values))]
        return words

    def _programs(self) -> dict[str, Path]:
        """The programs that the command names by their files, such as a launcher beside the mapping."""
        values = self._values | {"data": "", "python": ""}
        words = {word: Path(str(filled(word, values))) for word in self._server.get("command", ())}
        return {word: path for word, path in words.items() if path.suffix in _PROGRAMS and os.path.isfile(path)}

    def _variables(self) -> dict[str, str]:
        wanted = [name for name in placeholders(self._server) if name.startswith(ENVIRONMENT)]
        values = {name: os.environ.get(name.removeprefix(ENVIRONMENT)) for name in wanted}
        for name, value in values.items():
            if value is None:
                raise UserError(f"[server] wants {{{name}}}, and no such variable is set.")
        return {name: str(value) for name, value in values.items()}

    def _embedding(self, embed: Embedder | None) -> dict[str, Any]:
        if embed is None:
            return {}
        from forget_eval.embedding import width
        from forget_eval.mcp_servers.embeddings import EmbeddingsEndpoint

        self._endpoint = EmbeddingsEndpoint(embed)
        return {"embeddings_url": self._endpoint.url, "dim": str(width(embed))}

    def _at_home(self, folder: str, own: dict[str, str]) -> dict[str, str]:
        """The user's variables, with a home and quiet packages as adapters have them, and those of the mapping."""
        with self._scratch.home():
            inside = {name: value.replace(self._scratch.folder, folder) for name, value in os.environ.items()}
        return inside | own


def _hashes(files: Mapping[str, Path]) -> dict[str, str]:
    """So that a run does not go on with a file that was edited."""
    return {name: sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def _python(name: str | None, wanted_by: str) -> "tuple[list[str], Environment | None]":
    """The command of the Python that `{python}` stands for."""
    if name is None:
        return [sys.executable], None
    from forget_eval.isolation import environments
    from forget_eval.isolation.environments import State

    found = environments.find(name)
    line = f"    forget-eval env create {name}"
    if found is None or found.state not in (State.COMPLETE, State.STALE):
        raise UserError(f"{wanted_by} needs the environment '{name}', which is not there, or not whole.\n{line}")
    if found.state is State.STALE:
        what = f"the environment '{name}' is stale: its requirements have changed since."
        warnings.warn(f"{what}\n{line}", RuntimeWarning, stacklevel=2)
    return found.command, found
