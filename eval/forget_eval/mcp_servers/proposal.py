"""A mapping for a server that nobody has mapped yet, guessed from the names of its tools and their arguments.

What is a guess, a comment in the file says. Nothing is called, so what the tools answer is not known.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomlkit

from forget_datasets.rows import OPERATIONS
from forget_eval.mcp_servers import schemas
from forget_eval.mcp_servers.templates import placeholders
from forget_eval.report.results import printable

_VERBS = {
    "inscribe": ("inscribe", "remember", "memorize", "add", "store", "save", "insert", "create", "write", "put"),
    "recall": ("recall", "search", "query", "retrieve", "find", "lookup"),
    "supersede": ("supersede", "update", "edit", "replace", "modify", "revise"),
    "release": ("release", "archive", "expire", "hide", "deactivate", "invalidate"),
    "purge": ("purge", "delete", "forget", "remove", "erase"),
}
_TEXT = ("text", "content", "memory", "fact", "data", "message", "value", "body", "observation", "document", "note")
_ARGUMENTS = {
    "text": (*_TEXT, *(f"new_{name}" for name in _TEXT)),
    "query": ("query", "q", "question", "search_query", "search", "prompt", "keywords", "text"),
    "k": ("k", "limit", "top_k", "n", "n_results", "num_results", "max_results", "count", "size"),
    "namespace": ("user_id", "namespace", "wing", "collection", "session_id", "agent_id", "project", "scope"),
}
_WANTED = {
    "inscribe": ("text", "namespace"),
    "recall": ("query", "k", "namespace"),
    "supersede": ("id", "text", "namespace"),
    "release": ("ids", "id", "query", "namespace"),
    "purge": ("ids", "id", "query", "namespace"),
}
_NEEDED = {"inscribe": {"text"}, "recall": {"query"}, "supersede": {"id"}}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass(frozen=True)
class _Guess:
    """A tool that may do an operation, and what its arguments would be.

    Attributes:
        made_up: arguments that nobody knows.
        lacking: arguments that it wants, and for which a mapping can hold no value.
        rank: the lowest is taken.
    """

    tool: str
    arguments: dict[str, Any]
    made_up: list[str]
    lacking: list[str]
    rank: tuple[int, ...]

    @property
    def wants(self) -> set[str]:
        return set(placeholders(self.arguments))


def propose(tools: Iterable[Any], server: Mapping[str, Any]) -> str:
    """The text of a mapping, as TOML that steers no terminal.

    Args:
        tools: the SDK's.
        server: what goes into the section [server]: command or url.
    """
    known = list(tools)
    guesses: dict[str, _Guess] = {}
    for section in _VERBS:
        nouns = _words(guesses["inscribe"].tool) if "inscribe" in guesses else set()
        if found := _guess(section, known, nouns):
            guesses[section] = found
    usable = {section: guess for section, guess in guesses.items() if not guess.lacking}
    lines = [
        "# Begun by `forget-eval mcp inspect` from the names of the server's tools: read it before you trust it.",
        "",
        "[server]",
        *(f"{name} = {_toml(value)}" for name, value in server.items()),
    ]
    if "command" in server:
        lines.append('# Does it store below its home? If not, say where:   env = { SOME_VARIABLE = "{data}/store.db" }')
    stray = ", ".join(f"{{{name}}}" for name in placeholders(server))
    if stray:
        lines.append(f"# Here {stray} would stand for something else: the server must be started in another way.")
    for section in _VERBS:
        lines += ["", *_section(section, guesses.get(section))]
    lines += ["", *_reset(usable, "url" in server), ""]
    return "\n".join(map(_escaped, lines))


def _guess(section: str, tools: Sequence[Any], nouns: set[str]) -> _Guess | None:
    found = [guess for tool in tools if (guess := _fitting(section, tool, nouns))]
    return min(found, key=lambda guess: guess.rank, default=None)


def _fitting(section: str, tool: Any, nouns: set[str]) -> _Guess | None:
    """The tool as a guess, if its name has a verb of the operation and its arguments take what it needs."""
    words, verbs = _words(tool.name), _VERBS[section]
    position = next((i for i, verb in enumerate(verbs) if verb in words), None)
    if position is None:
        return None
    arguments, made_up, lacking = _arguments(section, tool)
    rank = (len(lacking), -len(words & nouns), position, len(made_up), len(tool.name))
    guess = _Guess(tool.name, arguments, made_up, lacking, rank)
    choices = {"query", "id", "ids"} & guess.wants
    is_enough = _NEEDED[section] <= guess.wants if section in _NEEDED else bool(choices)
    return guess if is_enough else None


def _arguments(section: str, tool: Any) -> tuple[dict[str, Any], list[str], list[str]]:
    """What a tool would be given, and the names of what is made up of it, and of what it wants and cannot be given."""
    known = schemas.arguments(tool)
    arguments: dict[str, Any] = {}
    for what in _WANTED[section]:
        if what in ("id", "query") and {"{id}", "{ids}"} & {str(value) for value in arguments.values()}:
            continue
        name = next((name for name in _candidates(what, known) if name not in arguments), None)
        if name is not None:
            arguments[name] = f"{{{what}}}"
    if section == "inscribe" and "messages" in known and "{text}" not in arguments.values():
        arguments["messages"] = [{"role": "user", "content": "{text}"}]
    made_up, lacking = {}, []
    for name in (name for name in schemas.required(tool) if name not in arguments):
        try:
            made_up[name] = schemas.stand_in(known.get(name))
        except schemas.NoValue:
            lacking.append(name)
    return arguments | made_up, list(made_up), lacking


def _candidates(what: str, known: Mapping[str, Any]) -> Iterator[str]:
    """Arguments that may be what is wanted, the likeliest first."""
    if what in ("id", "ids"):
        others = _ARGUMENTS["namespace"]
        yield from (n for n in known if n not in others and (n == what or n.lower().endswith(f"_{what}")))
        return
    yield from (name for name in _ARGUMENTS[what] if name in known and not schemas.is_nested(known[name]))


def _section(section: str, guess: _Guess | None) -> Iterator[str]:
    if guess is None:
        yield f"# No tool looks like {section}: {', '.join(_VERBS[section])}."
        return
    if guess.lacking:
        names = ", ".join(f"'{printable(name)}'" for name in guess.lacking)
        yield f"# {printable(guess.tool)} looks like {section}, but wants {names}, and TOML has no value that would do."
        return
    yield f"[{section}]"
    if section in OPERATIONS:
        yield 'kind = "native"  # a guess; "emulated" if the tool has another effect that only amounts to this'
    yield f"tool = {_toml(guess.tool)}"
    yield f"arguments = {_toml(guess.arguments)}"
    for name in guess.made_up:
        yield f"# '{printable(name)}' is required, and its value made up."
    if section == "inscribe":
        yield '# id = "path.to.id"   where the answer has the new id, if it is not found by itself'
    if section == "recall":
        yield '# items, text, id, score = "path"   where facts and their parts are, if they are not found by themselves'
        yield '# scale = "cosine"   if the scores are cosines'
    if section == "purge" and guess.wants & {"id", "ids"}:
        yield 'among = "inscribed"  # "recalled" if inscribing tells no ids'


def _reset(guesses: Mapping[str, _Guess], at_url: bool) -> Iterator[str]:
    named = all("namespace" in guesses[section].wants for section in ("inscribe", "recall") if section in guesses)
    yield "[reset]"
    if not at_url:
        yield 'by = "restart"  # the server is started anew on an empty folder'
    elif named and {"inscribe", "recall"} <= guesses.keys():
        yield 'by = "namespace"  # a guess: nothing of one {namespace} is recalled in another'
    else:
        yield "# A server at a URL cannot be restarted. Name the tool that empties it."
        yield 'by = "tool"'
        yield 'tool = "?"'


def _words(name: str) -> set[str]:
    """Of a tool's name; plurals count as singulars."""
    return {word.lower().rstrip("s") if len(word) > 3 else word.lower() for word in _WORD.findall(name)}


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update(value)
        return table.as_string()
    return str(tomlkit.item(value).as_string())


def _escaped(line: str) -> str:
    """What TOML lets stand in a text and a terminal may obey, as TOML's escape of it."""
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in line)
