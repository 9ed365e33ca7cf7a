"""The model of the Hub, fetched from a double on loopback."""

import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from forget_eval.embedding.onnx import FP32_ONNX_SHA256

pytest_plugins = ("tests.embedding_doubles",)
pytestmark = pytest.mark.usefixtures("own_cache")


LOAD_MINILM = """
import sys
from forget_datasets.errors import UserError
sys.modules["sentence_transformers"] = None  # as if it were not installed
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "sentence_transformers" else find_spec(name, *rest)
from forget_eval import embedding
try:
    embedding.load("minilm")
except UserError as error:
    print(error)
"""


class HubDouble(BaseHTTPRequestHandler):
    """Serves the same bytes for every file of every repository."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        headers = {"Content-Length": "13", "ETag": '"an-etag"', "X-Repo-Commit": "a" * 40}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(b"not the model")

    def log_message(self, *_: object) -> None: ...


class EmptyHub(HubDouble):
    """Has no file at all."""

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()


@pytest.fixture
def load_minilm(tmp_path: Path) -> Callable[..., str]:
    """What loading `minilm` without sentence-transformers complains of, the real client asking a Hub of ours."""

    def load(hub: type[BaseHTTPRequestHandler] | None) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        environment |= {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": "dummy"}
        if hub is None:
            return _complaint({**environment, "HF_HUB_OFFLINE": "1"})
        with ThreadingHTTPServer(("127.0.0.1", 0), hub) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            try:
                return _complaint({**environment, "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}"})
            finally:
                server.shutdown()

    return load


def _complaint(environment: dict[str, str]) -> str:
    command = [sys.executable, "-c", LOAD_MINILM]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_another_file_of_the_hub_is_refused_and_where_it_lies_is_said(
    load_minilm: Callable[..., str], tmp_path: Path
) -> None:
    complaint = load_minilm(HubDouble)
    repository = tmp_path / "hf" / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2"
    assert (repository / "snapshots" / ("a" * 40) / "onnx" / "model.onnx").read_bytes() == b"not the model"
    assert f"has sha256 {sha256(b'not the model').hexdigest()}, not the pinned {FP32_ONNX_SHA256}" in complaint
    assert f"Remove the folder {repository} to have it fetched anew, or take 'minilm-int8'." in complaint


@pytest.mark.parametrize(("hub", "way"), [(None, "or unset HF_HUB_OFFLINE"), (EmptyHub, "or make http://127.0.0.1")])
def test_without_the_hub_every_way_out_is_said(load_minilm: Callable[..., str], hub: Any, way: str) -> None:
    complaint = load_minilm(hub)
    assert complaint.startswith("embedder 'minilm' needs sentence-transformers, which is not installed, or a file of")
    assert "[embed]" in complaint
    assert way in complaint
    assert "or take 'minilm-int8'" in complaint
