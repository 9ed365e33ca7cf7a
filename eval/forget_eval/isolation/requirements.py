"""What is installed into an environment: pinned requirement files of ours, or one of the user's.

A file is pip's, with two comments that this project reads. The first line may name the Python with which it was written
down ("# Python 3.11.7, 2026-11-30"), and a line "# requires-python: >=3.12" what the system asks for.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval.isolation.interpreters import OLDEST

FOLDER = Path(__file__).parent.parent / "environments"
_TRIED = re.compile(r"^#.*\bPython (3\.\d+)")
_REQUIRES = re.compile(r"^#\s*requires-python:\s*(.+?)\s*$", re.MULTILINE)
_NUMPY = "numpy"


@dataclass(frozen=True)
class Requirements:
    """A requirement file: where it is, what it holds, and whether it is the user's."""

    path: Path
    content: str
    is_users: bool

    @property
    def sha256(self) -> str:
        """Tells whether an environment was made of this."""
        return sha256(self.content.encode()).hexdigest()

    @property
    def requires(self) -> SpecifierSet:
        """The Pythons that fit. Raises UserError for a comment that cannot be read."""
        found = _REQUIRES.search(self.content)
        try:
            return SpecifierSet(OLDEST) & SpecifierSet(found[1] if found else "")
        except InvalidSpecifier as error:
            raise UserError(f"{self.path}: {error}. Write as in: # requires-python: >=3.12") from error

    @property
    def tried(self) -> str | None:
        """The Python, as "3.11", with which it was written down."""
        found = _TRIED.match(self.content)
        return found[1] if found else None

    @property
    def arguments(self) -> list[str]:
        """What pip is to install. numpy always, for that is how vectors reach an adapter.

        Which build of torch a file gets is decided by its pin and by pip's own settings (PIP_EXTRA_INDEX_URL).
        """
        return ["--requirement", str(self.path), _NUMPY]


def packaged(name: str) -> Requirements | None:
    """The pinned requirements of an adapter of ours, None if it needs none. Raises EnvironmentFault as `users` does."""
    path = FOLDER / f"{name}.txt"
    return _read(path, is_users=False) if path.is_file() else None


def users(path: Path) -> Requirements:
    """A file of the user's.

    Raises:
        UserError: there is none, or it is not UTF-8.
        EnvironmentFault: the disk refuses.
    """
    if not path.is_file():
        raise UserError(f"{path}: there is no such file. --requirements names a file as pip reads it.")
    return _read(path.resolve(), is_users=True)


def _read(path: Path, is_users: bool) -> Requirements:
    try:
        return Requirements(path, path.read_text(encoding="utf-8"), is_users)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 ({error.reason}).") from error
    except OSError as error:
        raise EnvironmentFault(f"cannot read {path}: {error.strerror or error}") from error
