"""Lethe's own MCP server, with a run's embedder where it would download a model, and nothing else changed.

Run as a script with the Python of the environment that holds `pylethe` and an MCP SDK older than 2. EMBEDDINGS_URL is
the base URL of an OpenAI-compatible service.
"""

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from http.client import HTTPConnection
from urllib.parse import urlsplit

if not hasattr(sqlite3.Connection, "enable_load_extension"):
    import pysqlite3

    sys.modules["sqlite3"] = pysqlite3

from lethe import mcp_server


def embedder() -> Callable[[str], list[float]]:
    """What Lethe calls once, before its first fact."""
    url = urlsplit(os.environ["EMBEDDINGS_URL"])
    service = HTTPConnection(url.netloc)

    def embed(text: str) -> list[float]:
        service.request("POST", f"{url.path}/embeddings", json.dumps({"input": [text]}))
        answer = json.load(service.getresponse())
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        vector: list[float] = answer["data"][0]["embedding"]
        return vector

    return embed


mcp_server._embedder = embedder
mcp_server.main()
