"""Environments of their own: made, listed, used and removed with real venvs, from an index that lies in a folder."""

import base64
import io
import json
import os
import select as system
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval import catalogue, locks
from forget_eval.env_commands import env
from forget_eval.isolation import environments, interpreters, requirements
from forget_eval.isolation.environments import State
from forget_eval.isolation.selection import select, wants_embedder

NAME = "shelves:Shelf"
SHELF = """
import tinystore

class Shelf:
    name = "shelf"
    distribution = "tinystore"
    def __init__(self, embed): self.store = tinystore.Store()
    def reset(self): self.store.clear()
    def inscribe(self, text): self.store.append(text); return len(self.store)
    def recall_texts(self, query, k=5): return self.store[:k]
"""


def wheel(folder: Path, name: str, version: str, code: str) -> None:
    """A package of one module, as pip installs it."""
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": code,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in files.items()]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        for path, text in files.items():
            file.writestr(path, text)
        file.writestr(f"{about}/RECORD", "\n".join([*lines, f"{about}/RECORD,,"]) + "\n")


BACKEND = """
import os

def build_wheel(folder, *_):
    with open({pipe!r}, "w") as pipe:
        pipe.write(f"{{os.getpid()}}\\n")
    with open({never!r}) as never:
        never.read()
"""


def endless(folder: Path) -> Path:
    """Puts a package in the index whose making never ends, and gives the pipe to which that writes its process id."""
    pipe, never = folder / "pipe", folder / "never"
    os.mkfifo(pipe)
    os.mkfifo(never)
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": BACKEND.format(pipe=str(pipe), never=str(never)),
        "PKG-INFO": "Metadata-Version: 2.1\nName: endless\nVersion: 1\n",
    }
    with tarfile.open(folder / "index" / "endless-1.tar.gz", "w:gz") as file:
        for name, text in files.items():
            member = tarfile.TarInfo(f"endless-1/{name}")
            member.size = len(text)
            file.addfile(member, io.BytesIO(text.encode()))
    (folder / "endless.txt").write_text("endless==1\n")
    return pipe


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds wheels, a class that needs one of them, its requirements, and the environments."""
    place = tmp_path_factory.mktemp("environments")
    (place / "index").mkdir()
    wheel(place / "index", "tinystore", "1.2", "class Store(list): pass\n")
    wheel(place / "index", "numpy", "9.9", "")
    (place / "shelves.py").write_text(SHELF, encoding="utf-8")
    (place / "needs.txt").write_text("tinystore==1.2\n", encoding="utf-8")
    return place


@pytest.fixture(autouse=True)
def _apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name, value in _variables(folder).items():
        monkeypatch.setenv(name, value)


def _variables(folder: Path) -> dict[str, str]:
    """Environments in the folder; pip knows nothing but its wheels."""
    return {
        "FORGET_EVAL_ENVS": str(folder / "envs"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder / "index"),
        "PIP_CONFIG_FILE": os.devnull,
    }


def _ones(texts: Sequence[str]) -> Any:
    return np.ones((len(texts), 1), dtype=np.float32)


@pytest.fixture(scope="module")
def made(folder: Path) -> environments.Environment:
    """One environment for the tests that only look at it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _variables(folder).items():
            patch.setenv(name, value)
        patch.chdir(folder)
        _begin_and_break_off()
        done = run("create", NAME, "--requirements", "needs.txt")
        found = environments.find(NAME)
    assert done.exit_code == 0, done.exception
    assert found is not None
    return found


def _begin_and_break_off() -> None:
    """Leaves what a creation leaves that is killed."""
    begun = environments.Environment(NAME, "3.11.0", str(Path("needs.txt").absolute()), "0" * 64, True)
    begun.folder.mkdir(parents=True)
    environments._write(begun)
    (begun.folder / "lib").mkdir()
    (begun.folder / "lib" / "half").write_text("half a file")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(env, list(arguments))


def refused(*arguments: str) -> str:
    """The message of a command that must fail."""
    error = run(*arguments).exception
    assert isinstance(error, UserError), error
    return str(error)


def test_an_environment_holds_what_was_asked_for_and_numpy(made: environments.Environment) -> None:
    assert made.state is State.COMPLETE
    assert not (made.folder / "lib" / "half").exists()
    assert made.packages == {"numpy": "9.9", "tinystore": "1.2"}
    assert made.folder.name == "shelves@Shelf"
    assert environments.find(NAME) == made


def test_a_class_of_the_users_runs_in_it(made: environments.Environment) -> None:
    with pytest.raises(ImportError):
        import tinystore  # type: ignore[import-not-found]  # noqa: F401
    assert wants_embedder(NAME)
    memory = select(NAME, _ones)
    memory.reset()
    memory.inscribe("kept in the environment")
    assert memory.recall_texts("x") == ["kept in the environment"]
    memory.close()
    described = memory.described_by_worker()
    assert (described["class"], described["version"]) == (NAME, "1.2")
    assert described["isolation"]["environment"] == NAME
    assert described["isolation"]["packages"]["tinystore"] == "1.2"


def test_the_list_has_everything(made: environments.Environment) -> None:
    done = run("ls")
    for cell in (NAME, made.python, "2 packages", "MB", "complete"):
        assert cell in done.output
    (row,) = json.loads(run("ls", "--json").stdout)
    assert (row["name"], row["state"], row["packages"]) == (NAME, "complete", {"numpy": "9.9", "tinystore": "1.2"})
    assert row["bytes"] > 1_000_000


def test_one_whose_stamp_has_another_shape_hides_no_other_and_can_be_removed(made: environments.Environment) -> None:
    other = made.folder.with_name("qdrant")
    (other / "lib").mkdir(parents=True)
    (other / "forget-eval.json").write_text('{"name": "qdrant"}')
    left_out = r"field 'python' is missing. Remove it: forget-eval env rm qdrant\n    It is left out"
    with pytest.warns(RuntimeWarning, match=left_out):
        (row,) = json.loads(run("ls", "--json").stdout)
    assert row["name"] == NAME
    with pytest.warns(RuntimeWarning, match=left_out) as seen:
        (qdrant,) = (row for row in catalogue.listing() if row.name == "qdrant")
    assert qdrant.environment is None
    assert len(seen) == 1
    with pytest.raises(UserError, match="env rm qdrant"):
        select("qdrant", _ones)
    assert run("rm", "qdrant").exit_code == 0
    assert not other.exists()


def test_what_is_there_is_not_made_again(made: environments.Environment) -> None:
    done = run("create", NAME, "--requirements", "needs.txt")
    assert done.exit_code == 0
    assert "is there" in done.output
    assert "is there" in run("create", NAME).output  # what it was made of is known


def test_changed_requirements_make_it_stale(made: environments.Environment, folder: Path) -> None:
    needs = folder / "needs.txt"
    content = needs.read_text()
    try:
        needs.write_text("tinystore\n")
        found = environments.find(NAME)
        assert found is not None
        assert found.state is State.STALE
        with pytest.warns(RuntimeWarning, match="is stale.*\n.*forget-eval env create"):
            select(NAME, _ones).close()
        needs.unlink()
        assert found.state is State.COMPLETE  # nobody can say otherwise
    finally:
        needs.write_text(content)


def test_one_without_its_python_is_broken(made: environments.Environment) -> None:
    python = made.interpreter
    aside = python.with_name("aside")
    python.rename(aside)
    try:
        assert made.state is State.BROKEN
        with pytest.raises(UserError, match="has lost its Python"):
            select(NAME)
    finally:
        aside.rename(python)


def test_what_pip_refuses_stays_unfinished(folder: Path) -> None:
    (folder / "other.txt").write_text("tinystore==7\n")
    message = refused("create", "other:Thing", "--requirements", "other.txt")
    assert "No matching distribution found for tinystore==7" in message
    assert "pip.log" in message
    found = environments.find("other:Thing")
    assert found is not None
    assert found.state is State.UNFINISHED
    with pytest.raises(UserError, match=r"unfinished(.|\n)*env create other:Thing(.|\n)*env rm other:Thing"):
        select("other:Thing")
    with locks.held(found.folder, "its making"):
        assert "in use" in _in_another_process("rm", "other:Thing")
    assert run("rm", "other:Thing").exit_code == 0
    assert not found.folder.exists()
    assert environments.find("other:Thing") is None


def _in_another_process(*arguments: str) -> str:
    """A lock is not seen by the process that holds it."""
    return subprocess.run(_command(*arguments), capture_output=True, text=True, check=False).stderr


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", f"from forget_eval.env_commands import env; env({list(arguments)!r})"]


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are watched as Linux has it")
def test_what_a_killed_creation_started_ends_and_is_not_in_the_next_one(folder: Path) -> None:
    pipe = endless(folder)
    for number in (signal.SIGTERM, signal.SIGKILL):
        with subprocess.Popen(_command("create", "killed:Thing", "--requirements", "endless.txt")) as command:
            building = os.pidfd_open(int(pipe.read_text()))
            guard = os.pidfd_open(_child(command.pid))
            assert "in use" in refused("create", "killed:Thing", "--requirements", "needs.txt")
            command.send_signal(number)
        assert _ended(building)
        assert _ended(guard)  # which holds the lock
    assert run("create", "killed:Thing", "--requirements", "needs.txt").exit_code == 0
    found = environments.find("killed:Thing")
    assert found is not None
    assert (found.state, found.packages) == (State.COMPLETE, {"numpy": "9.9", "tinystore": "1.2"})


def _child(process: int) -> int:
    return int(Path(f"/proc/{process}/task/{process}/children").read_text().split()[0])


def _ended(process: int) -> bool:
    gone = system.poll()
    gone.register(process, system.POLLIN)
    return bool(gone.poll(20_000))


def test_an_interrupted_creation_lets_go_of_its_folder(folder: Path) -> None:
    """Whoever waits for the line in which pip begins to build may lose patience there."""

    def lose_patience(line: str) -> None:
        if line.startswith("Processing"):
            raise KeyboardInterrupt

    (folder / "wheel.txt").write_text(f"{folder}/index/tinystore-1.2-py3-none-any.whl\n")
    wanted = requirements.users(folder / "wheel.txt")
    with pytest.raises(KeyboardInterrupt):
        environments.create(
            "interrupted:Thing", wanted, interpreters.choose(wanted.requires, None, "it"), lose_patience
        )
    found = environments.find("interrupted:Thing")
    assert found is not None
    with locks.held(found.folder, "its making"):
        assert found.state is State.UNFINISHED


def test_nothing_else_is_ever_emptied(folder: Path) -> None:
    other = folder / "envs" / "mine@Own"
    other.mkdir(parents=True)
    (other / "thesis.txt").write_text("years of work")
    assert "holds something else" in refused("create", "mine:Own", "--requirements", "needs.txt")
    assert "no environment named 'mine:Own'" in refused("rm", "mine:Own")
    assert (other / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "lehte"), "no adapter named 'lehte'. Did you mean 'lethe'"),
        (("create", "oracle"), "nothing is known that 'oracle' would need"),
        (("create", "a:B"), "Add --requirements FILE"),
        (("create", "a:B", "--requirements", "gone.txt"), "gone.txt: there is no such file"),
        (("create", "../a:B", "--requirements", "needs.txt"), "can be no adapter's name"),
        (("create", "a:B", "--requirements", "needs.txt", "--python", "nopython"), "'nopython' is no Python that runs"),
    ],
)
def test_what_cannot_be_made_says_what_to_do(arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(*arguments)


@pytest.mark.parametrize("name", ["a:b:c", "a:B\nc", "a b", "../a:B", "\x1b[2J:B"])
@pytest.mark.parametrize("command", [["create", "--requirements", "needs.txt"], ["rm"]])
def test_a_name_that_can_be_none_is_refused_before_anything_is_said(command: list[str], name: str) -> None:
    done = run(*command, name)
    assert isinstance(done.exception, UserError)
    assert "can be no adapter's name" in str(done.exception)
    assert str(done.exception).isprintable()
    assert done.output == ""


def test_a_disk_that_refuses_is_the_machines_fault(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("FORGET_EVAL_ENVS", str(folder / "file"))
    done: Any = run("create", "a:B", "--requirements", "needs.txt").exception
    assert isinstance(done, EnvironmentFault)
