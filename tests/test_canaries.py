"""Secrets are planted wherever a run may meet one; then every file and all output is searched for them."""

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from forget_eval import recording, redaction
from forget_eval.redaction import brief, redact

VERSIONS = Path(__file__).parent / "golden" / "versions" / "v1"
ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-canary-0001-aaaaaaaa",
    "DATABASE_PASSWORD": "canary/0002 with+signs'\"\\é",
    "SOME_SERVICE_TOKEN": "canary-0003-bbbbbbbb",
    "SHORT_SECRET": "cnr_4!",
}
CONFIGURED = ("canary-0005", "canary-0006", "canary-0007", "p@canary-0008", "canary/0009")
SYSTEM = '''
import os, sys, warnings

KEY, PASSWORD = os.environ["OPENAI_API_KEY"], os.environ["DATABASE_PASSWORD"]
TOKEN = os.environ.pop("SOME_SERVICE_TOKEN")


class Leaky:
    """Has secrets in all that it says of itself, and in all that it raises."""

    name = "leaky"
    operations = {"release": "native"}
    configuration = {
        "api_key": "canary-0005",
        "nested": [{"clientSecret": "canary-0006"}],
        "url": "postgres://ada:canary-0007@db/x",
        "urls": ["amqp://ada:p@canary-0008@q", "https://ada:canary/0009@h/v1", f"https://h/v1?api_key={KEY}"],
        "note": f"uses {TOKEN}",
    }

    def __init__(self):
        self.asked = 0
        warnings.warn(f"the key is {KEY}")

    def reset(self):
        self.facts = []
        self.asked += 1

    def inscribe(self, text):
        self.facts.append(text)

    def recall_texts(self, query, k=5):
        if self.asked % 5 == 0:
            raise ValueError("x" * (4000 - 10) + KEY)
        return self.facts[:k]

    def release(self, query):
        return f"done with {TOKEN}, at postgres://ada:canary-0007@db"

    def supersede(self, old_query, new_text):
        raise type(f"Error_{self.asked}", (LookupError,), {})({"password": PASSWORD, "short": "cnr_4!", "token": TOKEN})

    def purge(self, query):
        if self.asked % 3 == 0 and "forget_eval.isolation.worker" in sys.modules:
            print("y" * 1400 + KEY + "z" * (1500 - 8), file=sys.stderr)
            os._exit(3)
        raise ConnectionError(f"https://ada:canary-0007@h/v1?token={TOKEN} with {{'Authorization': 'Bearer {KEY}'}}")

    def close(self):
        raise OSError(f"no goodbye to {TOKEN}")


class Unmakeable(Leaky):
    def __init__(self):
        raise OSError(f"cannot reach postgres://ada:canary-0007@db with {PASSWORD!r}, {TOKEN}")
'''


def canaries() -> list[bytes]:
    """All secrets, as they are and as URLs, JSON and Python write them."""
    forms = [*ENVIRONMENT.values(), *CONFIGURED]
    forms += [form for secret in ENVIRONMENT.values() for form in (quote(secret, safe=""), json.dumps(secret)[1:-1])]
    forms += [repr(secret)[1:-1] for secret in ENVIRONMENT.values()]
    return [form.encode() for form in forms]


def require_none(*outputs: bytes, folder: Path) -> None:
    """No secret is in an output or a file, nor more than half of one at a place where something was cut."""
    halves = [value[: len(value) // 2 + 1] for value in ENVIRONMENT.values() if len(value) > 12]
    halves += [value[len(value) // 2 - 1 :] for value in ENVIRONMENT.values() if len(value) > 12]
    wanted = [*canaries(), *(half.encode() for half in halves)]
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".py":
            content = path.read_bytes()
            assert not [each for each in wanted if each in content], path
    for output in outputs:
        assert not [each for each in wanted if each in output], output


Command = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The command in a folder with the system, where the secrets are in the environment."""
    (tmp_path / "leaky.py").write_text(SYSTEM)

    def run(*arguments: object) -> subprocess.CompletedProcess[bytes]:
        own = {**ENVIRONMENT, "FORGET_EVAL_CACHE": str(tmp_path / "cache"), "FORGET_EVAL_ENVS": str(tmp_path / "envs")}
        call = [sys.executable, "-m", "forget_eval", *map(str, arguments)]
        return subprocess.run(call, cwd=tmp_path, env=os.environ | own, capture_output=True, check=False)

    return run


@pytest.mark.parametrize("isolate", [(), ("--isolate",)])
def test_no_secret_of_a_system_reaches_a_file_or_the_terminal(
    command: Command, tmp_path: Path, isolate: tuple[str, ...]
) -> None:
    data = ("--data", VERSIONS / "forgeteval" / "data")
    ran = command("run", "forgeteval", *data, "--adapter", "leaky:Leaky", "--out", "run", *isolate)
    assert ran.returncode == 0, ran.stderr
    assert b"cannot be closed" in ran.stderr
    forms = ((),) if isolate else ((), ("--json",), ("--markdown",), ("--out", "html"))
    shown = [command("score", "run"), *(command("report", "run", *form) for form in forms)]
    assert {done.returncode for done in shown} == {0}
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["adapter"]["configuration"]["url"] == "postgres://[redacted]@db/x"
    lines = [json.loads(line) for line in (tmp_path / "run" / "transcripts.jsonl").read_text().splitlines()]
    messages = [line["error"]["message"] for line in lines if line["error"]]
    assert any("Bearer [redacted]" in message for message in messages)
    assert any("'password': '[redacted]'" in message for message in messages)
    returned = {operation["returned"] for line in lines for operation in line["operations"]}
    assert "done with [redacted], at postgres://[redacted]@db" in returned
    if isolate:
        assert any("worker exited with status 3" in message for message in messages)
    require_none(*(out for done in (ran, *shown) for out in (done.stdout, done.stderr)), folder=tmp_path)


@pytest.mark.parametrize("isolate", [(), ("--isolate",)])
def test_a_system_that_cannot_be_made_gives_no_secret_away(
    command: Command, tmp_path: Path, isolate: tuple[str, ...]
) -> None:
    done = command("bench", "forgeteval", "--adapter", "leaky:Unmakeable", "--out", "run", *isolate)
    assert done.returncode == 2
    assert b"cannot be made" in done.stderr
    require_none(done.stdout, done.stderr, folder=tmp_path)


UNFORESEEN = """
import os
from forget_eval.cli import main

@main.command()
def broken():
    raise {kind}("no answer from https://ada:canary-0007@h with " + os.environ["OPENAI_API_KEY"])

main(["broken"])
"""


@pytest.mark.parametrize("debug", [{}, {"FORGET_DEBUG": "1"}])
@pytest.mark.parametrize("kind", ["RuntimeError", "OSError"])
def test_an_error_that_nobody_foresaw_gives_no_secret_away(tmp_path: Path, debug: dict[str, str], kind: str) -> None:
    call = [sys.executable, "-c", UNFORESEEN.format(kind=kind)]
    done = subprocess.run(call, cwd=tmp_path, env=os.environ | ENVIRONMENT | debug, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"no answer from https://[redacted]@h with [redacted]" in done.stderr
    assert (b"Traceback" in done.stderr) == (bool(debug) and kind == "RuntimeError")
    require_none(done.stdout, done.stderr, folder=tmp_path)


class _Endpoint(BaseHTTPRequestHandler):
    """Echoes what it was sent, the key too, in its replies or in a refusal."""

    refuses = False

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = f"{self.path} {self.headers['Authorization']}"
        reply = {"choices": [{"message": {"content": said}}], "model": sent["model"]}
        self.send_response(*((401, said) if self.refuses else (200,)))
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def endpoint() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), _Endpoint)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_no_secret_of_a_chat_model_reaches_a_file_or_the_terminal(
    command: Command, tmp_path: Path, endpoint: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("httpx2")
    (tmp_path / "keyword_memory.py").write_bytes((VERSIONS.parent / "keyword_memory.py").read_bytes())
    url = f"http://ada:canary-0007@127.0.0.1:{endpoint}/v1?token=canary-0005"
    chat = ("--answerer", "chat", "--chat-url", url, "--chat-model", "echo")
    asked = ("run", "membehave", "--data", VERSIONS / "membehave" / "data", "--adapter", "keyword_memory:Keyword")
    judge = ("--judge", "chat", "--judge-url", url, "--judge-model", "echo")
    done = [command(*asked, *chat, "--out", "run"), command("score", "run", *judge)]
    assert done[0].returncode == 0, done[0].stderr
    assert b"[redacted]" in (tmp_path / "run" / "transcripts.jsonl").read_bytes()
    done += [command("report", "run"), command("report", "run", "--json")]
    monkeypatch.setattr(_Endpoint, "refuses", True)
    refused = command(*asked, *chat[:-1], "another", "--out", "refused")
    assert refused.returncode == 1
    assert b"does $OPENAI_API_KEY hold a valid key?" in refused.stderr
    outputs = [out for each in (*done, refused) for out in (each.stdout, each.stderr)]
    assert not [out for out in outputs if b64encode(b"ada:canary-0007") in out]
    require_none(*outputs, folder=tmp_path)


# What is hidden -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("amqp://ada:p@ss@host/q", "amqp://[redacted]@host/q"),
        ("https://ada:a/b@host/v1", "https://[redacted]@host/v1"),
        ("see http://host:8080/u/@ada", "see http://host:8080/u/@ada"),
        ('{"a": "x://u:p@h", "b": "y://h/c", "c": "d@e"}', '{"a": "x://[redacted]@h", "b": "y://h/c", "c": "d@e"}'),
    ],
)
def test_a_password_in_a_url_is_hidden_whatever_it_holds(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "form",
    ["a/b c+d'e\\f", "a%2Fb%20c%2Bd%27e%5Cf", "a%2Fb+c%2Bd%27e%5Cf", "a/b c+d'e\\\\f"],
    ids=["plain", "URL", "form", "JSON and Python"],
)
def test_a_secret_is_hidden_however_it_is_written(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv("SOME_PASSWORD", "a/b c+d'e\\f")
    assert redact(f"no access with {form}.") == "no access with [redacted]."


@pytest.mark.parametrize("length", [25, 30, 33, -25, -30, -33])
def test_a_text_is_cut_when_its_secrets_are_hidden(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setenv("SOME_TOKEN", "canary-0123456789")
    text = "x" * 20 + "canary-0123456789" + "y" * 20
    hidden = "x" * 20 + "[redacted]" + "y" * 20
    assert brief(text, length) == (hidden[:length] if length > 0 else hidden[length:])


def test_half_a_secret_at_the_end_of_a_message_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "canary-0123456789")
    for cut in range(3980, 4001):
        error = recording.described(ValueError("x" * cut + "canary-0123456789"), "final")
        assert "canary" not in json.dumps(error)
        assert "canary" not in str(recording.plain("x" * cut + "canary-0123456789"))


def test_a_key_that_a_system_has_removed_from_the_environment_is_still_one() -> None:
    code = (
        "import os; from forget_eval.redaction import redact; key = os.environ.pop('SOME_API_KEY'); "
        "print(redact(f'no access with {key}'))"
    )
    own = {"SOME_API_KEY": "canary-0123456789"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | own, capture_output=True, text=True, check=True
    )
    assert done.stdout == "no access with [redacted]\n"


def test_a_long_text_full_of_urls_is_looked_through() -> None:
    assert redact("://a:" * 200_000 + "@") != ""
    assert redaction.HIDDEN in redact("x://" + "a" * 500_000 + "@h")
