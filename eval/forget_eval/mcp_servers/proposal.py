"""A mapping for a server that nobody has mapped yet, guessed from the names of its tools and their arguments.

What is a guess, a comment in the file says. Nothing is called, so what the tools answer is not known.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forget_datasets.rows import OPERATIONS

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
_STAND_INS = {"string": "forget-eval", "integer": 1, "number": 1.0, "boolean": False, "array": [], "object": {}}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_BARE = re.compile(r"[\w-]+", re.ASCII)


@dataclass(frozen=True)
class _Guess:
    """A tool that may do an operation, and what its arguments would be; `made_up` are those that nobody knows."""

    tool: str
    arguments: dict[str, Any]
    made_up: list[str]
    rank: tuple[int, ...]

    @property
    def wants(self) -> set[str]:
        return set(re.findall(r"\{(\w+)\}", json.dumps(self.arguments)))


def propose(tools: Iterable[Any], server: Mapping[str, Any]) -> str:
    """The text of a mapping.

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
    lines = [
        "# Begun by `forget-eval mcp inspect` from the names of the server's tools: read it before you trust it.",
        "",
        "[server]",
        *(f"{name} = {_toml(value)}" for name, value in server.items()),
    ]
    if "command" in server:
        lines.append('# Does it store below its home? If not, say where:   env = { SOME_VARIABLE = "{data}/store.db" }')
    for section in _VERBS:
        lines += ["", *_section(section, guesses.get(section))]
    return "\n".join([*lines, "", *_reset(guesses, "url" in server), ""])


def _guess(section: str, tools: Sequence[Any], nouns: set[str]) -> _Guess | None:
    found = [guess for tool in tools if (guess := _fitting(section, tool, nouns))]
    return min(found, key=lambda guess: guess.rank, default=None)


def _fitting(section: str, tool: Any, nouns: set[str]) -> _Guess | None:
    """The tool as a guess, if its name has a verb of the operation and its arguments take what it needs."""
    words, verbs = _words(tool.name), _VERBS[section]
    position = next((i for i, verb in enumerate(verbs) if verb in words), None)
    if position is None:
        return None
    arguments, made_up = _arguments(section, tool.input_schema or {})
    guess = _Guess(tool.name, arguments, made_up, (-len(words & nouns), position, len(made_up), len(tool.name)))
    choices = {"query", "id", "ids"} & guess.wants
    is_enough = _NEEDED[section] <= guess.wants if section in _NEEDED else bool(choices)
    return guess if is_enough else None


def _arguments(section: str, schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    arguments: dict[str, Any] = {}
    for what in _WANTED[section]:
        if what in ("id", "query") and {"{id}", "{ids}"} & {str(value) for value in arguments.values()}:
            continue
        name = next((name for name in _candidates(what, properties) if name not in arguments), None)
        if name is not None:
            arguments[name] = f"{{{what}}}"
    if section == "inscribe" and "messages" in properties and "{text}" not in arguments.values():
        arguments["messages"] = [{"role": "user", "content": "{text}"}]
    made_up = [name for name in required if name not in arguments]
    return arguments | {name: _stand_in(properties.get(name, {})) for name in made_up}, made_up


def _candidates(what: str, properties: Mapping[str, Any]) -> Iterator[str]:
    """Arguments that may be what is wanted, the likeliest first."""
    if what in ("id", "ids"):
        others = _ARGUMENTS["namespace"]
        yield from (n for n in properties if n not in others and (n == what or n.lower().endswith(f"_{what}")))
        return
    yield from (name for name in _ARGUMENTS[what] if name in properties and not _is_nested(properties[name]))


def _is_nested(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") in ("array", "object")


def _stand_in(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    return _STAND_INS.get(str(schema.get("type", "string")), "forget-eval")


def _section(section: str, guess: _Guess | None) -> Iterator[str]:
    if guess is None:
        yield f"# No tool looks like {section}: {', '.join(_VERBS[section])}."
        return
    yield f"[{section}]"
    if section in OPERATIONS:
        yield 'kind = "native"  # a guess; "emulated" if the tool has another effect that only amounts to this'
    yield f"tool = {_toml(guess.tool)}"
    yield f"arguments = {_toml(guess.arguments)}"
    for name in guess.made_up:
        yield f"# '{name}' is required, and its value made up."
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
        inner = (f"{name if _BARE.fullmatch(name) else _toml(name)} = {_toml(each)}" for name, each in value.items())
        return f"{{ {', '.join(inner)} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
