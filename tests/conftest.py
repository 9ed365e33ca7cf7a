"""What several tests share: built datasets, the command, other processes, and the other Pythons of the machine."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.build import build_forgeteval, build_membehave
from forget_datasets.cli import main

Built = tuple[Path, dict[str, Any]]

ROOT = Path(__file__).parent.parent
RAN_ON = "ran on"  # a property of test reports, which reach the summary from other processes too


def pytest_configure() -> None:
    """Has processes that tests start heed Ctrl-C, also where the tests themselves were started in the background."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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


@pytest.fixture(scope="session")
def forgeteval_built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """ForgetEval with 10 cases a family in two languages, and its manifest. Not to be written to."""
    out = tmp_path_factory.mktemp("shared") / "forgeteval"
    return out, build_forgeteval(out, ("en", "zh"), n_per_family=10, distractors=4, seed=7)


@pytest.fixture(scope="session")
def membehave_built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """MemBehave with three triplets, and its manifest. Not to be written to."""
    out = tmp_path_factory.mktemp("shared") / "membehave"
    return out, build_membehave(out, 3, seed=7)


@pytest.fixture(scope="session")
def _handmade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("shared") / "out"
    build_forgeteval(out, ())
    return out


@pytest.fixture
def handmade_folder(_handmade: Path, tmp_path: Path) -> Path:
    """The hand-made cases alone, in a folder `out` of the test's own."""
    return Path(shutil.copytree(_handmade, tmp_path / "out"))


@pytest.fixture
def tree() -> Callable[[Path], dict[str, bytes]]:
    """Reads the files of a folder: their bytes by their path within it."""

    def read(folder: Path) -> dict[str, bytes]:
        return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    return read


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command `forget-datasets` in this process; gives exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


@pytest.fixture
def in_another_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs code with arguments in a Python of its own, whose environment may differ."""

    def run(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-B", "-c", code, *map(str, arguments)]
        return subprocess.run(call, env=os.environ | environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def load_offline(
    in_another_process: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> Callable[[str, Path], dict[str, Any]]:
    """Runs code that loads a folder as people do, without a network and any cache; gives the JSON that it prints."""

    def run(code: str, folder: Path) -> dict[str, Any]:
        done = in_another_process(
            code,
            folder,
            HF_HUB_OFFLINE="1",
            HF_DATASETS_CACHE=str(tmp_path / "cache"),
            HF_DATASETS_DISABLE_PROGRESS_BARS="1",
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

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
