"""Errors that a person can act on: the commands print them without a traceback."""

from collections.abc import Iterable
from difflib import get_close_matches

PROGRAMMERS_WARNINGS = (DeprecationWarning, PendingDeprecationWarning, ResourceWarning)
"""What programmers send each other, and no command shows."""


class UserError(Exception):
    """Bad input; the message says what was wrong and what to do. Commands exit with 2."""


class EnvironmentFault(UserError):
    """The machine is in the way (a full or read-only disk, say). Commands exit with 1."""


class DataFault(UserError):
    """Data is not what it says that it is: a finding about it, and nothing wrong with the command. It exits with 1."""


def unknown(what: str, name: str, known: Iterable[str]) -> UserError:
    """An unknown name, with the closest known one."""
    options = list(known)
    close = get_close_matches(name.lower(), options, n=1, cutoff=0.5)
    hint = f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(options)}."
    return UserError(f"no {what} named '{name}'. {hint}")
