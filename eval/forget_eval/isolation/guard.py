"""Runs a server's command, and ends everything that came of it: `python guard.py COMMAND...`.

The server has this process's stdin, stdout and stderr. When the other end of stdin is closed (a kill -9 of the run
counts), the server has a moment to end by itself; then it is killed, with whatever it has started. Run as a script, it
imports nothing but the standard library.
"""

import ctypes
import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
_GRACE = 0.5  # seconds between the end of stdin and the kill
_NOT_FOUND = 127
_LINUX = sys.platform.startswith("linux")
_MARK = "\n(the server "
WELL = "exited with status 0"
"""The ending of a command that did what it should."""


def main() -> None:
    """Starts the command and stays until it has ended; the last line on stderr says how that was."""
    if _LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    server = os.fork()
    if server == 0:
        _become(sys.argv[1:])
    threading.Thread(target=_kill_after_hang_up, args=(server,), daemon=True).start()
    os.close(1)  # the output ends with the server
    ended, status = os.wait()
    while ended != server:  # an orphan of the server's, which comes to us
        ended, status = os.wait()
    with suppress(OSError):  # nobody reads it any more
        os.write(2, f"{_MARK}{ending(os.waitstatus_to_exitcode(status))})\n".encode())
    _kill_the_rest()
    os._exit(0)


def parted(printed: str) -> tuple[str, str]:
    """What a command printed, and its ending as this file's last line has it; no ending if that line is not there."""
    before, _, ending = printed.rpartition(_MARK)
    return (before, ending.partition(")")[0]) if _MARK in printed else (printed, "")


def ending(status: int) -> str:
    """How a process ended, by its return code, as the end of a sentence. Real-time signals have no names."""
    if status >= 0:
        return f"exited with status {status}"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
    return f"was killed by {name}"


def _become(command: list[str]) -> None:
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot run {command[0]}: {error.strerror}\n".encode())
    os._exit(_NOT_FOUND)


def _kill_after_hang_up(server: int) -> None:
    other_end = select.poll()
    other_end.register(0, 0)  # only that it is gone; what is to be read is the server's
    other_end.poll()
    time.sleep(_GRACE)
    with suppress(ProcessLookupError):
        os.kill(server, signal.SIGKILL)


def _kill_the_rest() -> None:
    with suppress(ChildProcessError):
        while _LINUX:
            for child in _children():
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            os.wait()
    os.killpg(0, signal.SIGKILL)


def _children() -> list[int]:
    """Processes whose parent this one is; orphans among its descendants are."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
            if int(file.read().rpartition(b")")[2].split()[1]) == os.getpid():
                found.append(int(entry))
    return found


if __name__ == "__main__":
    main()
