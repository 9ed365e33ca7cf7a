"""A temporary home for packages that write to one, and the variables that keep them from the network."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from forget_eval.quiet import at_home


class Scratch:
    """A folder that `close` removes; without it, the end of its owner or of the process does.

    Attributes:
        folder: its path.
    """

    def __init__(self) -> None:
        self._owned = TemporaryDirectory(prefix="forget-eval-", ignore_cleanup_errors=True)
        self.folder = self._owned.name

    @contextmanager
    def home(self, **variables: str) -> Iterator[None]:
        """While the block runs, the folder is the user's home, telemetry is off, and the given variables are set.

        A package is imported and its store made inside; afterwards the process has the environment that it had.
        """
        wanted = at_home(self.folder) | variables
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value

    def close(self) -> None:
        """Removes the folder and what is in it; a second time nothing."""
        self._owned.cleanup()
