"""Mappings: TOML files that say which tools of an MCP server do what our operations want.

    [server]     command, env, environment, distribution; or url, headers; timeout, start_timeout
    [inscribe]   tool, arguments with {text}; id
    [recall]     tool, arguments with {query} and {k}; items, text, id, score, scale, separator
    [supersede]  kind, tool, arguments; recall, id
    [release]    kind, tool, arguments; recall
    [purge]      kind, tool, arguments; recall, among
    [reset]      by; tool, arguments

An operation whose arguments hold {query} leaves the choice to the server. With {id} or {ids} the shared policies choose
among what is recalled (`recall` overrides arguments of the recall tool) or, for a purge, among all that was inscribed.
A supersede that does not hand over {text} inscribes the new text afterwards.

`timeout` is how long a call may last, in seconds; where a command has a limit of its own, the shorter of the two holds.
`start_timeout` is how long the server may take until it has listed its tools; without it the command's limit, but 60
seconds at most.
"""

import json
import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forget_datasets.errors import UserError, unknown
from forget_datasets.rows import OPERATIONS
from forget_datasets.shapes import misfit, unreadable
from forget_eval.mcp_servers.templates import ENVIRONMENT, placeholders
from forget_eval.protocols import Chooser, Kind, Scale

SHIPPED = Path(__file__).parent / "mappings"
_SCALES = {"cosine": Scale.COSINE, "euclidean": Scale.EUCLIDEAN, "none": Scale.NONE}
_CALL = {"tool": str, "arguments?": dict}
_CHANGE = {**_CALL, "kind": tuple(map(str, Kind)), "recall?": dict}
_COMMAND = {"command?": [str], "env?": {str: str}, "environment?": str, "distribution?": str}
_URL = {"url?": str, "headers?": {str: str}}
_PATHS = {"items?": str, "text?": str, "id?": str, "score?": str, "separator?": str}
_SHAPE = {
    "server": {**_COMMAND, **_URL, "timeout?": float, "start_timeout?": float},
    "inscribe": {**_CALL, "id?": str},
    "recall": {**_CALL, **_PATHS, "scale?": tuple(_SCALES)},
    "supersede?": {**_CHANGE, "id?": str},
    "release?": _CHANGE,
    "purge?": {**_CHANGE, "among?": ("recalled", "inscribed")},
    "reset?": {"by": ("restart", "tool", "namespace"), "tool?": str, "arguments?": dict},
}
_TIMEOUT = 60.0
_SERVER = ("python", "here", "data", "embeddings_url", "dim")
_CHOSEN = ("id", "ids")
_KNOWN = {
    "inscribe": ("text", "namespace"),
    "recall": ("query", "k", "namespace"),
    "supersede": ("query", "id", "text", "namespace"),
    "release": ("query", *_CHOSEN, "namespace"),
    "purge": ("query", *_CHOSEN, "namespace"),
    "reset": ("ids", "namespace"),
}


@dataclass(frozen=True)
class Call:
    """A tool with its arguments, in which placeholders stand; and further keys of its section.

    Attributes:
        section: its name in the file.
        wants: the placeholders in its arguments.
    """

    section: str
    tool: str
    arguments: dict[str, Any]
    keys: dict[str, Any] = field(default_factory=dict)

    @property
    def wants(self) -> list[str]:
        return placeholders(self.arguments)

    @property
    def chooser(self) -> Chooser:
        """Who chooses what is touched."""
        return Chooser.POLICY if any(name in self.wants for name in _CHOSEN) else Chooser.SYSTEM


@dataclass(frozen=True)
class ServerMapping:
    """A mapping that was read and makes sense.

    Attributes:
        name: "lethe" for a shipped one, else the file's without its ending.
        folder: that holds the file, which `{here}` stands for.
        content: the file, as it is.
        calls: of its sections but `server`.
    """

    name: str
    folder: Path
    content: dict[str, Any]
    calls: dict[str, Call]

    @property
    def server(self) -> dict[str, Any]:
        """Its section `server`."""
        section: dict[str, Any] = self.content["server"]
        return section

    @property
    def is_shipped(self) -> bool:
        """Whether it comes with this package."""
        return self.folder == SHIPPED

    @property
    def operations(self) -> list[str]:
        """Those of the three that it maps."""
        return [op for op in OPERATIONS if op in self.calls]

    @property
    def wants_embedder(self) -> bool:
        """Whether the server is to fetch its vectors from us."""
        return any(name in placeholders(self.server) for name in ("embeddings_url", "dim"))

    def timeouts(self, limit: float | None = None) -> tuple[float, float]:
        """Seconds for the start of the server with its handshake, and for each call.

        Args:
            limit: of the command for a call, None if it has none.
        """
        most = math.inf if limit is None else limit
        start = self.server.get("start_timeout", min(most, _TIMEOUT))
        return float(start), float(min(most, self.server.get("timeout", _TIMEOUT if limit is None else limit)))

    @property
    def scale(self) -> Scale:
        """What the scores are."""
        return _SCALES[self.content["recall"].get("scale", "none")]

    @property
    def reset_by(self) -> str:
        """How a server is emptied."""
        return str(self.content.get("reset", {}).get("by", "restart"))

    @property
    def wants_ids(self) -> bool:
        """Whether the ids of inscribed facts are needed later."""
        of_reset = "reset" in self.calls and "ids" in self.calls["reset"].wants
        return of_reset or self.content.get("purge", {}).get("among") == "inscribed"


def load(target: str) -> ServerMapping:
    """The mapping that `mcp:TARGET` names.

    Args:
        target: the name of one that is shipped, or the path of a TOML file.

    Raises:
        UserError: there is none, or the file is wrong: the message names file and key, and what was meant.
    """
    if target in shipped():
        return _read(SHIPPED / f"{target}.toml")
    if not target:
        raise UserError(f"adapter 'mcp' needs a mapping: {', '.join(f'mcp:{name}' for name in shipped())}, or {_OWN}")
    if not target.endswith(".toml") and not Path(target).is_file():
        raise UserError(f"{unknown('mapping', target, shipped())}\n    Of your own: {_OWN}")
    return _read(Path(target))


_OWN = "mcp:FILE.toml, which `forget-eval mcp inspect COMMAND...` begins for you."


def shipped() -> list[str]:
    """Names of the mappings that come with this package."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def parsed(text: str, path: Path) -> ServerMapping:
    """The mapping of a file's text. Raises UserError as `load` does."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not TOML: {error}") from error
    try:
        return _checked(content, path)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _read(path: Path) -> ServerMapping:
    try:
        return parsed(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 ({error.reason}).") from error
    except OSError as error:
        raise unreadable(path, error) from error


def _checked(content: dict[str, Any], path: Path) -> ServerMapping:
    _require_known_keys(content, _SHAPE, "")
    if what := misfit(content, _SHAPE):
        raise UserError(what)
    _check_server(content)
    calls = {name: _call(name, content[name]) for name in _KNOWN if "tool" in content.get(name, {})}
    _check_reset(content, calls)
    try:
        json.dumps(content, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UserError(f"a value cannot be an argument of a tool: {error}") from error
    return ServerMapping(path.stem, path.absolute().parent, content, calls)


def _require_known_keys(content: dict[str, Any], shape: dict[str, Any], place: str) -> None:
    known = {name.removesuffix("?"): inner for name, inner in shape.items()}
    for name, value in content.items():
        if name not in known:
            raise unknown(f"key in [{place}]" if place else "section", name, known)
        inner = known[name]
        if isinstance(value, dict) and isinstance(inner, dict) and str not in inner:
            _require_known_keys(value, inner, f"{place}.{name}" if place else name)


def _check_server(content: dict[str, Any]) -> None:
    server = content["server"]
    if ("command" in server) == ("url" in server) or not (server.get("command", True) and server.get("url", True)):
        raise UserError('[server] needs one of command = ["...", ...] and url = "http://.../mcp".')
    for key in ("timeout", "start_timeout"):
        if server.get(key, 1) <= 0:
            raise UserError(f"[server] {key} must be above 0 seconds.")
    at_url = "url" in server
    for key in ("headers",) if not at_url else ("env", "environment", "distribution"):
        if key in server:
            raise UserError(f"[server] {key} is for a {'command' if at_url else 'url'}.")
    for name in placeholders(server):
        if not name.startswith(ENVIRONMENT) and name not in _SERVER:
            raise unknown("placeholder in [server]", name, (*_SERVER, f"{ENVIRONMENT}VARIABLE"))


def _call(section: str, content: dict[str, Any]) -> Call:
    keys = {name: value for name, value in content.items() if name not in ("tool", "arguments")}
    call = Call(section, content["tool"], content.get("arguments", {}), keys)
    _require_known_placeholders(call.wants, section, _KNOWN[section])
    _require_known_placeholders(placeholders(keys.get("recall", {})), f"{section}.recall", _KNOWN["recall"])
    for problem in _lacking(call):
        raise UserError(f"[{section}] arguments {problem}")
    return call


def _require_known_placeholders(names: list[str], section: str, known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise unknown(f"placeholder in [{section}]", name, known)


def _lacking(call: Call) -> Iterator[str]:
    wanted = {"inscribe": "text", "recall": "query"}.get(call.section)
    if wanted and wanted not in call.wants:
        yield f"must hold {{{wanted}}}."
    choices = [name for name in ("query", *_CHOSEN) if name in call.wants]
    if call.section in OPERATIONS and len(choices) != 1:
        ways = "{query} (the server chooses) and {id} (the shared policy does)"
        yield f"must hold one of {ways.replace('{id}', '{id}' if call.section == 'supersede' else '{id} or {ids}')}."
    if call.chooser is Chooser.SYSTEM and call.section in OPERATIONS and {"recall", "among"} & call.keys.keys():
        yield "hold {query}: the server chooses, so there is nothing to recall or to choose among."


def _check_reset(content: dict[str, Any], calls: dict[str, Call]) -> None:
    by = content.get("reset", {}).get("by", "restart")
    if (by == "tool") != ("reset" in calls):
        raise UserError('[reset] has a tool if, and only if, by = "tool".')
    if by == "restart" and "url" in content["server"]:
        raise UserError('a server at a URL cannot be restarted: [reset] by = "tool" or by = "namespace" is needed.')
    named = all("namespace" in calls[section].wants for section in ("inscribe", "recall"))
    if by == "namespace" and not named:
        raise UserError('[reset] by = "namespace" needs {namespace} in the arguments of [inscribe] and of [recall].')
