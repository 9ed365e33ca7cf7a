"""The embedder of a run behind an OpenAI-compatible address, for servers that fetch their vectors over HTTP.

POST /v1/embeddings takes {"input": text or texts, "encoding_format": "float" or "base64"}. Nothing is reachable from
another machine, and the address ends with the run.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from forget_eval.guest import said
from forget_eval.protocols import Embedder

_PATHS = ("/v1/embeddings", "/embeddings")


class EmbeddingsEndpoint:
    """Serves an embedder on a free port of the loopback, in threads of its own, until `close`.

    Attributes:
        url: what a client calls its base URL; it ends in /v1.
    """

    def __init__(self, embed: Embedder) -> None:
        asking = Lock()

        class Handler(_Handler):
            def vectors(self, texts: Sequence[str]) -> Any:
                with asking:
                    return embed(texts)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Frees the port. A second time nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # a client keeps its connection
    wbufsize = -1  # head and body in one packet
    disable_nagle_algorithm = True

    def vectors(self, texts: Sequence[str]) -> Any:
        raise NotImplementedError

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path not in _PATHS:
            self._answer(404, {"error": {"message": f"there is only {_PATHS[0]} here"}})
            return
        try:
            self._answer(200, self._embedded(json.loads(body)))
        except Exception as error:  # whatever the request or the embedder does, the server hears of it
            self._answer(500, {"error": {"message": said(error)}})

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def _embedded(self, request: dict[str, Any]) -> dict[str, Any]:
        given = request["input"]
        texts = [given] if isinstance(given, str) else [str(text) for text in given]
        as_base64 = request.get("encoding_format") == "base64"
        rows = [b64encode(row.tobytes()).decode() if as_base64 else row.tolist() for row in self.vectors(texts)]
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return {"object": "list", "data": data, "model": request.get("model", ""), "usage": usage}

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
