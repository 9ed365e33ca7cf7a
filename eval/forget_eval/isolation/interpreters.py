"""The Pythons of this machine, and one that fits an environment."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from forget_datasets.errors import UserError

OLDEST = ">=3.11"
"""What our own packages need in a worker."""

_PROBE = (
    "import importlib.util, json, platform, sys; "
    "print(json.dumps([sys.executable, platform.python_version(), bool(importlib.util.find_spec('ensurepip'))]))"
)
_NAMED = re.compile(r"python3(?:\.(\d+))?")
_GETTERS = (
    ("pyenv", "pyenv install {version}"),
    ("uv", "uv python install {version}"),
    ("conda", "conda create --name py{version} python={version}"),
    ("brew", "brew install python@{version}"),
    ("apt-get", "apt-get install python{version} python{version}-venv"),
)


@dataclass(frozen=True)
class Interpreter:
    """A Python: its real path, its version, and whether it can make environments (Debian splits that off)."""

    path: str
    version: str
    makes_environments: bool

    @property
    def minor(self) -> str:
        """As "3.12"."""
        return ".".join(self.version.split(".")[:2])


def choose(requires: SpecifierSet, tried: str | None, wanted_by: str) -> Interpreter:
    """The Python to make an environment with: one of the version that was tried if there is one, else any that fits.

    Args:
        requires: what the system asks for.
        tried: the minor version, as "3.11", with which its requirements were written down.
        wanted_by: begins the message of an error.

    Raises:
        UserError: none fits; the message has the line that gets one.
    """
    spare = None
    for found in _all(requires):
        if found.makes_environments and requires.contains(found.version, prereleases=True):
            if tried is None or found.minor == tried or not requires.contains(f"{tried}.99"):
                return found
            spare = spare or found
    if spare is None:
        raise UserError(f"{wanted_by} needs Python {requires}, and no such Python is here.\n    {_line(requires)}")
    return spare


def named(python: str, requires: SpecifierSet, wanted_by: str) -> Interpreter:
    """The Python that was asked for: a path, a command, or a version as "3.12".

    Raises:
        UserError: there is none, it does not fit, or it cannot make environments.
    """
    found = _of_version(python) if re.fullmatch(r"3(\.\d+){1,2}", python) else _probe(python)
    if found is None:
        raise UserError(f"'{python}' is no Python that runs here. Name a path, a command, or a version such as 3.12.")
    if not requires.contains(found.version, prereleases=True):
        raise UserError(f"{wanted_by} needs Python {requires}; {found.path} is {found.version}. {_line(requires)}")
    if not found.makes_environments:
        raise UserError(f"{found.path} cannot make environments: apt-get install python{found.minor}-venv")
    return found


def _of_version(version: str) -> Interpreter | None:
    exactly = SpecifierSet(f"=={version}.*") if version.count(".") == 1 else SpecifierSet(f"=={version}")
    return next((found for found in _all(exactly) if exactly.contains(found.version, prereleases=True)), None)


def _all(requires: SpecifierSet) -> Iterator[Interpreter]:
    """This one, those on PATH, those of pyenv and uv; whose name says that it does not fit is not even asked."""
    seen = set()
    for path in (sys.executable, *_on_path(requires), *_managed(requires)):
        found = _probe(path)
        if found is not None and found.path not in seen:
            seen.add(found.path)
            yield found


def _on_path(requires: SpecifierSet) -> list[str]:
    named: dict[str, int] = {}
    for folder in os.get_exec_path():
        for path in _entries(Path(folder)):
            match = _NAMED.fullmatch(path.name)
            if match and (match[1] is None or requires.contains(f"3.{match[1]}.99", prereleases=True)):
                named.setdefault(str(path), -int(match[1] or 0))
    return sorted(named, key=lambda path: named[path])


def _managed(requires: SpecifierSet) -> list[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local/share/uv/python"))
    folders = [(path, re.search(r"3\.\d+\.\d+", path.name)) for path in (*_entries(uv), *_entries(pyenv))]
    fitting = [(Version(match[0]), path) for path, match in folders if match and match[0] in requires]
    newest = sorted(fitting, key=lambda found: found[0], reverse=True)
    return [str(path / "bin" / "python3") for _, path in newest]


def _entries(folder: Path) -> Iterable[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _probe(command: str) -> Interpreter | None:
    """What a Python says of itself; None if it is none, or does not run."""
    path = shutil.which(os.path.expanduser(command))
    if path is None:
        return None
    try:
        done = subprocess.run([path, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=60, check=True)
        return Interpreter(*json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        return None


def _line(requires: SpecifierSet) -> str:
    """The command that gets a Python that fits, with what this machine has for that."""
    fitting = [f"3.{minor}" for minor in range(13, 10, -1) if requires.contains(f"3.{minor}.99")]
    if not fitting:
        return "No Python that this project runs on fits."
    for tool, command in _GETTERS:
        if shutil.which(tool):
            return command.format(version=fitting[0])
    return f"Python {fitting[0]}: https://www.python.org/downloads/"
