"""Memory servers that speak MCP: real processes over stdio and HTTP, what they answer, and what goes wrong."""

import json
import os
import select
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from forget_datasets.errors import UserError
from forget_datasets.forgeteval import generate
from forget_datasets.rows import GeneratedCase
from forget_eval import embedding, forgeteval
from forget_eval.adapters import mcp
from forget_eval.adapters.declarations import describe, operations
from forget_eval.isolation import environments, selection
from forget_eval.mcp_commands import mcp as commands
from forget_eval.mcp_servers import mapping
from forget_eval.mcp_servers.answers import AnswerFault
from forget_eval.mcp_servers.connection import ServerFault
from forget_eval.mcp_servers.proposal import propose
from forget_eval.mcp_servers.tools import require_tools

SERVER = Path(__file__).with_name("memory_server.py")
COMMAND = [sys.executable, str(SERVER)]
TOOLS = """
[inscribe]
tool = "add_memory"
arguments = { text = "{text}" }
[recall]
tool = "search_memories"
arguments = { query = "{query}", limit = "{k}" }
"""
CHANGES = """
[supersede]
kind = "native"
tool = "update_memory"
arguments = { memory_id = "{id}", text = "{text}" }
[release]
kind = "emulated"
tool = "archive_memories"
arguments = { ids = "{ids}" }
[purge]
kind = "native"
tool = "delete_memories"
arguments = { ids = "{ids}" }
among = "inscribed"
"""
SPACES = TOOLS.replace('text}"', 'text}", user_id = "{namespace}"').replace('k}"', 'k}", user_id = "{namespace}"')
FACTS = ("Ana works at Acme .", "Ana has a cat .", "Ben works at Initech .")


def started(command: list[str], **seconds: float) -> str:
    return f"[server]\ncommand = {json.dumps(command)}\n" + "".join(f"{k} = {v}\n" for k, v in seconds.items())


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a mapping and gives the adapter's name."""

    def write(text: str) -> str:
        (tmp_path / "mine.toml").write_text(text)
        return f"mcp:{tmp_path / 'mine.toml'}"

    return write


@pytest.fixture
def connect(write: Any) -> Iterator[Any]:
    """Makes adapters of mappings, and closes them."""
    made: list[Any] = []

    def connect(text: str) -> Any:
        made.append(mcp.find(write(text))())
        return made[-1]

    yield connect
    for memory in made:
        memory.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An adapter whose server holds the facts, and which no test changes."""
    path = tmp_path_factory.mktemp("shared") / "mine.toml"
    path.write_text(started(COMMAND) + TOOLS + CHANGES)
    memory = filled(mcp.find(f"mcp:{path}")())
    yield memory
    memory.close()


@pytest.fixture
def at_url() -> Iterator[str]:
    """A server over HTTP."""
    with subprocess.Popen([*COMMAND, "http"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
        process.kill()


def filled(memory: Any) -> Any:
    memory.reset()
    for fact in FACTS:
        memory.inscribe(fact)
    return memory


def replay_of(memory: Any, query: str) -> Any:
    case = GeneratedCase("case", "purge", list(FACTS), [("purge", "Acme")], query, [], ["Acme"])
    return forgeteval.replay(case, memory)


class TestAServer:
    def test_does_what_its_mapping_says(self, connect: Any) -> None:
        memory = filled(connect(started(COMMAND) + TOOLS + CHANGES))
        assert memory.recall_texts("where Ana works", k=2) == [FACTS[0], FACTS[1]]
        memory.supersede("Ana works at", "Ana works at Hooli .")
        assert memory.recall_texts("Ana works", k=1) == ["Ana works at Hooli ."]
        assert memory.release("has a cat") == 1
        assert memory.recall_texts("Ana has a cat", k=5) == ["Ana works at Hooli .", FACTS[2]]
        assert memory.purge("Hooli") == 1
        assert memory.purge("cat") == 1  # what is hidden is purged too
        assert memory.recall_texts("Ana Ben cat", k=5) == [FACTS[2]]

    def test_is_another_one_after_a_reset(self, connect: Any) -> None:
        memory = filled(connect(started(COMMAND) + TOOLS))
        memory.reset()
        assert memory.recall_texts("Ana", k=5) == []
        assert memory.inscribe("again from one") == 1

    def test_over_http_keeps_cases_apart_by_names(self, connect: Any, at_url: str) -> None:
        text = f'[server]\nurl = "{at_url}"\n[reset]\nby = "namespace"\n{SPACES}{CHANGES}'
        memory = filled(connect(text))
        assert memory.recall_texts("Ana works", k=1) == [FACTS[0]]
        assert memory.purge("Ana") == 2
        assert memory.recall_texts("Ana works", k=5) == [FACTS[2]]
        memory.reset()
        assert memory.recall_texts("Ana works", k=5) == []
        assert memory.version == "7.1"

    def test_can_be_emptied_by_a_tool(self, connect: Any) -> None:
        reset = '[reset]\nby = "tool"\ntool = "delete_memories"\narguments = { ids = "{ids}" }\n'
        memory = filled(connect(started(COMMAND) + reset + TOOLS))
        memory.reset()
        assert memory.recall_texts("Ana", k=5) == []
        assert memory.inscribe("the same server goes on") == 4

    def test_may_choose_itself(self, connect: Any) -> None:
        purge = '[purge]\nkind = "native"\ntool = "delete_matching"\narguments = { query = "{query}" }\n'
        memory = filled(connect(started(COMMAND) + TOOLS + purge))
        assert operations(memory) == {"purge": {"kind": "native", "chooser": "system"}}
        assert memory.purge("Ana") == 2
        assert memory.recall_texts("works", k=5) == [FACTS[2]]

    def test_supersedes_by_deletion_where_it_cannot_update(self, connect: Any) -> None:
        change = '[supersede]\nkind = "emulated"\ntool = "delete_memories"\narguments = { ids = ["{id}"] }\n'
        memory = filled(connect(started(COMMAND) + TOOLS + change))
        memory.supersede("Ana works at", "Ana works at Hooli .")
        assert memory.recall_texts("Ana works at", k=2) == ["Ana works at Hooli .", FACTS[2]]

    def test_may_talk_before_it_speaks(self, connect: Any) -> None:
        assert filled(connect(started([*COMMAND, "junk"]) + TOOLS)).recall_texts("cat", k=1) == [FACTS[1]]

    def test_lives_in_a_temporary_home(self, connect: Any) -> None:
        memory = connect(started(COMMAND) + TOOLS)
        found = memory._host.connection.call("variables", {})
        assert found["home"] != os.environ["HOME"]
        assert found["folder"] == os.getcwd()
        memory.close()
        assert not os.path.exists(found["home"])

    def test_is_described_by_its_mapping(self, shared: Any) -> None:
        found = describe(shared)
        assert found["name"] == "mcp:mine"
        assert found["class"] == "forget_eval.adapters.mcp:McpMemory"
        assert found["version"] == "7.1"
        assert found["configuration"]["mapping"] == tomllib.loads(started(COMMAND) + TOOLS + CHANGES)
        assert found["operations"]["release"] == {"kind": "emulated", "chooser": "policy"}


class TestFaults:
    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ("!raise", "recall: search_memories: .*the disk is full"),
            ("!value", "recall: search_memories: the palace is locked"),
            ("!text", "recall: no list of facts, but"),
        ],
    )
    def test_an_answered_error_is_raised_in_its_words(self, shared: Any, query: str, words: str) -> None:
        with pytest.raises(AnswerFault, match=words):
            shared.recall_texts(query, k=5)
        assert shared.recall_texts("cat", k=1) == [FACTS[1]]

    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ("!malformed", "wrote .*oops"),
            ("!hang", r"nothing came from the server for 3 seconds \(search_memories\)"),
            ("!die", r"the server exited with status 3 \(search_memories\)"),
        ],
    )
    def test_a_server_that_fails_is_ended_and_the_next_reset_starts_another(
        self, connect: Any, query: str, words: str
    ) -> None:
        memory = filled(connect(started(COMMAND, timeout=3 if query == "!hang" else 60) + TOOLS))
        for _ in range(2):  # it stays so until the reset
            with pytest.raises(ServerFault, match=words) as raised:
                memory.recall_texts(query, k=5)
        assert query != "!die" or "out of memory" in str(raised.value.__cause__)
        assert filled(memory).recall_texts("cat", k=1) == [FACTS[1]]

    def test_a_case_that_meets_one_is_an_error(self, connect: Any) -> None:
        purge = '[purge]\nkind = "native"\ntool = "delete_memories"\narguments = { ids = "{ids}" }\n'
        found = replay_of(connect(started(COMMAND) + TOOLS + purge), "!die")
        assert (found["status"], found["final"]) == ("error", None)
        assert found["error"]["kind"] == "ServerFault"
        assert "out of memory" in found["error"]["traceback"]

    def test_a_tool_that_is_gone_is_named(self, shared: Any) -> None:
        with pytest.raises(AnswerFault, match="Unknown tool: nope"):
            shared._host.connection.call("nope", {})

    def test_a_server_at_a_url_may_end(self, write: Any) -> None:
        with subprocess.Popen([*COMMAND, "http"], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            url = f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
            memory = mcp.find(write(f'[server]\nurl = "{url}"\n[reset]\nby = "namespace"\n{SPACES}'))()
            process.kill()
        with pytest.raises(ServerFault, match="the connection to the server ended"):
            memory.inscribe("lost")
        with pytest.raises(ServerFault, match="the server cannot be reached"):
            memory.reset()
        memory.close()

    @pytest.mark.parametrize(
        ("command", "words"),
        [
            (["no-such-command-at-all"], "cannot run no-such-command-at-all: No such file"),
            ([sys.executable, "-c", "print('hello')"], "the server exited with status 0"),
            ([sys.executable, "-c", "import sys; sys.exit('no key')"], "no key"),
            ([sys.executable, "-c", "import time; time.sleep(600)"], "nothing came from the server for 2 seconds"),
        ],
    )
    def test_what_is_no_server_is_refused(self, write: Any, command: list[str], words: str) -> None:
        with pytest.raises(UserError, match=words):
            mcp.find(write(started(command, start_timeout=2 if "600" in command[-1] else 60) + TOOLS))()

    @pytest.mark.parametrize(
        ("before", "after", "words"),
        [
            ("add_memory", "add_memry", r"\[inscribe\]: no tool named 'add_memry'. Did you mean 'add_memory'"),
            (
                "limit = ",
                "limt = ",
                r"\[recall\]: no argument of tool search_memories named 'limt'. Did you mean 'limit'",
            ),
            ('query = "{query}"', 'user_id = "{query}"', r"\[recall\]: .*wants an argument 'query'"),
        ],
    )
    def test_a_mapping_that_the_server_does_not_fit_is_refused(
        self, shared: Any, before: str, after: str, words: str
    ) -> None:
        wrong = mapping.parsed(started(COMMAND) + TOOLS.replace(before, after), Path("mine.toml"))
        with pytest.raises(UserError, match=words):
            require_tools(wrong, shared._host.connection.tools)

    def test_and_before_anything_is_run(self, write: Any) -> None:
        with pytest.raises(UserError, match="Did you mean 'add_memory'"):
            mcp.find(write(started(COMMAND) + TOOLS.replace("add_memory", "add_memry")))()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are watched as Linux has it")
class TestProcesses:
    def watched(self, memory: Any) -> list[int]:
        """Of the server and of a child that left its process group."""
        return [os.pidfd_open(int(pid)) for pid in memory.recall_texts("!child", k=5)]

    def ended(self, process: int) -> bool:
        gone = select.poll()
        gone.register(process, select.POLLIN)
        return bool(gone.poll(20_000))

    @pytest.mark.parametrize("end", ["close", "reset"])
    def test_end_with_the_connection(self, connect: Any, end: str) -> None:
        memory = connect(started(COMMAND) + TOOLS)
        processes = self.watched(memory)
        getattr(memory, end)()
        assert all(map(self.ended, processes))

    def test_end_when_the_run_is_killed(self, write: Any) -> None:
        code = (
            "import sys; from forget_eval.adapters import mcp\n"
            f"memory = mcp.find({write(started(COMMAND) + TOOLS)!r})()\n"
            "print(*memory.recall_texts('!child', k=5), flush=True)\n"
            "memory.recall_texts('!hang', k=5)"
        )
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout is not None
            processes = [os.pidfd_open(int(pid)) for pid in run.stdout.readline().split()]
            run.send_signal(signal.SIGKILL)
        assert len(processes) == 2
        assert all(map(self.ended, processes))


def tool(name: str, *arguments: str) -> Any:
    properties = {argument: {"type": "string"} for argument in arguments}
    return SimpleNamespace(name=name, input_schema={"properties": properties, "required": list(arguments)})


class TestInspect:
    def test_proposes_a_mapping_that_works(self, connect: Any) -> None:
        done = CliRunner().invoke(commands, ["inspect", *COMMAND])
        assert done.exit_code == 0, done.output
        assert "search_memories" in done.stderr
        memory = filled(connect(done.stdout))
        native = {"kind": "native", "chooser": "policy"}
        assert operations(memory) == {"supersede": native, "release": native, "purge": native}
        memory.supersede("Ana works at", "Ana works at Hooli .")
        assert memory.release("has a cat") == 1
        assert memory.purge("Initech") == 1
        assert memory.recall_texts("Ana Ben cat", k=5) == ["Ana works at Hooli ."]

    def test_of_a_url_proposes_names(self, at_url: str) -> None:
        done = CliRunner().invoke(commands, ["inspect", "--json", "--url", at_url])
        found = json.loads(done.stdout)
        assert (found["server"], found["version"]) == ("words", "7.1")
        assert {tool["name"] for tool in found["tools"]} >= {"add_memory", "delete_memories"}
        proposed = mapping.parsed(found["mapping"], Path("proposed.toml"))
        assert proposed.reset_by == "namespace"
        assert proposed.calls["recall"].arguments == {"query": "{query}", "limit": "{k}", "user_id": "{namespace}"}

    def test_says_what_it_makes_up_and_does_not_find(self) -> None:
        tools = [
            tool("kg_add", "subject", "object"),
            tool("file_drawer"),
            tool("drawer_add", "content", "wing", "room"),
            tool("find", "query", "limit"),
            tool("diaryDelete", "id"),
            tool("drawerDelete", "drawer_id"),
        ]
        text = propose(tools, {"command": ["serve", "--port", '"']})
        found = mapping.parsed(text, Path("proposed.toml"))
        wanted = {"content": "{text}", "wing": "{namespace}", "room": "forget-eval"}
        assert found.calls["inscribe"].arguments == wanted
        assert found.calls["purge"].arguments == {"drawer_id": "{id}"}
        assert found.operations == ["purge"]
        assert "'room' is required, and its value made up." in text
        assert "No tool looks like supersede" in text

    @pytest.mark.parametrize("arguments", [[], ["--url", "http://127.0.0.1:9/mcp", "also"]])
    def test_wants_one_server(self, arguments: list[str]) -> None:
        done = CliRunner().invoke(commands, ["inspect", *arguments])
        assert isinstance(done.exception, UserError)

    def test_of_what_is_no_server_says_why(self) -> None:
        done = CliRunner().invoke(commands, ["inspect", sys.executable, "-c", "import sys; sys.exit('no key')"])
        assert isinstance(done.exception, UserError)
        assert "no key" in str(done.exception)


@pytest.mark.systems
@pytest.mark.parametrize("name", ["lethe", "mempalace"])
def test_a_systems_own_server_answers_as_its_adapter(name: str) -> None:
    """Fifty cases, text for text: the same verdicts follow."""
    wanted = str(mcp.find(f"mcp:{name}").mapping.server["environment"])
    if environments.find(wanted) is None:
        pytest.skip(f"forget-eval env create {wanted}")
    embed = embedding.load("minilm-int8")
    cases = generate(10, seed=42)
    memories = [selection.select(name, embed), mcp.find(f"mcp:{name}")(embed)]
    try:
        for case in cases:
            library, server = (forgeteval.replay(case, memory) for memory in memories)
            for part in ("status", "final", "probes", "again"):
                assert library[part] == server[part], case.id
            assert library["status"] in ("ok", "n/a"), library["error"]
    finally:
        for memory in memories:
            memory.close()
