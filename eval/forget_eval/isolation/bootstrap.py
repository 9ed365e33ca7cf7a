"""Starts a worker, in whichever interpreter runs this file, and ends everything that came of it.

Run as a script, from an environment that need not hold our packages: nothing but the standard library is imported, and
the packages are taken from the folders that the run names. The process that runs this file only watches. It forks the
worker, and when the worker dies, or the run lets go of the lifeline (a kill -9 counts), it kills what is left, down to
children that made themselves daemons, and removes the worker's folder. A worker that never comes back, even inside C
code that holds Python's lock, cannot prevent that.
"""

import ctypes
import importlib.util
import json
import os
import resource
import shutil
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_READILY_KILLED = "900"  # of -1000 to 1000: when memory is short, the kernel takes the worker before the run
_LINUX = sys.platform.startswith("linux")


def main() -> None:
    """Reads the job from the command line: packages, scratch folder, pipes, variables, memory limit in bytes."""
    job = json.loads(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    worker = os.fork()
    if worker == 0:
        _work(job)
    _watch(worker, job)


def _work(job: dict[str, Any]) -> NoReturn:
    pipes = job["pipes"]
    os.close(pipes["lifeline"])
    os.setpgrp()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(_READILY_KILLED)
    if job["memory"]:
        resource.setrlimit(resource.RLIMIT_DATA, (job["memory"], job["memory"]))
    os.environ.update(job["variables"])
    for name, folder in job["packages"].items():
        _register(name, Path(folder))
    from forget_eval.isolation.worker import serve

    serve(pipes["requests"], pipes["vectors"], pipes["results"])
    os._exit(0)


def _register(name: str, folder: Path) -> None:
    """Makes a package importable that is not installed here."""
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} is no package")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _watch(worker: int, job: dict[str, Any]) -> NoReturn:
    pipes = job["pipes"]
    for name in ("requests", "vectors", "results"):
        os.close(pipes[name])
    threading.Thread(target=_kill_at_end, args=(pipes["lifeline"], worker), daemon=True).start()
    ended, status = os.wait()
    while ended != worker:  # an orphan of the worker's, which comes to us
        ended, status = os.wait()
    _kill_the_rest(worker)
    shutil.rmtree(job["scratch"], ignore_errors=True)
    _end_like(status)


def _kill_at_end(lifeline: int, worker: int) -> None:
    os.read(lifeline, 1)  # returns when the other end is closed, by whatever means
    with suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)


def _kill_the_rest(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    with suppress(ChildProcessError):
        while _LINUX:
            for child in _children():
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            os.wait()


def _children() -> list[int]:
    """Processes whose parent this one is; orphans among its descendants are."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
            if parent == os.getpid():
                found.append(int(entry))
    return found


def _end_like(status: int) -> NoReturn:
    """Ends as the worker did, so that the run sees how that was."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
