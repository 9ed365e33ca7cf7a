"""A memory server that speaks MCP, for tests: `python memory_server.py [junk] [http]`.

It ranks by shared words. A query that begins with "!" makes a fault. With `junk` it talks on its output before it
speaks; with `http` it serves a free port of the loopback, which it prints.
"""

import os
import socket
import sys
import time
from typing import Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

WIRE = os.dup(1)  # the SDK keeps what is printed off its own
server = MCPServer("words", version="7.1", log_level="CRITICAL")
facts: dict[int, dict[str, Any]] = {}
count = 0


def fault(kind: str) -> Any:
    if kind == "raise":
        raise ToolError("the disk is full")
    if kind == "value":
        return {"success": False, "error": "the palace is locked"}
    if kind == "malformed":
        os.write(WIRE, b'{"jsonrpc": "2.0", "id": 99, "result": oops\n')
        time.sleep(600)
    if kind == "hang":
        time.sleep(600)
    if kind == "die":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)
    if kind == "child":
        child = os.fork()
        if child == 0:
            os.setsid()
            time.sleep(600)
        return {"results": [{"id": os.getpid(), "text": str(os.getpid())}, {"id": child, "text": str(child)}]}
    return {"results": "nothing found"}


@server.tool()
def add_memory(text: str, user_id: str = "") -> dict[str, Any]:
    """Keeps a text."""
    global count
    count += 1
    facts[count] = {"text": text, "user_id": user_id, "hidden": False}
    return {"id": count}


@server.tool()
def search_memories(query: str, limit: int = 5, user_id: str = "", hidden: bool = False) -> dict[str, Any]:
    """Finds texts by the words that they share with a query."""
    if query.startswith("!"):
        return fault(query[1:])
    words = set(query.lower().split())
    found = [
        {"id": id, "text": fact["text"], "score": len(words & set(fact["text"].lower().split())) / len(words)}
        for id, fact in facts.items()
        if fact["user_id"] == user_id and (hidden or not fact["hidden"])
    ]
    return {"results": sorted(found, key=lambda fact: -fact["score"])[:limit]}


@server.tool()
def update_memory(memory_id: int, text: str) -> dict[str, Any]:
    """Puts another text in place of one."""
    facts[memory_id]["text"] = text
    return {"id": memory_id}


@server.tool()
def archive_memories(ids: list[int]) -> int:
    """Hides texts."""
    for id in ids:
        facts[id]["hidden"] = True
    return len(ids)


@server.tool()
def delete_memories(ids: list[int]) -> int:
    """Deletes texts."""
    for id in ids:
        del facts[id]
    return len(ids)


@server.tool()
def delete_matching(query: str) -> int:
    """Deletes the texts that hold a string."""
    gone = [id for id, fact in facts.items() if query in fact["text"]]
    for id in gone:
        del facts[id]
    return len(gone)


@server.tool()
def variables() -> dict[str, Any]:
    """What the server was started with."""
    return {"home": os.environ["HOME"], "folder": os.getcwd()}


def main() -> None:
    if "junk" in sys.argv:
        os.write(WIRE, b'Loading the model...\n\n{"level": "info", "message": "ready"}\n')
    if "http" not in sys.argv:
        server.run()
        return
    import uvicorn

    here = socket.create_server(("127.0.0.1", 0))
    os.write(WIRE, f"{here.getsockname()[1]}\n".encode())
    app = server.streamable_http_app()
    anyio.run(lambda: uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[here]))


if __name__ == "__main__":
    main()
