"""What a tool's JSON Schema says of its arguments. Whatever else it says, or says in an odd way, stands for "anything".

A schema is an object, or true or false: anything goes, or nothing. What a server lists as a tool is read here alone.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from forget_eval.mcp_servers.templates import placeholders

ANY = "any"
_EMPTY = {"string": "forget-eval", "integer": 1, "number": 1.0, "boolean": False, "array": [], "object": {}}
_ALTERNATIVES = ("anyOf", "oneOf")


class NoValue(Exception):
    """No value that a mapping can hold would be right."""


def arguments(tool: Any) -> dict[str, Any]:
    """The schemas of a tool's arguments by their names, without those that may not be given.

    Args:
        tool: the SDK's.
    """
    properties = _object(tool.input_schema).get("properties")
    return {name: schema for name, schema in _object(properties).items() if schema is not False}


def required(tool: Any) -> list[str]:
    """The names of the arguments that a tool wants."""
    names = _object(tool.input_schema).get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []


def takes_others(tool: Any) -> bool:
    """Whether a tool takes arguments that its schema does not name."""
    return bool(_object(tool.input_schema).get("additionalProperties"))


def types(schema: Any) -> list[str]:
    """The types that a value may have, each once; "any" is one."""
    found = _object(schema)
    named = found.get("type")
    if isinstance(named, str | list):
        several = [named] if isinstance(named, str) else named
        return list(dict.fromkeys("null" if each is None else str(each) for each in several)) or [ANY]
    return list(dict.fromkeys(kind for inner in _alternatives(found) for kind in types(inner))) or [ANY]


def is_nested(schema: Any) -> bool:
    """Whether a value is a list or an object, and nothing else that is a value."""
    return {"null"} < {*types(schema), "null"} <= {"array", "object", "null"}


def stand_in(schema: Any) -> Any:
    """A value that the schema allows, as far as it is understood, and that a mapping can hold.

    Raises:
        NoValue: of those that it allows, there is none.
    """
    found = _object(schema)
    if "const" in found or isinstance(found.get("enum"), list):
        choices = [found["const"]] if "const" in found else found["enum"]
        for choice in choices:
            if _can_be_held(choice):
                return choice
        raise NoValue
    if "type" not in found and (alternatives := list(_alternatives(found))):
        return _first_of(alternatives)
    kinds = [kind for kind in types(found) if kind != "null"]
    if not kinds:
        raise NoValue
    return _EMPTY.get(kinds[0], "forget-eval")


def _first_of(alternatives: list[Any]) -> Any:
    for each in alternatives:
        try:
            return stand_in(each)
        except NoValue:
            continue
    raise NoValue


def _alternatives(schema: Mapping[str, Any]) -> Iterator[Any]:
    for key in _ALTERNATIVES:
        inner = schema.get(key)
        yield from inner if isinstance(inner, list) else ()


def _can_be_held(value: Any) -> bool:
    """TOML has no null, a request no number that is none, and a text in braces stands for something else."""
    if isinstance(value, Mapping):
        return all(map(_can_be_held, value.values()))
    if isinstance(value, list):
        return all(map(_can_be_held, value))
    if isinstance(value, str):
        return not placeholders(value)
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def _object(schema: Any) -> Mapping[str, Any]:
    return schema if isinstance(schema, Mapping) else {}
