"""The endpoint of embeddings that servers are given."""

import json
import socket
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from forget_eval.mcp_servers.embeddings import EmbeddingsEndpoint


class TestEmbeddings:
    @pytest.fixture
    def endpoint(self) -> Iterator[EmbeddingsEndpoint]:
        def embed(given: Any) -> Any:
            if "bad" in given:
                raise ValueError("no vector for that")
            return np.array([[len(text), 0.1] for text in given], dtype=np.float32)

        endpoint = EmbeddingsEndpoint(embed)
        yield endpoint
        endpoint.close()

    def post(self, endpoint: EmbeddingsEndpoint, **content: Any) -> Any:
        request = urllib.request.Request(f"{endpoint.url}/embeddings", json.dumps(content).encode())
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def test_are_exact_in_both_encodings(self, endpoint: EmbeddingsEndpoint) -> None:
        tenth = float(np.float32(0.1))
        plain = self.post(endpoint, input=["a", "bcd"], model="m")
        assert [row["embedding"] for row in plain["data"]] == [[1.0, tenth], [3.0, tenth]]
        packed = self.post(endpoint, input="bcd", encoding_format="base64")["data"][0]["embedding"]
        assert np.frombuffer(b64decode(packed), dtype="<f4").tolist() == [3.0, tenth]

    def test_faults_reach_the_client(self, endpoint: EmbeddingsEndpoint) -> None:
        with pytest.raises(urllib.error.HTTPError) as raised:
            self.post(endpoint, input=["bad"])
        assert json.load(raised.value)["error"]["message"] == "ValueError: no vector for that"

    def test_end_with_the_endpoint(self, endpoint: EmbeddingsEndpoint) -> None:
        port = int(endpoint.url.rpartition(":")[2].partition("/")[0])
        endpoint.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
