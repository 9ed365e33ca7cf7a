"""Endpoints of chat models on loopback: one that answers by a script, and one that never comes to an end."""

import json
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import create_server
from threading import Event, Thread
from typing import Any

from forget_eval.membehave.chat import GREETING

Reply = tuple[int, bytes]
Script = Callable[[dict[str, Any]], Reply]


def says(text: str | None) -> Reply:
    return 200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


class Endpoint:
    """An OpenAI-compatible endpoint on loopback that answers by a script and remembers what it was asked.

    It replies to a greeting, and does not count it.
    """

    def __init__(self) -> None:
        self.greets = True
        self.script: Script = lambda request: says("Hello.")
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if endpoint.greets and request["messages"] == GREETING:
                    status, body = says("Hello.")
                else:
                    endpoint.requests.append(request)
                    endpoint.headers.append(dict(self.headers))
                    endpoint.paths.append(self.path)
                    status, body = endpoint.script(request)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.host}/v1"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def in_turn(self, *replies: Reply) -> None:
        """Gives these replies one after the other, the last one for ever."""
        left = list(replies)
        self.script = lambda request: left.pop(0) if len(left) > 1 else left[0]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Drip:
    """Sends something, and then a part of it again and again, as long as anybody reads."""

    def __init__(self, sent: bytes) -> None:
        self._socket = create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self._done = Event()
        self._thread = Thread(target=self._serve, args=(sent,), daemon=True)
        self._thread.start()

    def _serve(self, sent: bytes) -> None:
        connection, _ = self._socket.accept()
        with connection, suppress(OSError):
            connection.sendall(sent)
            while not self._done.wait(0.02):
                connection.sendall(sent if sent.endswith(b"\n") else b"x")

    def close(self) -> None:
        self._done.set()
        self._thread.join()
        self._socket.close()
