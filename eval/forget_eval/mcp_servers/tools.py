"""Whether a server has the tools that a mapping names, with the arguments that it gives them."""

from collections.abc import Iterable, Mapping
from typing import Any

from forget_datasets.errors import UserError, unknown
from forget_eval.mcp_servers import schemas
from forget_eval.mcp_servers.mapping import Call, ServerMapping


def require_tools(mapping: ServerMapping, tools: Mapping[str, Any]) -> None:
    """Compares a mapping with what a server lists.

    Args:
        mapping: of the server.
        tools: the SDK's, by name.

    Raises:
        UserError: a tool or an argument that the server does not have, or one that it wants and is not given; the
            message names the section of the mapping.
    """
    for call in mapping.calls.values():
        if call.tool not in tools:
            raise UserError(f"mapping '{mapping.name}', [{call.section}]: {unknown('tool', call.tool, tools)}")
        for problem in _misgiven(call, tools[call.tool]):
            raise UserError(f"mapping '{mapping.name}', [{call.section}]: {problem}")


def _misgiven(call: Call, tool: Any) -> Iterable[str]:
    known, given = schemas.arguments(tool), call.arguments
    if known and not schemas.takes_others(tool):
        for name in (*given, *(call.keys.get("recall", {}) if call.section == "recall" else ())):
            if name not in known:
                yield str(unknown(f"argument of tool {call.tool}", name, known))
    for name in schemas.required(tool):
        if name not in given:
            yield f"tool {call.tool} wants an argument '{name}'."
