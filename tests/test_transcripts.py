"""Transcripts survive a kill at any byte, a full disk and hostile text."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval import transcripts
from forget_eval.transcripts import Writer

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
