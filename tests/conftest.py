"""What several tests share: the repository's folder and the other Pythons of the machine."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RAN_ON = "ran on"  # a property of test reports, which reach the summary from other processes too


@pytest.fixture
def root() -> Path:
    """The folder of the repository."""
    return ROOT


@pytest.fixture
def run_on_python(request: pytest.FixtureRequest) -> Callable[[str, str], str]:
    """Runs code on another CPython of the machine, with the repository importable; skips by name where it is absent."""

    def run(version: str, code: str) -> str:
        interpreter = _interpreter(version)
        if interpreter is None:
            pytest.skip(f"this machine has no CPython {version}")
        request.node.user_properties.append((RAN_ON, f"CPython {version}: {interpreter}"))
        environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "PYTHONHASHSEED": "random"}
        command = [interpreter, "-S", "-c", code]  # -S: nothing but the standard library and the repository
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists the Pythons that code was run on; which were absent stands among the skipped tests."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    properties = [pair for report in reports for pair in getattr(report, "user_properties", ())]
    if ran := sorted({value for name, value in properties if name == RAN_ON}):
        terminalreporter.section("other interpreters")
        for line in ran:
            terminalreporter.line(line)


def _interpreter(version: str) -> str | None:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python")))]
    for candidate in filter(None, candidates):
        probe = [candidate, "-c", "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"]
        answer = subprocess.run(probe, capture_output=True, text=True, check=False).stdout.strip()
        if answer == f"cpython {version}":
            return candidate
    return None
