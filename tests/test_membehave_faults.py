"""What breaks around a MemBehave run: processes that die, systems that misbehave, models that send pages."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.build import build_membehave
from forget_eval.membehave.chat import IN_A_ROW
from tests.chat_double import Endpoint, says

KEY = "sk-canary-0123456789"
MODULE = '''
import os
import signal
import sys
from pathlib import Path
from zlib import crc32

import numpy as np

from forget_eval.adapters.reference import ReferenceMemory


def bag(texts):
    """Unit vectors that count words, so that no model is needed."""
    rows = np.full((len(texts), 512), 1e-3, dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().split():
            row[crc32(word.strip(".,!?").encode()) % 512] += 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Mortal(ReferenceMemory):
    """Its process is killed on the second item that is to be forgotten, once."""

    name = "mortal"
    served = 0

    def purge(self, query):
        held = bool(self._texts)
        if held and not self.ending:
            Mortal.served += 1
            self.ending = True
        if Mortal.served == 2 and not os.path.exists("died"):
            Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().purge(query)

    def reset(self):
        self.ending = False
        super().reset()

    def restore(self, state):
        self.ending = False
        super().restore(state)


class Calm:
    def ingest(self, sessions): ...

    def ask(self, question):
        return ""

    def forget(self, request): ...


class Talking(Calm):
    def ask(self, question):
        print("NOISE")
        os.write(1, b"NOISE")
        return ""


class Leaving(Calm):
    def ask(self, question):
        sys.exit(0)


class Emptying(Calm):
    def ingest(self, sessions):
        for session in sessions:
            session.messages.clear()
        sessions.clear()


class Odd(Calm):
    def ask(self, question):
        return "\\ud800\\x00"


class Stillborn(Calm):
    def __init__(self):
        sys.exit(0)
'''


def asked(endpoint: Endpoint) -> tuple[str, ...]:
    """The options that make an endpoint answer."""
    return ("--answerer", "chat", "--chat-url", f"http://me:{KEY}@{endpoint.host}/v1", "--chat-model", "small")


def judging(endpoint: Endpoint, model: str) -> tuple[str, ...]:
    """The options that make an endpoint judge."""
    return ("--judge", "chat", "--judge-url", endpoint.url, "--judge-model", model)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    yield server
    server.close()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults") / "data"
    build_membehave(folder, triplets=1)
    return folder


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_faults.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORGET_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def forget_eval(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "forget_eval", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run(data: Path, name: str, out: str, *more: object) -> subprocess.CompletedProcess[str]:
    words = ("--embedder", "mine_faults:bag") if name in ("reference", "mine_faults:Mortal") else ()
    return forget_eval("run", "membehave", "--data", data, "--adapter", name, *words, "--out", out, *more)


def transcripts(folder: str) -> list[dict[str, Any]]:
    lines = Path(folder, "transcripts.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def untimed(folder: str) -> list[dict[str, Any]]:
    found = transcripts(folder)
    for transcript in found:
        del transcript["seconds"], transcript["operations"]["forget"]["seconds"]
    return found


def test_a_run_that_was_killed_ends_as_one_that_was_not(data: Path) -> None:
    """It dies on the second item of a triplet, whose history was put back, and is told anew afterwards."""
    assert run(data, "mine_faults:Mortal", "killed").returncode == -9
    assert len(transcripts("killed")) == 1
    assert "2 items run" in run(data, "mine_faults:Mortal", "killed").stderr
    assert run(data, "mine_faults:Mortal", "whole").returncode == 0
    assert untimed("killed") == untimed("whole")
    assert ["restore" in t["seconds"] for t in transcripts("killed")] == [False, False, True]
    assert ["restore" in t["seconds"] for t in transcripts("whole")] == [False, True, True]


def test_a_system_in_a_process_of_its_own_answers_the_same(data: Path) -> None:
    run(data, "reference", "here")
    run(data, "reference", "apart", "--isolate")
    assert untimed("apart") == untimed("here")
    assert ["restore" in t["seconds"] for t in transcripts("apart")] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "status"), [("Talking", "scored"), ("Leaving", "error"), ("Emptying", "scored"), ("Odd", "scored")]
)
def test_an_assistant_that_misbehaves_ends_no_bench(name: str, status: str) -> None:
    done = forget_eval(
        "bench", "membehave", "--triplets", 1, "--adapter", f"mine_faults:{name}", "--out", "out", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["statuses"][status] == 3


def test_an_assistant_that_cannot_be_made_is_named(data: Path) -> None:
    done = run(data, "mine_faults:Stillborn", "out")
    assert done.returncode == 2
    assert "adapter 'mine_faults:Stillborn' cannot be made: SystemExit" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("body", [b"", b"<html>Sign in</html>", b'"' + b"x" * (1 << 20) + b'"'])
def test_pages_in_place_of_answers_cost_their_items_alone(data: Path, endpoint: Endpoint, body: bytes) -> None:
    endpoint.in_turn((200, body))
    done = run(data, "reference", "out", *asked(endpoint))
    assert done.returncode == 0, done.stderr
    assert len(endpoint.requests) == 3  # one an item, and none twice
    found = transcripts("out")
    assert {(t["status"], t["error"]["kind"], t["error"]["during"]) for t in found} == {
        ("error", "ReplyError", "before")
    }
    assert all(endpoint.host in t["error"]["message"] for t in found)
    written = [path.read_bytes() for path in Path("out").rglob("*") if path.is_file()]
    assert not any(KEY.encode() in content for content in [*written, done.stderr.encode()])


def test_an_endpoint_that_refuses_everything_blames_no_memory(data: Path, endpoint: Endpoint) -> None:
    endpoint.greets = False
    endpoint.in_turn((400, b'{"error": "no such model"}'))
    done = run(data, "reference", "out", *asked(endpoint))
    assert done.returncode == 1
    assert "refuses this request with HTTP 400, to a mere greeting too" in done.stderr
    assert transcripts("out") == []


def test_repeats_ask_the_model_each_for_itself(data: Path, endpoint: Endpoint) -> None:
    endpoint.in_turn(says("Hello."))
    assert run(data, "reference", "out", *asked(endpoint), "--repeats", "2").returncode == 0
    first = len(endpoint.requests)
    assert run(data, "reference", "again", *asked(endpoint)).returncode == 0
    assert len(endpoint.requests) == first > 0
    assert run(data, "reference", "again", *asked(endpoint), "--force").returncode == 0
    assert len(endpoint.requests) == first * 3 // 2


def test_an_endpoint_that_is_down_stops_a_run_that_can_go_on(data: Path, endpoint: Endpoint) -> None:
    endpoint.in_turn((404, b""))
    stopped = run(data, "reference", "out", *asked(endpoint))
    assert stopped.returncode == 1
    assert f"the model at {endpoint.host} does not answer: it answers with HTTP 404" in stopped.stderr
    assert KEY not in stopped.stderr
    assert transcripts("out") == []
    endpoint.in_turn(says("I don't know."))
    assert run(data, "reference", "out", *asked(endpoint)).returncode == 0
    assert {t["status"] for t in transcripts("out")} == {"ok"}
    assert {answer for t in transcripts("out") for answer in t["after"]} == {"I don't know."}


def test_chat_judges_add_files_and_replace_none(data: Path, endpoint: Endpoint) -> None:
    """Two models whose names are alike but for their signs. Either says yes to everything."""
    endpoint.in_turn(says("yes"))
    run(data, "oracle", "out")
    forget_eval("score", "out")
    summary, scores = Path("out", "summary.json").read_bytes(), Path("out", "scores")
    forget_eval("score", "out", *judging(endpoint, "org-small"))
    first = {path.name: path.read_bytes() for path in scores.iterdir()}
    assert set(first) == {"chat-org-small.json", "chat-org-small.parquet", "chat-org-small.judgements.jsonl"}
    forget_eval("score", "out", *judging(endpoint, "org/small"))
    assert len(list(scores.iterdir())) == 6
    assert {name: (scores / name).read_bytes() for name in first} == first
    assert Path("out", "summary.json").read_bytes() == summary
    judged = json.loads(first["chat-org-small.json"])
    assert judged["metrics"]["attributed_coverage"]["all"]["value"] == 1.0
    assert judged["judge"]["undecided"] == 0
    shown = " ".join(forget_eval("report", "out").stdout.split())
    assert "judged by org-small: agrees with the deterministic judge on" in shown
    assert "judged by org/small: agrees with the deterministic judge on" in shown


def test_a_judge_that_sends_nothing_but_pages_stops_the_scoring(data: Path, endpoint: Endpoint) -> None:
    endpoint.in_turn((200, b"<html>Sign in</html>"))
    run(data, "oracle", "out")
    done = forget_eval("score", "out", *judging(endpoint, "small"))
    assert done.returncode == 1
    assert f"the model at {endpoint.host} does not answer: {IN_A_ROW} times in a row" in done.stderr
    assert len(endpoint.requests) == IN_A_ROW + 1  # the first is followed by a greeting, which it replies to
    assert not list(Path("out").rglob("*judgements*"))


def test_answers_in_no_encoding_can_be_judged(data: Path, endpoint: Endpoint) -> None:
    endpoint.in_turn(says("No."))
    run(data, "mine_faults:Odd", "out")
    done = forget_eval("score", "out", *judging(endpoint, "small"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["judge"]["undecided"] == 0


def test_a_transcript_of_another_shape_is_named_by_file_line_and_field(data: Path) -> None:
    run(data, "oracle", "out")
    path = Path("out", "transcripts.jsonl")
    found = transcripts("out")
    found[1]["after"][0] = None
    path.write_text("".join(json.dumps(t) + "\n" for t in found), encoding="utf-8")
    done = forget_eval("score", "out")
    assert done.returncode == 2
    assert f"{path}, line 2: field 'after[0]' is null, not a text" in done.stderr
