"""What `forget-eval env create` does for systems with needs of their own."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from forget_datasets.errors import UserError
from forget_eval.cli import main
from forget_eval.isolation import environments, requirements
from forget_eval.isolation.environments import Environment


def _create(name: str, *options: str) -> str:
    done = CliRunner().invoke(main, ["env", "create", name, *options], standalone_mode=False, catch_exceptions=False)
    return done.stderr


@pytest.mark.parametrize(("name", "has", "needs"), [("graphiti", "3.11.7", "3.13"), ("letta", "3.12.9", "3.11")])
def test_a_python_that_does_not_fit_is_refused_with_the_line_that_gets_one(
    name: str, has: str, needs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, uv = tmp_path / "python", tmp_path / "uv"
    other.write_text(f"#!/bin/sh\necho '{json.dumps([str(other), has, True])}'\n")
    uv.write_text("#!/bin/sh\n")
    for program in (other, uv):
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as raised:
        _create(name, "--python", str(other))
    said = str(raised.value)
    assert said.startswith(f"the environment of '{name}' needs Python ")
    assert said.endswith(f"; {other} is {has}. uv python install {needs}")


@pytest.mark.parametrize("name", ["hipporag", "hipporag-dense", "hipporag-llm"])
def test_the_environment_of_every_configuration_of_a_package_is_that_of_the_package(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGET_EVAL_ENVS", str(tmp_path))
    wanted = requirements.packaged("hipporag")
    assert wanted is not None
    python = tmp_path / "hipporag" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("")
    made = Environment("hipporag", "3.11.7", str(wanted.path), wanted.sha256, of_users_file=False, is_whole=True)
    environments._write(made)
    assert _create(name) == f"the environment of 'hipporag' is there: {tmp_path / 'hipporag'}\n"


@pytest.mark.parametrize(
    ("versions", "told"), [({"numpy": "9.9"}, "1 package "), ({"a": "1", "b": "2"}, "2 packages ")]
)
def test_packages_are_counted_in_words_that_fit(
    versions: dict[str, str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGET_EVAL_ENVS", str(tmp_path))
    (tmp_path / "mine").mkdir()
    environments._write(Environment("mine", "3.11.7", "needs.txt", "0" * 64, True, is_whole=True, packages=versions))
    listed = CliRunner().invoke(main, ["env", "ls"], catch_exceptions=False).stdout
    assert told in listed
