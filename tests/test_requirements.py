"""What an environment is made of: the folder, the comments of a requirement file, the Python, and the limits."""

import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from forget_datasets.errors import UserError
from forget_eval.env_commands import isolation_of
from forget_eval.isolation import environments, interpreters, requirements


def test_the_folder_of_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGET_EVAL_ENVS", "/a")
    assert environments.root() == Path("/a")
    monkeypatch.delenv("FORGET_EVAL_ENVS")
    monkeypatch.setenv("XDG_DATA_HOME", "/b")
    assert environments.root() == Path("/b/forget-eval/envs")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/c")
    assert environments.root() == Path("/c/.local/share/forget-eval/envs")


def _requirements(tmp_path: Path, content: str) -> requirements.Requirements:
    path = tmp_path / "reqs.txt"
    path.write_text(content)
    return requirements.users(path)


def test_comments_of_a_requirement_file_are_read(tmp_path: Path) -> None:
    found = _requirements(tmp_path, "# Python 3.12.1, 2026-11-30\n# requires-python: >=3.12\na==1\n")
    assert found.tried == "3.12"
    assert [v for v in ("3.11.9", "3.12.0", "3.13.2") if found.requires.contains(v)] == ["3.12.0", "3.13.2"]
    bare = _requirements(tmp_path, "a==1\n")
    assert (bare.tried, bare.requires) == (None, SpecifierSet(">=3.11"))
    with pytest.raises(UserError, match=r"requires-python: >=3\.12"):
        _ = _requirements(tmp_path, "# requires-python: three\n").requires


def test_a_python_that_is_not_there_comes_with_the_line_that_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "pyenv"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    absent = "3.13" if sys.version_info[:2] != (3, 13) else "3.12"
    with pytest.raises(UserError, match=rf"needs Python ==3.*no such Python is here.\n    pyenv install {absent}"):
        interpreters.choose(SpecifierSet(f"=={absent}.*"), None, "it")


def test_pyenvs_folder_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    program = tmp_path / "pyenv" / "versions" / "3.13.7" / "bin" / "python3"
    program.parent.mkdir(parents=True)
    program.write_text(f"""#!/bin/sh\necho '["{program}", "3.13.7", true]'\n""")
    program.chmod(0o755)
    expected = interpreters.Interpreter(str(program), "3.13.7", True)
    if sys.version_info[:2] != (3, 13):
        assert interpreters.choose(SpecifierSet(">=3.11"), "3.13", "it") == expected
        assert interpreters.named("3.13", SpecifierSet(">=3.11"), "it") == expected
    with pytest.raises(UserError, match=r"it needs Python <3\.12"):
        interpreters.named(str(program), SpecifierSet("<3.12"), "it")


def test_the_python_that_was_tried_is_preferred_and_another_will_do() -> None:
    here = f"3.{sys.version_info[1]}"
    assert interpreters.choose(SpecifierSet(">=3.11"), here, "it").minor == here
    assert interpreters.choose(SpecifierSet(f"=={here}.*"), "3.99", "it").minor == here


def test_options_become_limits() -> None:
    isolation = isolation_of(True, 5.0, 512)
    assert (isolation.isolate, isolation.limits.timeout, isolation.limits.memory_mb) == (True, 5.0, 512)
