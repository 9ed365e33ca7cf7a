"""Transcripts survive a kill at any byte, a full disk and hostile text."""

import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval import transcripts
from forget_eval.transcripts import SHAPES, Writer

THREE = [
    {"id": "decay__otp__001", "final": ["The shed opens with 40962."], "probes": []},
    {"id": "decay__otp__002", "final": ["暗証番号は四二です。", 'a "quoted"\nline\u2028'], "probes": [[]]},
    {"id": "decay__otp__003", "final": None, "probes": []},
]


def write(path: Path, records: list[dict[str, object]]) -> None:
    with Writer(path) as writer:
        for record in records:
            if record["id"] not in writer.done:
                writer.append(record)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "transcripts.jsonl"
    write(path, THREE)
    assert list(transcripts.read(path)) == THREE
    assert len(path.read_bytes().splitlines()) == 3


def test_a_file_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert list(transcripts.read(tmp_path / "transcripts.jsonl")) == []


def test_cut_at_every_byte_it_is_completed_to_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "transcripts.jsonl"
    write(path, THREE)
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        assert len(list(transcripts.read(path))) == whole[:cut].count(b"\n")
        write(path, THREE)
        assert path.read_bytes() == whole


def test_reading_leaves_a_torn_line_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "transcripts.jsonl"
    path.write_bytes(transcripts.encode(THREE[0]) + b'{"id": "decay')
    before = path.read_bytes()
    assert list(transcripts.read(path)) == THREE[:1]
    assert path.read_bytes() == before


@pytest.mark.parametrize("line", [b"\0\0\0\0\n", b"{}\n", b"[1]\n", b'{"id": 3}\n', b"\xff\n"])
def test_a_broken_line_is_dropped_at_the_end_and_refused_before_it(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "transcripts.jsonl"
    path.write_bytes(transcripts.encode(THREE[0]) + line)
    assert list(transcripts.read(path)) == THREE[:1]
    path.write_bytes(transcripts.encode(THREE[0]) + line + transcripts.encode(THREE[1]))
    with pytest.raises(UserError, match=r"transcripts\.jsonl, line 2"):
        list(transcripts.read(path))
    with pytest.raises(UserError, match=r"transcripts\.jsonl, line 2"):
        Writer(path)


def test_an_id_that_comes_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "transcripts.jsonl"
    path.write_bytes(transcripts.encode(THREE[0]) * 2)
    with pytest.raises(UserError, match="decay__otp__001"):
        list(transcripts.read(path))


@given(st.lists(st.text(st.characters(codec=None)), max_size=4))
def test_any_text_comes_back(texts: list[str]) -> None:
    line = transcripts.encode({"id": "x", "final": texts})
    assert line.count(b"\n") == 1
    assert json.loads(line)["final"] == texts


def test_a_disk_that_fills_up_keeps_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "transcripts.jsonl"
    one = len(transcripts.encode(THREE[0]))
    code = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({one + 20}, {resource.RLIM_INFINITY}))\n"
        "from pathlib import Path\n"
        "from forget_eval.transcripts import Writer\n"
        f"with Writer(Path({str(path)!r})) as writer:\n"
        f"    writer.append({THREE[0]!r})\n"
        f"    writer.append({THREE[1]!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"EnvironmentFault: cannot write {path}: File too large" in done.stderr
    assert path.read_bytes() == transcripts.encode(THREE[0])
    write(path, THREE)
    assert list(transcripts.read(path)) == THREE


def test_a_folder_that_is_not_there_names_path_and_reason(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"nowhere.*No such file"):
        Writer(tmp_path / "nowhere" / "transcripts.jsonl")


def line(**changes: Any) -> dict[str, Any]:
    """A whole line of ForgetEval, changed; a change to ... leaves a field out."""
    whole = {
        "id": "decay__otp__001",
        "status": "ok",
        "operations": [{"op": "release", "status": "ok", "returned": 1, "seconds": 0.1}],
        "final": ["The shed opens with 40962."],
        "probes": [[]],
        "again": [],
        "store": 3,
        "error": None,
        "seconds": {"final": 0.2},
    }
    return {name: value for name, value in {**whole, **changes}.items() if value is not ...}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"status": "x"}, "field 'status' is 'x', not 'ok', 'n/a' or 'error'"),
        ({"status": ...}, "field 'status' is missing"),
        ({"final": "The shed"}, "field 'final' is 'The shed', not a list or null"),
        ({"final": ["a", None]}, "field 'final[1]' is null, not a text"),
        ({"final": ...}, "field 'final' is missing"),
        ({"probes": None}, "field 'probes' is null, not a list"),
        ({"probes": [[], ["a", 7]]}, "field 'probes[1][1]' is 7, not a text"),
        ({"again": "no"}, "field 'again' is 'no', not a list"),
        ({"operations": {}}, "field 'operations' is an object, not a list"),
        ({"operations": [{"op": "purge"}]}, "field 'operations[0].status' is missing"),
        ({"store": True}, "field 'store' is true, not a whole number"),
        ({"error": "broke"}, "field 'error' is 'broke', not an object or null"),
        ({"error": {"kind": "E", "message": 1, "during": "final"}}, "field 'error.message' is 1, not a text"),
    ],
)
def test_a_line_of_another_shape_is_refused_wherever_it_stands(
    tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    path = tmp_path / "transcripts.jsonl"
    said = re.escape(f"{path}, line 2: {what}")
    for rest in ([], [line(id="decay__otp__003")]):
        path.write_bytes(b"".join(map(transcripts.encode, [line(id="decay__otp__002"), line(**changes), *rest])))
        with pytest.raises(UserError, match=said):
            list(transcripts.read(path, SHAPES["forgeteval"]))
        with pytest.raises(UserError, match=said):
            Writer(path, SHAPES["forgeteval"])


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"before": "no"}, "field 'before' is 'no', not a list or null"),
        ({"after": [None]}, "field 'after[0]' is null, not a text"),
        ({"operations": []}, "field 'operations' is a list, not an object"),
        ({"operations": {"forget": {"status": "done"}}}, "field 'operations.forget.status' is 'done'"),
        ({"answerer": None}, "field 'answerer' is null, not a text"),
    ],
)
def test_a_line_of_membehave_has_a_shape_of_its_own(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    whole = {"id": "u#1", "status": "ok", "before": [""], "after": None, "operations": {}, "error": None}
    path = tmp_path / "transcripts.jsonl"
    path.write_bytes(transcripts.encode(whole))
    assert list(transcripts.read(path, SHAPES["membehave"])) == [whole]
    path.write_bytes(transcripts.encode({**whole, **changes}))
    with pytest.raises(UserError, match=re.escape(f"{path}, line 1: {what}")):
        list(transcripts.read(path, SHAPES["membehave"]))


def test_transcripts_that_are_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "transcripts.jsonl").mkdir()
    for open_it in (lambda path: list(transcripts.read(path)), Writer):
        with pytest.raises(UserError, match=r"transcripts\.jsonl: Is a directory"):
            open_it(tmp_path / "transcripts.jsonl")


def test_a_line_nested_beyond_reading_is_no_transcript(tmp_path: Path) -> None:
    path = tmp_path / "transcripts.jsonl"
    path.write_bytes(b"[" * 200_000 + b"\n" + transcripts.encode(line()))
    with pytest.raises(UserError, match="line 1: not a transcript"):
        list(transcripts.read(path))


def test_a_state_tells_other_answers_and_no_other_times(tmp_path: Path) -> None:
    def state(*lines: dict[str, Any]) -> dict[str, Any]:
        path = tmp_path / "transcripts.jsonl"
        path.write_bytes(b"".join(map(transcripts.encode, lines)))
        return transcripts.state(path, SHAPES["forgeteval"])

    first = state(line())
    assert first["n"] == 1
    slower = [{"op": "release", "status": "ok", "returned": 1, "seconds": 9.9}]
    assert state(line(seconds={"final": 7.0}, operations=slower)) == first
    assert state(line(final=["The shed opens with 40963."])) != first
    assert state(line(), line(id="decay__otp__002"))["n"] == 2
    assert transcripts.state(tmp_path / "nowhere.jsonl")["n"] == 0
