"""Environments of their own for memory systems: a folder each, made with venv and pip.

A virtual environment cannot be moved, so it is made where it stays, and a stamp says when it is whole. The stamp is the
first file that is written, and the last. What venv and pip do runs below a guard, which ends it when this process is
gone, and which holds the folder's lock until it has: nothing of a making that was killed gets into the next one.
"""

import json
import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from forget_datasets.errors import EnvironmentFault, UserError, unknown
from forget_datasets.shapes import read_json
from forget_eval import locks
from forget_eval.isolation import requirements, sources
from forget_eval.isolation.interpreters import Interpreter
from forget_eval.isolation.process import require_posix
from forget_eval.isolation.requirements import Requirements
from forget_eval.isolation.steps import Steps

_STAMP = "forget-eval.json"
_LOG = "pip.log"
_SHAPE = {
    "name": str,
    "python": str,
    "requirements_path": str,
    "requirements_sha256": str,
    "of_users_file": bool,
    "is_whole": bool,
    "packages": {str: str},
}
_NAME = re.compile(r"[\w.-]+(:[\w.]+)?")
_LIST = (
    "import importlib.metadata as metadata, json; "
    "print(json.dumps({found.metadata['Name']: found.version for found in metadata.distributions()}))"
)
_TOOLS = ("pip", "setuptools")  # that every environment begins with


class State(StrEnum):
    """Whether an environment can be used."""

    COMPLETE = "complete"
    STALE = "stale"
    UNFINISHED = "unfinished"
    BROKEN = "broken"


@dataclass(frozen=True)
class Environment:
    """One environment, as its stamp has it.

    Attributes:
        name: of the adapter.
        python: its version.
        requirements_path, requirements_sha256: what it was made of; `of_users_file`: and whether that is a file of the
            user's.
        is_whole: whether everything was installed.
        packages: versions by distribution.
    """

    name: str
    python: str
    requirements_path: str
    requirements_sha256: str
    of_users_file: bool
    is_whole: bool = False
    packages: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where it is."""
        return _place(self.name)

    @property
    def interpreter(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    @property
    def command(self) -> list[str]:
        """Runs a Python file in it, and nothing of another environment with it."""
        return [str(self.interpreter), "-I"]

    @property
    def state(self) -> State:
        """Stale is one whose requirements have changed since, broken one whose Python is gone."""
        if not self.is_whole:
            return State.UNFINISHED
        if not self.interpreter.exists():
            return State.BROKEN
        wanted = self._requirements()
        changed = wanted is not None and wanted.sha256 != self.requirements_sha256
        return State.STALE if changed else State.COMPLETE

    def _requirements(self) -> Requirements | None:
        """As they are now; None if they are gone."""
        if not self.of_users_file:
            return requirements.packaged(self.name)
        with suppress(UserError):
            return requirements.users(Path(self.requirements_path))
        return None

    def size(self) -> int:
        """Bytes on disk."""
        found = (os.path.join(folder, name) for folder, _, names in os.walk(self.folder) for name in names)
        return sum(_size(path) for path in found)


def root() -> Path:
    """$FORGET_EVAL_ENVS, else $XDG_DATA_HOME/forget-eval/envs, else ~/.local/share/forget-eval/envs."""
    if chosen := os.environ.get("FORGET_EVAL_ENVS"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path("~/.local/share").expanduser()) / "forget-eval" / "envs"


def find(name: str) -> Environment | None:
    """The environment of an adapter, finished or not; None if there is none.

    Raises:
        UserError: its stamp has another shape.
        EnvironmentFault: the disk refuses.
    """
    if not _NAME.fullmatch(name):
        return None
    return _read(_place(name))


def listing() -> list[Environment]:
    """All environments, by name; one whose stamp cannot be read is left out with a warning."""
    try:
        folders = sorted(root().iterdir())
    except OSError:
        return []
    found = []
    for folder in folders:
        try:
            found.append(_read(folder))
        except UserError as error:
            warnings.warn(f"{error}\n    It is left out.", RuntimeWarning, stacklevel=2)
    return list(filter(None, found))


def require_name(name: str) -> None:
    """Raises UserError for a name that no environment can have."""
    if not _NAME.fullmatch(name):
        from forget_eval.report.results import printable  # brings much along

        known = "give one that `adapters` lists, or module:Class."
        raise UserError(f"'{printable(name)}' can be no adapter's name: {known}")


def create(
    name: str, wanted: Requirements, python: Interpreter, report: Callable[[str], None] = lambda _: None
) -> Environment:
    """Makes an environment; one that is there is made anew.

    Args:
        name: of the adapter.
        wanted: what is installed.
        python: what it is made with.
        report: is told each line of what goes on.

    Raises:
        UserError: a name that none can have, a comment of the requirements that cannot be read, the folder holds
            something else, or another process is making it.
        EnvironmentFault: pip or the disk refuses; the message has pip's last lines.
    """
    require_posix()
    require_name(name)
    sources.check(wanted.content, wanted.path)
    stamp = Environment(name, python.version, str(wanted.path), wanted.sha256, wanted.is_users)
    try:
        _make_room(stamp.folder)
        with locks.held(stamp.folder, "its making") as lock:
            _empty(stamp.folder)
            _write(stamp)
            _install(stamp, wanted, python, Steps(stamp.folder / _LOG, report, lock))
            whole = replace(stamp, is_whole=True, packages=_packages(stamp))
            _write(whole)
    except OSError as error:
        raise EnvironmentFault(f"cannot make {stamp.folder}: {error.strerror or error}") from error
    return whole


def remove(name: str) -> Path:
    """Removes an environment, finished or not, and returns where it was.

    Raises:
        UserError: there is none, or it is being made.
        EnvironmentFault: the disk refuses.
    """
    require_name(name)
    folder = _place(name)
    if not _is_ours(folder):
        known = [each.name for each in listing()]
        if not known:
            raise UserError(f"no environment named '{name}': there is none in {root()}.")
        raise unknown("environment", name, known)
    try:
        with locks.held(folder, "its making"):
            _empty(folder)
            (folder / _STAMP).unlink()
            folder.rmdir()
    except OSError as error:
        raise EnvironmentFault(f"cannot remove {folder}: {error.strerror or error}") from error
    return folder


def _install(stamp: Environment, wanted: Requirements, python: Interpreter, steps: Steps) -> None:
    steps.report(f"venv with Python {python.version}")
    steps.run([python.path, "-I", "-m", "venv", str(stamp.folder)])
    pip = [str(stamp.interpreter), "-I", "-m", "pip", "--disable-pip-version-check"]
    for command in sources.first(wanted.content, pip):
        steps.run(command)
    steps.run([*pip, "install", "--no-input", *sources.options(wanted.content), *wanted.arguments])
    sources.fetch(wanted.content, stamp.folder, pip, steps.run)


def _packages(stamp: Environment) -> dict[str, str]:
    done = subprocess.run([*stamp.command, "-c", _LIST], capture_output=True, text=True, check=False)
    if done.returncode:
        raise EnvironmentFault(f"{stamp.interpreter} does not run: {done.stderr.strip()[-500:]}")
    found: dict[str, str] = json.loads(done.stdout)
    return {name: found[name] for name in sorted(found) if name not in _TOOLS}


def _place(name: str) -> Path:
    return root() / name.replace(":", "@")  # no environment's path may hold a colon


def _read(folder: Path) -> Environment | None:
    """None if the folder is no environment of ours."""
    try:
        content = read_json(folder / _STAMP, _SHAPE, f"Remove it: forget-eval env rm {folder.name.replace('@', ':')}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    stamp = Environment(**{key: content[key] for key in _SHAPE})
    return stamp if _place(stamp.name) == folder else None


def _is_ours(folder: Path) -> bool:
    """Whether a folder is an environment; one whose stamp cannot be read is."""
    try:
        return _read(folder) is not None
    except UserError:
        return True


def _write(stamp: Environment) -> None:
    from forget_eval.runs import write_json  # brings much along, and environments are made rarely

    write_json(stamp.folder / _STAMP, asdict(stamp))


def _make_room(folder: Path) -> None:
    if folder.exists() and _read(folder) is None and any(folder.iterdir()):
        raise UserError(f"{folder} holds something else than an environment. Move it, or set FORGET_EVAL_ENVS.")
    folder.mkdir(parents=True, exist_ok=True)


def _empty(folder: Path) -> None:
    """Removes what is in an environment, but for the stamp, which says meanwhile that it is not whole."""
    found = None
    with suppress(UserError):  # a stamp that cannot be read says nothing
        found = _read(folder)
    if found is not None:
        _write(replace(found, is_whole=False))
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != _STAMP:
            path.unlink()


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def as_row(found: Environment) -> dict[str, Any]:
    """An environment as plain data."""
    return {**asdict(found), "folder": str(found.folder), "state": str(found.state), "bytes": found.size()}
