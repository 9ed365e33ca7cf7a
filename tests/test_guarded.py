"""A server of an adapter's own: how it is awaited, what is said of one that fails, and that it ends."""

import os
import select
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval.adapters.guarded import Guarded, socket_path

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc")
LONGEST = 60.0  # seconds
ENV = {"PATH": os.environ["PATH"]}
SERVER = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
print("from", os.getcwd(), sorted(os.environ.keys() - {"LC_CTYPE"}), flush=True)
listening.accept()[0].close()
sys.stdin.read()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """One with a short path."""
    with TemporaryDirectory() as path:
        yield Path(path)


def started(folder: Path, code: str = SERVER, *arguments: str) -> Guarded:
    return Guarded(folder, "server", [sys.executable, "-c", code, *arguments], ENV, "The server does not start")


def test_it_is_awaited_until_it_listens_and_sees_its_variables_alone(folder: Path) -> None:
    path = socket_path(folder, "its.sock")
    server = started(folder, SERVER, path)
    try:
        server.await_socket(path, LONGEST)
        assert server.is_alive
        assert (folder / "server.log").read_text() == f"from {folder} ['PATH']\n"
    finally:
        server.close()
    assert not server.is_alive
    server.close()


def test_one_that_ends_before_it_is_ready_is_quoted(folder: Path) -> None:
    server = started(folder, "print(*range(20), sep='\\n'); exit(3)")
    with pytest.raises(EnvironmentFault) as caught:
        server.await_socket(str(folder / "its.sock"), LONGEST)
    server.close()
    first, *rest = str(caught.value).splitlines()
    assert first == "The server does not start. It said last:"
    said = [line.strip() for line in rest if line.strip()]
    assert said == [*map(str, range(14, 20)), "(the server exited with status 3)"]  # eight lines, one of them empty


def test_one_that_a_nameless_signal_kills_is_quoted_and_what_it_started_ends(folder: Path) -> None:
    code = (
        "import os, signal, subprocess\n"
        "print(subprocess.Popen(['sleep', '600']).pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGRTMIN + 1)"
    )
    server = started(folder, code)
    with pytest.raises(EnvironmentFault, match=r"\(the server was killed by signal 35\)"):
        server.await_socket(str(folder / "its.sock"), LONGEST)
    server.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "server.log").read_text().split()[0]), 0)


def test_one_that_takes_too_long_is_given_up(folder: Path) -> None:
    server = started(folder, "input()")
    try:
        with pytest.raises(EnvironmentFault, match="The server does not start"):
            server.await_ready(lambda: False, 0.0)
        assert server.is_alive
    finally:
        server.close()


def test_a_guard_that_does_not_end_in_time_is_killed_with_its_server(folder: Path) -> None:
    server = started(folder, "import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    server.await_ready((folder / "server.log").read_text, LONGEST)  # type: ignore[arg-type]
    ended = os.pidfd_open(int((folder / "server.log").read_text()))
    server.close(longest=0.0)  # the guard gives it half a second
    assert not server.is_alive
    assert select.select([ended], [], [], LONGEST)[0]
    os.close(ended)


def test_a_program_that_is_not_there_is_named(folder: Path) -> None:
    server = Guarded(folder, "server", ["/nowhere/server"], ENV, "The server does not start")
    with pytest.raises(EnvironmentFault, match="cannot run /nowhere/server"):
        server.await_socket(str(folder / "its.sock"), LONGEST)
    server.close()


def test_a_path_that_is_too_long_for_a_socket_is_refused_at_100_bytes() -> None:
    room = 100 - len("/s")
    path = socket_path(Path("/" + "d" * (room - 1)), "s")
    assert len(path) == 100
    with pytest.raises(UserError, match=r"too long a path for a socket\. Set TMPDIR to a shorter one"):
        socket_path(Path("/" + "d" * room), "s")


def test_a_file_at_which_nobody_listens_is_no_server(folder: Path) -> None:
    path = str(folder / "its.sock")
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(path)
    server = started(folder, "pass")
    with pytest.raises(EnvironmentFault, match="exited with status 0"):
        server.await_socket(path, LONGEST)
    server.close()
