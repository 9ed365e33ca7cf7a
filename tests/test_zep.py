"""The adapter for Zep's hosted service, against answers of documented shapes; nothing asks the service."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from forget_datasets.errors import UserError
from forget_eval.adapters import declarations
from forget_eval.adapters.zep import ZepMemory
from forget_eval.catalogue import listing

JOB, CAT, NEW = "The user works at Stripe.", "Miso is a grey cat.", "The user works at Anthropic."
DONE = {"uuid": "task-1", "type": "edges.add", "status": "succeeded"}
TASK = {"uuid": "task-1", "type": "edges.add", "status": "pending"}


class Service:
    """Answers from a script: {(method, path): [answers in turn]}, the last one again and again; notes what came."""

    def __init__(self) -> None:
        self.script: dict[tuple[str, str], list[tuple[int, Any]]] = {}
        self.requests: list[tuple[str, str, Any]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.removeprefix("/api/v4")
                service.requests.append((self.command, path, json.loads(body) if body else None))
                answers = service.script.get((self.command, path), [(404, {"message": f"no {path}"})])
                status, content = answers.pop(0) if len(answers) > 1 else answers[0]
                payload = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_POST = do_PATCH = do_DELETE = answer

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/api/v4"
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def says(self, method: str, path: str, *answers: Any, status: int = 200) -> None:
        self.script[method, path] = [(status, answer) for answer in answers]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("ZEP_API_KEY", "a-key")
    made = Service()
    made.says("POST", "/graphs", {"uuid": "graph-1", "type": "standard"}, {"uuid": "graph-2", "type": "standard"})
    made.says("DELETE", "/graphs/graph-1", {"task": DONE})
    made.says("POST", "/graphs/graph-1/edges", {"edges": [{"uuid": "e1"}, {"uuid": "e2"}], "task": TASK})
    made.says("GET", "/tasks/task-1", {**TASK, "status": "processing"}, DONE)
    yield made
    made.server.shutdown()
    made.server.server_close()


def found(*edges: tuple[str, str]) -> dict[str, Any]:
    """A page of a search."""
    return {"items": [{"uuid": id, "fact": fact, "score": 1 / (i + 1)} for i, (id, fact) in enumerate(edges)]}


def test_adds_edges_in_one_request_and_waits_for_the_task(service: Service) -> None:
    memory = ZepMemory(service.url)
    assert memory.inscribe_many([JOB, CAT]) == ["e1", "e2"]
    nodes = {"fact_name": "STATES", "source_node": {"name": "User"}, "target_node": {"name": "Fact"}}
    edges = [{"fact": JOB, **nodes}, {"fact": CAT, **nodes}]
    assert service.requests[1:] == [
        ("POST", "/graphs/graph-1/edges", {"deduplicate": False, "edges": edges}),
        ("GET", "/tasks/task-1", None),
        ("GET", "/tasks/task-1", None),
    ]


def test_recalls_the_first_page_in_its_order(service: Service) -> None:
    service.says("POST", "/graphs/graph-1/search/edges?page_size=2", found(("e1", JOB), ("e2", CAT)))
    assert ZepMemory(service.url).recall_texts("Where does the user work?", k=2) == [JOB, CAT]
    assert service.requests[-1][2] == {"query": "Where does the user work?"}


def test_an_empty_graph_recalls_nothing(service: Service) -> None:
    service.says("POST", "/graphs/graph-1/search/edges?page_size=5", {})
    assert ZepMemory(service.url).recall_texts("anything") == []


def test_a_supersede_updates_the_edge_that_is_found_first(service: Service) -> None:
    service.says("POST", "/graphs/graph-1/search/edges?page_size=1", found(("e1", JOB)))
    service.says("PATCH", "/graphs/graph-1/edges/e1", {"uuid": "e1", "fact": NEW})
    service.says("DELETE", "/graphs/graph-1/edges/e1", {"task": DONE})
    memory = ZepMemory(service.url)
    memory.inscribe_many([JOB, CAT])
    memory.supersede("The user works at which company?", NEW)
    assert service.requests[-1] == ("PATCH", "/graphs/graph-1/edges/e1", {"fact": NEW})
    assert memory.purge("Stripe") == 0  # it knows what the edge says by now
    assert memory.purge("Anthropic") == 1
    assert service.requests[-1] == ("DELETE", "/graphs/graph-1/edges/e1", None)


def test_a_purge_deletes_the_edges_that_hold_the_identifier(service: Service) -> None:
    service.says("DELETE", "/graphs/graph-1/edges/e2", {"task": DONE})
    memory = ZepMemory(service.url)
    memory.inscribe_many([JOB, CAT])
    assert memory.purge("Miso") == 1
    assert memory.purge("Miso") == 0
    assert [request[:2] for request in service.requests].count(("DELETE", "/graphs/graph-1/edges/e2")) == 1


def test_a_reset_deletes_the_graph_and_close_the_last_one(service: Service) -> None:
    service.says("DELETE", "/graphs/graph-2", {"task": DONE})
    memory = ZepMemory(service.url)
    memory.reset()
    memory.close()
    memory.close()
    assert [request[:2] for request in service.requests] == [
        ("POST", "/graphs"),
        ("DELETE", "/graphs/graph-1"),
        ("POST", "/graphs"),
        ("DELETE", "/graphs/graph-2"),
    ]


def test_a_task_that_fails_is_an_error_in_the_words_of_the_service(service: Service) -> None:
    error = {"code": "bad_edge", "message": "fact is too long"}
    service.says("GET", "/tasks/task-1", {**TASK, "status": "failed", "error": error})
    with pytest.raises(RuntimeError, match=r"^zep: edges.add: fact is too long$"):
        ZepMemory(service.url).inscribe_many([JOB, CAT])


def test_asks_for_a_key_before_anything_is_sent(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZEP_API_KEY")
    with pytest.raises(UserError, match=r"sends every fact to Zep's servers.*set ZEP_API_KEY"):
        ZepMemory(service.url)
    assert service.requests == []


def test_says_that_it_was_not_tried() -> None:
    assert ZepMemory.needs == "not tried: hosted service; ZEP_API_KEY"
    assert declarations.stated(ZepMemory, "tried") == ""
    assert set(declarations.operations(ZepMemory)) == {"supersede", "purge"}
    [row] = [row for row in listing() if row.name == "zep"]
    assert (row.package, row.tried, row.needs) == ("zep-cloud", "", "not tried: hosted service; ZEP_API_KEY")
    assert row.install[0] == "forget-eval env create zep"
