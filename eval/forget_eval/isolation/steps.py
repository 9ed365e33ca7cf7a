"""The commands that make an environment, each below a guard: it ends what is left of one when this process is gone."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from forget_datasets.errors import EnvironmentFault
from forget_eval.isolation import guard

_TAIL = 12  # lines of a command's output in a message


@dataclass(frozen=True)
class Steps:
    """Runs one command after the other.

    Attributes:
        log: a file that gets all that they print.
        report: is told each line.
        lock: a descriptor that keeps others out, or None. The guards hold it too: until nothing writes any more.
    """

    log: Path
    report: Callable[[str], None]
    lock: int | None

    def run(self, command: Sequence[str]) -> None:
        """Runs a command to its end.

        Raises:
            EnvironmentFault: it fails; the message has its last lines.
            OSError: the log cannot be written.
        """
        with subprocess.Popen(
            [sys.executable, "-I", "-S", str(guard.__file__), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=() if self.lock is None else (self.lock,),
            start_new_session=True,
        ) as guarded:
            assert guarded.stdin is not None
            try:
                lines = list(self._logged(guarded))
            finally:
                guarded.stdin.close()  # at which the guard ends what still runs
                guarded.wait()
        printed, ending = guard.parted("\n".join(lines))
        if ending != guard.WELL:
            tail = "".join(f"\n    {line}" for line in printed.splitlines()[-_TAIL:])
            what = f"it {ending or 'was ended from outside'}; {self.log} has it all."
            raise EnvironmentFault(f"{' '.join(command)}\n    {what}{tail}")

    def _logged(self, guarded: subprocess.Popen[bytes]) -> Iterator[str]:
        assert guarded.stdout is not None
        with open(self.log, "a", encoding="utf-8") as file:
            for raw in guarded.stdout:
                line = raw.decode("utf-8", "replace").rstrip()
                file.write(f"{line}\n")
                self.report(line)
                yield line
