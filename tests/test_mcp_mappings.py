"""Mappings for memory servers, and the rule by which their answers become texts: no server is needed."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.errors import UserError
from forget_eval.adapters import mcp
from forget_eval.mcp_servers import answers, templates
from forget_eval.mcp_servers.answers import AnswerFault

COMMAND = [sys.executable, "-m", "no_server"]
TOOLS = """
[inscribe]
tool = "add_memory"
arguments = { text = "{text}" }
[recall]
tool = "search_memories"
arguments = { query = "{query}", limit = "{k}" }
"""


def started(command: list[str], **seconds: float) -> str:
    return f"[server]\ncommand = {json.dumps(command)}\n" + "".join(f"{k} = {v}\n" for k, v in seconds.items())


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a mapping and gives the adapter's name."""

    def write(text: str) -> str:
        (tmp_path / "mine.toml").write_text(text)
        return f"mcp:{tmp_path / 'mine.toml'}"

    return write


class TestMappings:
    @pytest.mark.parametrize("name", ["lethe", "mempalace"])
    def test_shipped_ones_are_found_by_name(self, name: str) -> None:
        found = mcp.find(f"mcp:{name}")
        assert found.name == f"mcp:{name}"
        assert "embed" in found.__init__.__annotations__

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("mcp", "needs a mapping: mcp:lethe, mcp:mempalace"),
            ("mcp:leth", "Did you mean 'lethe'"),
            ("mcp:gone.toml", "cannot read gone.toml"),
        ],
    )
    def test_others_are_refused(self, name: str, words: str) -> None:
        with pytest.raises(UserError, match=words):
            mcp.find(name)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("[server", "not TOML"),
            ("[serve]\n", "no section named 'serve'. Did you mean 'server'"),
            ("[server]\nurl = 3\n", "field 'server.url' is 3, not a text"),
            ("[server]\ncomand = []\n", r"no key in \[server\] named 'comand'. Did you mean 'command'"),
            ("[server]\n" + TOOLS, r"\[server\] needs one of command"),
            ('[server]\nurl = "u"\n' + TOOLS, "cannot be restarted"),
            ('[server]\nurl = "u"\nenv = {}\n' + TOOLS, r"\[server\] env is for a command"),
            (started(["{pyton}"]) + TOOLS, r"no placeholder in \[server\] named 'pyton'. Did you mean 'python'"),
            (started(["x"]) + TOOLS.replace("{k}", "{kk}"), r"no placeholder in \[recall\] named 'kk'"),
            (started(["x"]) + TOOLS.replace("{text}", "text"), r"\[inscribe\] arguments must hold {text}"),
            (started(["x"], timeout=0) + TOOLS, "timeout must be above 0"),
            (started(["x"], start_timeout=0) + TOOLS, "start_timeout must be above 0"),
            (started(["x"]) + TOOLS.replace("tool", "tol"), r"no key in \[inscribe\] named 'tol'"),
            (started(["x"]) + TOOLS + '[purge]\ntool = "t"\n', "field 'purge.kind' is missing"),
            (started(["x"]) + TOOLS + '[purge]\nkind = "nativ"\ntool = "t"\n', "field 'purge.kind' is 'nativ'"),
            (started(["x"]) + TOOLS + '[purge]\nkind = "native"\ntool = "t"\n', "must hold one of"),
            (started(["x"]) + TOOLS + '[reset]\nby = "tool"\n', r"\[reset\] has a tool if, and only if"),
            (started(["x"]) + TOOLS + '[reset]\nby = "namespace"\n', "needs {namespace}"),
            (started(["x"]) + TOOLS.replace('"{k}"', "2020-01-01"), "cannot be an argument"),
        ],
    )
    def test_what_is_wrong_is_said_with_file_and_key(self, write: Any, text: str, words: str) -> None:
        with pytest.raises(UserError, match=words) as raised:
            mcp.find(write(text))
        assert "mine.toml: " in str(raised.value)

    def test_an_environment_that_is_missing_has_its_line(self, write: Any, monkeypatch: Any, tmp_path: Path) -> None:
        monkeypatch.setenv("FORGET_EVAL_ENVS", str(tmp_path / "none"))
        with pytest.raises(UserError, match="forget-eval env create lethe-mcp"):
            mcp.find("mcp:lethe")(lambda texts: np.ones((len(texts), 2), dtype=np.float32))

    def test_a_variable_that_is_missing_is_named(self, write: Any) -> None:
        text = started(COMMAND) + 'env = { KEY = "{env.NO_SUCH_KEY}" }\n'
        with pytest.raises(UserError, match=r"{env\.NO_SUCH_KEY}, and no such variable is set"):
            mcp.find(write(text + TOOLS))()

    def test_the_adapter_needs_the_standard_library_only(self, root: Path) -> None:
        code = (
            f"import sys; sys.path[:0] = [{str(root)!r}, {str(root / 'eval')!r}]\n"
            "from forget_eval.adapters import mcp; print(mcp.find('mcp:lethe').name)"
        )
        done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "mcp:lethe", done.stderr


class TestTemplates:
    @given(st.text(), st.integers(1, 50))
    def test_a_value_is_handed_over_as_it_is(self, text: str, k: int) -> None:
        template = {"q": "{query}", "n": "{k}", "of": ["{k}", {"note": "top {k}: {query}"}], "x": True}
        wanted = {"q": text, "n": k, "of": [k, {"note": f"top {k}: {text}"}], "x": True}
        assert templates.filled(template, {"query": text, "k": k}) == wanted

    def test_other_braces_are_left_alone(self) -> None:
        assert templates.placeholders(['{"a": 1}', "{}", "{env.KEY}", "{A}", "{k}"]) == ["env.KEY", "k"]


def texts(*found: str) -> list[Any]:
    return [SimpleNamespace(type="text", text=text) for text in found]


class TestAnswers:
    @pytest.mark.parametrize(
        ("blocks", "structured", "value"),
        [
            (texts("x"), {"id": 1}, {"id": 1}),
            (texts("x"), {"result": [1, 2]}, [1, 2]),
            (texts('{"id": 1}'), None, {"id": 1}),
            (texts('{"id": 1}', '{"id": 2}'), None, [{"id": 1}, {"id": 2}]),
            (texts('{"result": ["a"]}'), None, ["a"]),
            (texts("User likes tea."), None, "User likes tea."),
            (texts("553311"), None, "553311"),
            (texts("one", "two"), None, ["one", "two"]),
            ([], None, []),
            (texts('{"error": null, "results": []}'), None, {"error": None, "results": []}),
        ],
    )
    def test_have_a_value(self, blocks: list[Any], structured: Any, value: Any) -> None:
        assert answers.value(blocks, structured) == value

    @pytest.mark.parametrize(
        ("blocks", "structured", "flagged", "words"),
        [
            (texts("no such", "table"), None, True, "no such table"),
            (texts('{"success": false, "error": "locked"}'), None, False, "locked"),
            ([], {"result": {"success": False, "error": {"message": "locked"}}}, False, "locked"),
            ([], {"results": [{"id": 1, "error": "not found"}], "errors": 1}, False, "not found"),
            (texts('{"status": "error", "detail": "busy"}'), None, False, "busy"),
            (texts("Error: no index"), None, False, "Error: no index"),
            ([SimpleNamespace(type="image")], None, False, "without text"),
        ],
    )
    def test_may_be_errors(self, blocks: list[Any], structured: Any, flagged: bool, words: str) -> None:
        with pytest.raises(AnswerFault, match=words):
            answers.value(blocks, structured, flagged)

    @pytest.mark.parametrize(
        ("value", "paths", "found"),
        [
            (["a", "b"], {}, ["a", "b"]),
            ("a", {}, ["a"]),
            ("a\n\nb\n", {"separator": "\n"}, ["a", "b"]),
            ([{"text": "a"}], {}, ["a"]),
            ({"results": [{"memory": "a"}], "relations": []}, {}, ["a"]),
            ({"found": [{"content": "a"}], "n": 1}, {}, ["a"]),
            ({"deep": {"er": [{"doc": {"t": "a"}}]}}, {"items": "deep.er", "text": "doc.t"}, ["a"]),
            ({"documents": [["a", "b"]]}, {"items": "documents.0"}, ["a", "b"]),
        ],
    )
    def test_hold_facts(self, value: Any, paths: dict[str, str], found: list[str]) -> None:
        assert [answers.text(fact, paths) for fact in answers.facts(value, paths)] == found

    @pytest.mark.parametrize(
        ("value", "paths"),
        [
            (None, {}),
            (3, {}),
            ({"message": "nothing found"}, {}),
            ({"one": [], "two": []}, {}),
            ({"results": []}, {"items": "result"}),
            ({"results": "nothing"}, {"items": "results"}),
            ([{"txt": "a"}], {}),
            (["a"], {"text": "text"}),
            ([{"text": None}], {"text": "text"}),
        ],
    )
    def test_that_do_not_fit_are_no_empty_recall(self, value: Any, paths: dict[str, str]) -> None:
        with pytest.raises(AnswerFault):
            [answers.text(fact, paths) for fact in answers.facts(value, paths)]

    @pytest.mark.parametrize(
        ("value", "path", "id"),
        [
            ({"id": 7}, None, 7),
            ({"drawer_id": "d", "user_id": "u"}, None, "d"),
            ({"old_id": 1, "new_id": 2}, None, 2),
            ({"results": [{"id": "m", "memory": "a"}]}, None, "m"),
            ("abc", None, "abc"),
            ({"stored": True}, None, None),
            ({"a": [{"b": 5}]}, "a.0.b", 5),
        ],
    )
    def test_tell_ids(self, value: Any, path: str | None, id: Any) -> None:
        assert answers.new_id(value, path) == id
