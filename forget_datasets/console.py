"""How a command ends: an exit code and a line on stderr instead of a traceback, whatever the standard streams are."""

import atexit
import io
import json
import os
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

import click

from forget_datasets.errors import PROGRAMMERS_WARNINGS, DataFault, EnvironmentFault, UserError

DEBUG = "FORGET_DEBUG"
"""Environment variable: if it is set, an error that nobody foresaw shows its traceback."""
_CONTROLS = re.compile("[\x7f-\x9f]")  # which JSON allows, and a terminal obeys


def run(
    command: click.Command,
    program: str,
    arguments: Sequence[str] | None,
    interrupted: str,
    hide: Callable[[str], str] = str,
) -> NoReturn:
    """Runs a command to its end, which is SystemExit.

    Exits with 2 for a command that asks for what cannot be, with 1 for a finding about data (`DataFault`, or what a
    command that checks has listed) and if the machine is in the way, with 130 for an interrupt.

    Args:
        command: what to run.
        program: its name, which begins every message.
        arguments: without the program's name; None for those of the process.
        interrupted: what to say after Ctrl-C.
        hide: takes the secrets out of what an error that nobody foresaw says.
    """
    threads = {thread.ident for thread in threading.enumerate()}
    _open_streams()
    warnings.showwarning = partial(_warn, program, hide)
    code = _ended(command, program, arguments, interrupted, hide)
    try:
        sys.stdout.flush()
    except OSError as error:
        if not code and not isinstance(error, BrokenPipeError):  # whoever reads a pipe may have seen enough
            _say(program, f"standard output: {error.strerror or error}")
        code = code or 1
    for stream in (sys.stdout, sys.stderr):
        _let_go(stream)
    if _left_behind(threads):
        atexit._run_exitfuncs()
        os._exit(code)  # the interpreter would wait for them, for ever perhaps
    sys.exit(code)


def print_json(value: Any) -> None:
    """Prints a value as JSON that is JSON in every encoding of the standard output, and steers no terminal."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not unicode, indent=2)
    click.echo(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def _warn(
    program: str, hide: Callable[[str], str], message: Warning | str, category: type[Warning], *_: Any, **__: Any
) -> None:
    """Shows a warning, unless it is one that programmers send each other."""
    if not issubclass(category, PROGRAMMERS_WARNINGS):
        _say(program, f"warning: {hide(str(message))}")


def _ended(
    command: click.Command,
    program: str,
    arguments: Sequence[str] | None,
    interrupted: str,
    hide: Callable[[str], str],
) -> int:
    try:
        code = command.main(arguments, prog_name=program, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except UserError as error:
        _say(program, str(error))
        return 1 if isinstance(error, EnvironmentFault | DataFault) else 2
    except click.Abort:
        _say(program, interrupted)
        return 130
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return error.exit_code
    except OSError as error:  # those of files that are read or written have become errors of ours
        _say(program, hide(f"{error.filename or 'standard output'}: {error.strerror or error}"))
        return 1
    except Exception as error:
        if os.environ.get(DEBUG):
            click.echo(hide(traceback.format_exc()), err=True, nl=False)
        what = hide(f"{type(error).__name__}: {error}")
        _say(program, f"{what}\n    This should not happen. With {DEBUG}=1 set, the same command shows where it did.")
        return 1


def _left_behind(before: set[int | None]) -> bool:
    """Whether there are threads that were not there before, and for which an interpreter waits before it ends."""
    return any(not thread.daemon and thread.ident not in before for thread in threading.enumerate())


def _say(program: str, what: str) -> None:
    with suppress(OSError):
        click.echo(f"{program}: {what}", err=True)


def _open_streams() -> None:
    """Makes both streams writable: a closed one swallows what it is given, one of few characters escapes the others."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _let_go(stream: Any) -> None:
    """Lets a stream that takes nothing more end in silence: the interpreter would complain as it closes it."""
    try:
        stream.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
