"""Code that is not ours: a user's module, its constructor, its embedder. One boundary for all that it can do to us.

A guest may raise anything (even exit the interpreter), print, write to the standard output past Python, and leave the
current folder. None of it reaches the caller: faults become sentences, talk goes to stderr, the folder stays as it was.
"""

import atexit
import os
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from forget_datasets import errors
from forget_datasets.errors import UserError, unknown
from forget_eval.redaction import brief

_LONGEST = 4000  # characters of a guest's message
_OURS = tuple(os.path.join(os.path.dirname(os.path.abspath(file)), "") for file in (__file__, errors.__file__))
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_NOUNS = {"adapter": "class", "embedder": "function"}


@contextmanager
def hosting(what: str, then: str | Callable[[], str] = "") -> Iterator[None]:
    """Runs a guest's code: whatever it raises, but for an interrupt, becomes a UserError; see also `apart`.

    An error that is a UserError already passes as it is.

    Args:
        what: begins the message: who cannot do what, as "adapter 'mine:Memory' cannot be made".
        then: ends the message: what to do, or a function that finds it out when it is needed.

    Raises:
        UserError: "{what}: {type}: {message} ({file}, line {n})", with `then` on a line of its own.
    """
    try:
        with apart():
            yield
    except (UserError, KeyboardInterrupt):
        raise
    except BaseException as error:
        lines = [f"{what}: {said(error)}{_place(error)}", _advice(error), then() if callable(then) else then]
        raise UserError("\n    ".join(filter(None, lines))) from error


@contextmanager
def apart() -> Iterator[None]:
    """While the block runs, stdout is stderr, down to the file descriptor; afterwards the current folder is as before.

    Blocks may lie inside each other, in several threads too: the outermost redirects. What a guest raises passes.
    """
    folder = _current_folder()
    _STDOUT.lend()
    try:
        yield
    finally:
        _STDOUT.take_back()
        if folder is not None and _current_folder() != folder:
            with suppress(OSError):
                os.chdir(folder)


def fetch(name: str, kind: str) -> Any:
    """What `module:attribute` names; the module is looked for in the current folder too.

    Args:
        name: as the user wrote it.
        kind: what it is wanted for, "adapter" or "embedder".

    Raises:
        UserError: not of this form, no such module or attribute, or the module cannot be imported.
    """
    require_module(name, kind)
    module_name, _, attribute = name.partition(":")
    with hosting(f"{kind} '{name}': the module {module_name} cannot be imported"):
        try:
            module = import_module(module_name)
        except ModuleNotFoundError as error:
            if is_about(error, module_name):
                raise _no_module(name, kind) from None
            raise
        if not hasattr(module, attribute):
            raise unknown(f"{_NOUNS[kind]} in {module_name}", attribute, _offers(module, kind))
        return getattr(module, attribute)


def require_module(name: str, kind: str) -> None:
    """Checks `module:attribute` as far as it can be without importing anything; the arguments are those of `fetch`.

    Raises:
        UserError: it is not of this form, or there is no such module.
    """
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise UserError(f"{kind} '{name}' is not of the form module:Name, as my_module:Mine.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    root = module.partition(".")[0]
    if root not in sys.modules and find_spec(root) is None:
        raise _no_module(name, kind)


def close(guest: object, who: str) -> None:
    """Closes a guest that has a method `close`. Its answers are written: a failure changes none, and is warned of."""
    try:
        with hosting(f"{who} cannot be closed"):
            method = getattr(guest, "close", None)
            if method is not None:
                method()
    except UserError as error:
        warnings.warn(f"{error}\n    What it answered is written, and counts.", RuntimeWarning, stacklevel=2)


def said(error: BaseException) -> str:
    """An error as "type: message"."""
    text = message(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def message(error: BaseException) -> str:
    """The message of an error, even of one that cannot say it; secrets are hidden."""
    try:
        return brief(str.__str__(str(error)), _LONGEST)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return "<no message>"


def is_about(error: ModuleNotFoundError, module: str) -> bool:
    """Whether it is this module, or a package that holds it, that was not found: not another one that it imports."""
    return bool(error.name) and (module == error.name or module.startswith(f"{error.name}."))


class _Stdout:
    """The standard output of the process, lent to stderr by however many blocks; both are put back as they were."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._blocks = 0
        self._saved: dict[int, int] = {}
        self._streams: tuple[Any, Any] = (None, None)

    def lend(self) -> None:
        with self._lock:
            self._blocks += 1
            if self._blocks > 1:
                return
            _flush()
            self._saved = _copies()
            self._streams = sys.stdout, sys.stderr
            self._point(2, 2)

    def take_back(self) -> None:
        with self._lock:
            self._blocks -= 1
            _flush()
            self._point(2 if self._blocks else 1, 2)
            if self._blocks:
                return
            while self._saved:
                with suppress(OSError):  # a guest that closes all files has closed it
                    os.close(self._saved.popitem()[1])
            atexit.unregister(_lend_for_good)
            atexit.register(_lend_for_good)  # the last one registered is the first one called

    def _point(self, out: int, err: int) -> None:
        """Has descriptors and streams lead where descriptors `out` and `err` led, whatever a guest has done to them."""
        for descriptor, source in ((1, out), (2, err)):
            if self._saved:
                with suppress(OSError):
                    os.dup2(self._saved[source], descriptor)
        sys.stdout, sys.stderr = (_open_again(self._streams[source - 1], source) for source in (out, err))


_STDOUT = _Stdout()


def _copies() -> dict[int, int]:
    """Copies of the descriptors 1 and 2, none if the process lacks either."""
    copies: dict[int, int] = {}
    for descriptor in (1, 2):
        try:
            copies[descriptor] = os.dup(descriptor)
        except OSError:
            for copy in copies.values():
                os.close(copy)
            return {}
    return copies


def _open_again(stream: Any, descriptor: int) -> Any:
    """A standard stream, made anew if a guest has closed it."""
    if not getattr(stream, "closed", False):
        return stream
    return open(descriptor, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def _lend_for_good() -> None:
    """What guests want done when the process ends is done after this, and cannot print into what we have printed."""
    _flush()
    with suppress(OSError):
        os.dup2(2, 1)


def _flush() -> None:
    """Writes out what Python and C hold back for stdout, before file descriptor 1 becomes another file."""
    for stream in (sys.stdout, sys.__stdout__):
        with suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    with suppress(Exception):  # a system without a C library of that name
        import ctypes

        ctypes.CDLL(None).fflush(None)


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it is gone
        return None


def _place(error: BaseException) -> str:
    """Where a guest's own code failed, libraries that it called left out; empty if no line of its own is to blame."""
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [place for place in places if os.path.isfile(place[0]) and not _is_library(place[0])]
    return f" ({Path(own[-1][0]).name}, line {own[-1][1]})" if own else ""


def _is_library(file: str) -> bool:
    return os.path.abspath(file).startswith((*_OURS, *_LIBRARIES))


def _advice(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return f"It needs '{package}', which this Python lacks; mostly: {sys.executable} -m pip install {package}"
    return ""


def _no_module(name: str, kind: str) -> UserError:
    module = name.partition(":")[0]
    hint = f"Is {module.replace('.', '/')}.py in {os.getcwd()}?"
    return UserError(f"{kind} '{name}': there is no module '{module}'. {hint}")


def _offers(module: ModuleType, kind: str) -> list[str]:
    fits = callable if kind == "embedder" else lambda value: isinstance(value, type)
    return [name for name, value in vars(module).items() if fits(value) and not name.startswith("_")]
