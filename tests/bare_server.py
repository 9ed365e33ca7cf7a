"""A memory server that speaks MCP line by line, without an SDK: it says what it is told to, right or wrong.

`python bare_server.py '{"schema": {...}}'`. Of the JSON's keys all may be left out: `name`, `description` and `schema`
of the tool that stores a text, `refuses` for the words with which it answers the greeting, `silent` for the method that
it never answers, `answers` for what it answers to a call, `pages` for a list of tools without an end.
"""

import json
import sys
from typing import Any

told = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


def tools(page: int) -> dict[str, Any]:
    add = {
        "name": told.get("name", "add_memory") + (f"_{page}" if page else ""),
        "description": told.get("description", "Keeps a text."),
        "inputSchema": told.get("schema", SCHEMA),
    }
    found: dict[str, Any] = {"tools": [add, {"name": "search_memories", "inputSchema": QUERY}]}
    return found | ({"nextCursor": str(page + 1)} if told.get("pages") else {})


def answer(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        if "refuses" in told:
            return {"error": {"code": -32000, "message": told["refuses"]}}
        about = {"name": "bare", "version": "1"}
        version = parameters["protocolVersion"]
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}}
    if method == "tools/list":
        return {"result": tools(int(parameters.get("cursor") or 0))}
    if method == "tools/call":
        return {"result": told.get("answers", {"content": [{"type": "text", "text": "[]"}]})}
    return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or message["method"] == told.get("silent"):
            continue
        found = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **found}), flush=True)


if __name__ == "__main__":
    main()
