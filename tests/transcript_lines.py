"""Transcripts as tests compare them."""

import json
from pathlib import Path
from typing import Any


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: timeless(inner) for name, inner in value.items() if name != "seconds"}
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


def lines(folder: Path) -> list[str]:
    """The transcripts of a run, each without its seconds and with its keys in their order."""
    found = (folder / "transcripts.jsonl").read_text().splitlines()
    return [json.dumps(timeless(json.loads(line))) for line in found]
