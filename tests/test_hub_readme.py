"""The section "Publish a release" of README.md is what the commands print against the double."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub_double import Hub

pytest_plugins = ("tests.hub_fixtures",)

Command = Callable[..., tuple[int, str, str]]

SECTION = re.compile(r"<!-- publish -->\n```text\n(.*?)```\n<!-- /publish -->", re.DOTALL)


def steady(text: str) -> str:
    """A text without what depends on the versions that wrote it: commits, and sizes of files."""
    text = re.sub(r"\b[0-9a-f]{40}\b", "<commit>", text)
    text = re.sub(r"(main: |from )[0-9a-f]{12}\b", r"\1<commit>", text)
    return re.sub(r" +[\d,]+ B| \([\d,]+ B\)", " <size>", text)


def test_the_transcript_is_what_the_commands_print(
    hub: Hub, forget: Command, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = SECTION.search((root / "README.md").read_text(encoding="utf-8"))
    assert section is not None
    monkeypatch.chdir(tmp_path)
    printed = ""
    for line in section[1].splitlines():
        if line.startswith("$ forget-datasets "):
            code, out, err = forget(*line.split()[2:])
            assert (code, err) == (0, "")
            printed += f"{line}\n{out}"
    assert steady(printed) == steady(section[1])
