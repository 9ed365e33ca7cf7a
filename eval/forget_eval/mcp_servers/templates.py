"""Placeholders in a mapping: `{text}` in an argument, `{data}` in a command."""

import re
from collections.abc import Collection, Mapping
from typing import Any

_PLACEHOLDER = re.compile(r"\{([a-z]\w*(?:\.\w+)?)\}")
ENVIRONMENT = "env."
"""Begins a placeholder that stands for a variable of the user's environment, as `{env.API_KEY}`."""


def placeholders(template: Any) -> list[str]:
    """The names in a template, which is a string or holds strings, however deep; each once."""
    if isinstance(template, str):
        return list(dict.fromkeys(_PLACEHOLDER.findall(template)))
    inner: Collection[Any] = ()
    if isinstance(template, Mapping):
        inner = template.values()
    elif isinstance(template, list):
        inner = template
    return list(dict.fromkeys(name for each in inner for name in placeholders(each)))


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with values in place of names. A string that is one placeholder becomes the value itself."""
    if isinstance(template, Mapping):
        return {name: filled(inner, values) for name, inner in template.items()}
    if isinstance(template, list):
        return [filled(inner, values) for inner in template]
    if not isinstance(template, str):
        return template
    whole = _PLACEHOLDER.fullmatch(template)
    if whole:
        return values[whole[1]]
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), template)
