"""Memory servers that say odd things: what is read of them, what is written down, and what a person is told."""

import json
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.errors import UserError
from forget_datasets.rows import GeneratedCase
from forget_eval import bench, forgeteval, runs
from forget_eval.adapters import mcp
from forget_eval.data import open_dataset
from forget_eval.isolation.process import Limits
from forget_eval.isolation.selection import Isolation, select
from forget_eval.mcp_commands import mcp as commands
from forget_eval.mcp_servers import answers, mapping, schemas
from forget_eval.mcp_servers.connection import ServerFault
from forget_eval.mcp_servers.proposal import propose

SERVER = Path(__file__).with_name("bare_server.py")
TOOLS = """
[inscribe]
tool = "add_memory"
arguments = { text = "{text}" }
[recall]
tool = "search_memories"
arguments = { query = "{query}" }
"""


def command(**told: Any) -> list[str]:
    return [sys.executable, str(SERVER), json.dumps(told)]


def inspected(*options: str, **told: Any) -> Result:
    return CliRunner().invoke(commands, ["inspect", *options, *command(**told)])


def proposed(done: Result) -> mapping.ServerMapping:
    """The mapping that was printed, read as an adapter reads it."""
    assert done.exit_code == 0, done.exception
    return mapping.parsed(done.stdout, Path("mine.toml"))


def refused(*options: str, **told: Any) -> str:
    error = inspected(*options, **told).exception
    assert isinstance(error, UserError), error
    return str(error)


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a mapping to a server and gives the adapter's name."""

    def write(words: list[str], **seconds: float) -> str:
        server = f"[server]\ncommand = {json.dumps(words)}\n" + "".join(f"{k} = {v}\n" for k, v in seconds.items())
        (tmp_path / "mine.toml").write_text(server + TOOLS)
        return f"mcp:{tmp_path / 'mine.toml'}"

    return write


class TestSchemas:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            (True, "text*: any"),
            ({}, "text*: any"),
            ({"anyOf": [True]}, "text*: any"),
            ({"type": ["string", "null"]}, "text*: string|null"),
            ({"type": ["string", None]}, "text*: string|null"),
            ({"oneOf": [{"type": "string"}, {"type": "null"}]}, "text*: string|null"),
            ({"type": 7, "anyOf": 7, "enum": 7}, "text*: any"),
        ],
    )
    def test_of_any_kind_are_read(self, text: Any, shown: str) -> None:
        done = inspected(schema={"type": "object", "properties": {"text": text}, "required": ["text"]})
        assert proposed(done).calls["inscribe"].arguments == {"text": "{text}"}
        assert shown in done.stderr

    def test_may_require_nothing_and_forbid_a_name(self) -> None:
        done = inspected(schema={"type": "object", "properties": {"text": True, "no": False}, "required": None})
        assert proposed(done).calls["inscribe"].arguments == {"text": "{text}"}
        assert "no: " not in done.stderr

    def test_that_require_null_are_met_by_the_mapping(self, write: Any) -> None:
        schema = {"type": "object", "properties": {"text": True}, "required": None}
        memory = mcp.find(write(command(schema=schema)))()
        assert memory.recall_texts("anything") == []
        memory.close()

    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            ({"enum": [None, "a"]}, "a"),
            ({"const": 3}, 3),
            ({"type": ["null", "integer"]}, 1),
            ({"anyOf": [{"type": "null"}, {"enum": ["b"]}]}, "b"),
            ({"enum": [{"deep": [None]}, ["{text}"], ["c"]]}, ["c"]),
            (True, "forget-eval"),
        ],
    )
    def test_give_a_value_that_a_mapping_can_hold(self, schema: Any, value: Any) -> None:
        assert schemas.stand_in(schema) == value

    @pytest.mark.parametrize(
        "schema", [{"enum": [None]}, {"type": "null"}, {"const": "{text}"}, {"anyOf": [{"enum": []}]}]
    )
    def test_may_allow_none(self, schema: Any) -> None:
        with pytest.raises(schemas.NoValue):
            schemas.stand_in(schema)


class TestAProposal:
    def test_has_a_value_and_names_that_can_be_read_again(self) -> None:
        named = {
            "text": {"type": "string"},
            "z": {"enum": [None, "a"]},
            'a\nkind = "x"\n': {},
            "\x7f": {},
            "\x9b2J": {},
        }
        done = inspected(schema={"type": "object", "properties": named, "required": list(named)})
        made_up = {'a\nkind = "x"\n': "forget-eval", "\x7f": "forget-eval", "\x9b2J": "forget-eval"}
        assert proposed(done).calls["inscribe"].arguments == {"text": "{text}", "z": "a", **made_up}
        assert all(line.isprintable() for line in done.stdout.splitlines())

    def test_says_which_tool_cannot_be_mapped(self) -> None:
        properties = {"text": {"type": "string"}, "z": {"type": "null"}}
        done = inspected(schema={"type": "object", "properties": properties, "required": ["text", "z"]})
        assert "# add_memory looks like inscribe, but wants 'z', and TOML has no value that would do." in done.stdout
        assert "inscribe" not in tomllib.loads(done.stdout)

    def test_says_that_a_command_would_be_read_otherwise(self) -> None:
        assert "# Here {data} would stand for something else" in propose([], {"command": ["serve", "{data}"]})

    _json = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    )

    @given(st.text(st.characters(exclude_categories=["Cs"])), st.lists(_json, max_size=3), st.text())
    def test_is_always_toml(self, name: str, choices: list[Any], tool: str) -> None:
        properties = {"text": {"type": "string"}, name: {"enum": choices}}
        schema = {"properties": properties, "required": [name]}
        query = SimpleNamespace(name="find", input_schema={"properties": {"query": True}})
        text = propose([SimpleNamespace(name=f"add {tool}", input_schema=schema), query], {"url": "http://x/mcp"})
        assert tomllib.loads(text)["recall"]["arguments"] == {"query": "{query}"}
        assert all(line.isprintable() for line in text.split("\n"))


class TestWhatAPersonIsTold:
    def test_has_no_escapes_of_a_terminal(self) -> None:
        done = inspected(name="add_\x1b[31mmemory", description="\x1b[2J\x1b]0;owned\x07Keeps a text.")
        assert r"add_\x1b[31mmemory" in done.stderr
        assert r"\x1b[2J\x1b]0;owned\x07Keeps" in done.stderr
        assert "\x1b" not in done.output
        assert "\x1b" not in refused(refuses="no\x1b[31m way")

    def test_is_the_answer_of_a_server_that_stays_alive(self, write: Any) -> None:
        assert "answered an error (the handshake): no way" in refused(refuses="no way")
        with pytest.raises(UserError, match=r"answered an error .*: no way"):
            mcp.find(write(command(refuses="no way")))()

    @pytest.mark.parametrize(
        ("schema", "words"),
        [
            ({"required": 5}, "tools.0.inputSchema.required: Input should be a valid list, and it is 5"),
            ({"properties": [1]}, "tools.0.inputSchema.properties: Input should be a valid dictionary, and it is [1]"),
        ],
    )
    def test_is_the_schema_that_cannot_be_read(self, schema: dict[str, Any], words: str) -> None:
        assert words in refused(schema={"type": "object", **schema})

    def test_is_that_a_list_has_no_end(self) -> None:
        assert "had not ended after 2 seconds" in refused("--timeout", "2", pages=True)

    def test_is_the_answer_that_is_none(self, write: Any) -> None:
        """It is no use to wait for another."""
        memory = mcp.find(write(command(answers=5), timeout=600))()
        with pytest.raises(ServerFault, match=r'wrote .*"result": 5.* where a message was due'):
            memory.inscribe("a text")
        memory.close()

    def test_keeps_a_secret_that_a_cut_would_go_through(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SERVICE_TOKEN", "Rk83-zzQ0-19vv-Pqr7")
        with pytest.raises(answers.AnswerFault) as raised:
            answers.facts({"note": f"{'x' * 275} Rk83-zzQ0-19vv-Pqr7"}, {})
        assert "Rk83" not in str(raised.value)
        assert "[redacted]" in str(raised.value)


class TestTheTimeoutOfACommand:
    def test_bounds_a_call(self, write: Any) -> None:
        name = write(command(silent="tools/call"), start_timeout=60)
        memory = select(name, isolation=Isolation(limits=Limits(1.0)))
        case = GeneratedCase("case", "purge", ["a fact"], [], "anything", [], [])
        found = forgeteval.replay(case, memory)
        memory.close()
        assert found["status"] == "error"
        assert "nothing came from the server for 1 seconds (add_memory)" in found["error"]["message"]

    def test_bounds_the_start(self, write: Any) -> None:
        name = write(command(silent="initialize"))
        with pytest.raises(UserError, match=r"nothing came from the server for 1 seconds \(the handshake\)"):
            select(name, isolation=Isolation(limits=Limits(1.0)))

    @pytest.mark.parametrize(
        ("stated", "limit", "start", "call"),
        [
            ({}, None, 60, 60),
            ({}, 5, 5, 5),
            ({}, 900, 60, 900),
            ({"timeout": 30}, 900, 60, 30),
            ({"timeout": 30}, 5, 5, 5),
            ({"timeout": 90, "start_timeout": 120}, None, 120, 90),
            ({"start_timeout": 120}, 5, 120, 5),
        ],
    )
    def test_and_that_of_a_mapping(
        self, stated: dict[str, float], limit: float | None, start: float, call: float
    ) -> None:
        lines = "".join(f"{key} = {value}\n" for key, value in stated.items())
        found = mapping.parsed(f'[server]\ncommand = ["x"]\n{lines}{TOOLS}', Path("mine.toml"))
        assert found.timeouts(limit) == (start, call)


def test_a_launcher_that_was_edited_stops_a_run(write: Any, tmp_path: Path) -> None:
    bench.build_data(tmp_path / "data", bench.Shape("en", 4, 3, seed=7))
    dataset = open_dataset(str(tmp_path / "data"), "forgeteval", "en")
    launcher = tmp_path / "launcher.py"
    launcher.write_bytes(SERVER.read_bytes())
    name, run = write([sys.executable, "{here}/launcher.py"]), tmp_path / "run"

    def begin() -> runs.Manifest:
        memory = mcp.find(name)()
        try:
            with runs.opened(run, runs.describe(run, dataset, memory, None, 10)):
                return runs.read(run)
        finally:
            memory.close()

    first = begin()
    assert {"{here}/launcher.py", "host.py", "answers.py"} <= first["adapter"]["configuration"]["files"].keys()
    assert begin() == first
    launcher.write_text(launcher.read_text() + "# another one\n")
    with pytest.raises(UserError, match="adapter configuration was"):
        begin()
