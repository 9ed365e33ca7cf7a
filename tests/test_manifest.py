"""The manifest is read through one check: whatever is wrong with it, the message names the file and the key."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forget_datasets import manifest
from forget_datasets.errors import UserError
from forget_datasets.validate import Problem, validate


def put(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value

    return change


def drop(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for key in path[:-1]:
            content = content[key]
        del content[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (put("dataset", value={}), "'dataset' is an object, not 'forgeteval' or 'membehave'"),
        (put("dataset", value=["forgeteval"]), "'dataset' is a list"),
        (drop("dataset"), "'dataset' is missing"),
        (put("schema_version", value="1"), "'schema_version' is '1', not a whole number"),
        (drop("schema_version"), "'schema_version' is missing"),
        (put("parameters", value=[]), "'parameters' is a list, not an object"),
        (put("parameters", "seed", value="42"), "'parameters.seed' is '42', not a whole number"),
        (put("parameters", "stress", value=0), "'parameters.stress' is 0, not true or false"),
        (put("parameters", "langs", value="en"), "'parameters.langs' is 'en', not a list"),
        (put("parameters", "langs", value=[5]), "'parameters.langs[0]' is 5, not a text"),
        (put("parameters", "n_per_family", value=True), "'parameters.n_per_family' is true, not a whole number"),
        (put("configs", value=None), "'configs' is null, not an object"),
        (drop("configs"), "'configs' is missing"),
        (put("configs", "handmade", value="15 rows"), "'configs.handmade' is '15 rows', not an object"),
        (put("configs", "handmade", "languages", value=5), "'configs.handmade.languages' is 5, not a list"),
        (put("configs", "handmade", "rows", value=1.5), "'configs.handmade.rows' is 1.5, not a whole number"),
        (put("configs", "handmade", "content_hash", value=1), "'configs.handmade.content_hash' is 1, not a text"),
        (drop("configs", "handmade", "splits"), "'configs.handmade.splits' is missing"),
        (put("configs", "handmade", "splits", value=[]), "'configs.handmade.splits' is a list, not an object"),
        (drop("configs", "handmade", "splits", "test", "files"), "'configs.handmade.splits.test.files' is missing"),
        (
            put("configs", "handmade", "splits", "test", "files", value={}),
            "'configs.handmade.splits.test.files' is an object, not a list",
        ),
        (put("versions", value={"python": 3}), "'versions.python' is 3, not a text"),
    ],
)
def test_a_key_that_is_not_as_it_should_be_is_named(
    handmade_folder: Path, change: Callable[[dict[str, Any]], None], what: str
) -> None:
    path = handmade_folder / "manifest.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    for read in (manifest.read, validate):
        with pytest.raises(UserError, match=f"{re.escape(str(path))}: field {re.escape(what)}"):
            read(handmade_folder)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "5",
        '"forgeteval"',
        "{",
        "[" * 100_000,
        '{"a":' * 100_000,
        "1" * 5000,
        b"\xff\xfe{}",
        b'{"dataset": "\xff"}',
    ],
)
def test_content_that_is_no_manifest_is_named(handmade_folder: Path, content: str | bytes) -> None:
    path = handmade_folder / "manifest.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UserError, match=re.escape(str(path))):
        manifest.read(handmade_folder)


def test_a_folder_in_its_place_is_named(handmade_folder: Path) -> None:
    path = handmade_folder / "manifest.json"
    path.unlink()
    path.mkdir()
    for read in (manifest.read, validate):
        with pytest.raises(UserError, match=rf"{re.escape(str(path))}: Is a directory"):
            read(handmade_folder)


def test_what_a_later_version_adds_is_passed_over(handmade_folder: Path) -> None:
    path = handmade_folder / "manifest.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["configs"]["handmade"]["new"] = content["new"] = content["parameters"]["new"] = {}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert manifest.read(handmade_folder) == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: Is a directory"),
        (b"\xff", "its YAML cannot be read"),
        (b"---\nconfigs: [\n---\n", "its YAML cannot be read"),
        (b"---\na: " + b"[" * 5000 + b"\n---\n", "its YAML cannot be read"),
    ],
)
def test_a_card_that_cannot_be_read_is_a_problem(handmade_folder: Path, content: bytes | None, message: str) -> None:
    path = handmade_folder / "README.md"
    path.unlink()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    [problem] = validate(handmade_folder).problems
    assert isinstance(problem, Problem)
    assert problem.file == "README.md"
    assert problem.message.startswith(message)
