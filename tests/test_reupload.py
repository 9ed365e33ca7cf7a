"""What the Hub is sent again, worked out on bytes whose chunks are known."""

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyfastcdc")

from scripts.measures import reupload

LARGEST = 128 << 10


def test_only_the_chunks_around_a_change_are_sent_again() -> None:
    data = random.Random(7).randbytes(2_000_000)
    assert reupload.sent_again(data, data) == 0
    assert reupload.sent_again(b"", data) == len(data)
    for changed in (data[:900_000] + b"!" + data[900_001:], data[:900_000] + data[900_001:]):
        assert 0 < reupload.sent_again(data, changed) <= 3 * LARGEST


def test_a_split_is_measured(forgeteval_built: tuple[Path, dict[str, Any]]) -> None:
    found = list(reupload.measure(forgeteval_built[0], "forgeteval", "en", "test"))
    assert [figures["change"] for figures in found] == ["edited", "deleted", "put in"]
    assert all(0 < figures["sent"] <= figures["file_bytes"] for figures in found)
