"""HippoRAG from start to end, run by the Python of its environment: `python hipporag_life.py REPORT`.

REPORT is written as JSON: what was seen, by name.
"""

import json
import os
import sys
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from conformance import embed

from forget_eval.adapters.hipporag import HipporagDense, HipporagMemory
from forget_eval.adapters.hipporag_llm import HipporagModelMemory

JOB, NEW, CAT = "The user works at Stripe.", "The user works at Anthropic.", "Miso is a grey cat."
ANA, BEN = "Ana works at Globex.", "Ben works at Globex."
NAMED = '{"named_entities": ["User", "Stripe"]}'
STATED = '{"triples": [["User", "works at", "Stripe"]]}'
CHOSEN = '[[ ## fact_after_filter ## ]]\n{"fact": [["user", "works at", "stripe"]]}\n\n[[ ## completed ## ]]'
CODE = '{"named_entities": [].__class__(["evaluated"])}'


class Model:
    """An endpoint on the loopback that answers each kind of question with one text; None is an error of the server."""

    def __init__(self, **replies: str | None) -> None:
        self.asked: list[str] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                kind = _kind(request["messages"])
                model.asked.append(kind)
                text = replies[kind]
                choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
                body = json.dumps({**reply, "choices": [choice]}).encode()
                self.send_response(400 if text is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


def _kind(messages: list[dict[str, str]]) -> str:
    if "fact_before_filter" in messages[-1]["content"]:
        return "choice"
    return "triples" if "named_entities" in messages[-1]["content"] else "names"


def graph() -> dict[str, Any]:
    """What the rules and the work-arounds make of few facts."""
    memory = HipporagMemory(embed)
    ids = memory.inscribe_many([JOB, CAT])
    hippo = memory._hippo
    found: dict[str, Any] = {
        "ids": ids,
        "stored": [id for id, _ in memory._stored()],
        "facts": sorted(map(eval, hippo.fact_embedding_store.texts)),
        "entities": sorted(hippo.entity_embedding_store.texts),
        "linking_top_k": hippo.global_config.linking_top_k,
    }
    found["recalled"] = memory.recall_texts("The user works at", k=1)
    memory.inscribe(NEW)  # after a search, and with more than one to find
    found["recalled later"] = sorted(memory.recall_texts("The user works at", k=2))
    found["purged"] = [memory.purge("Stripe"), memory.purge("Anthropic"), memory.purge("Miso")]
    found["emptied"] = memory.recall_texts("The user works at")
    memory.inscribe(JOB)  # the package itself fails an assertion here
    found["used again"] = memory.recall_texts("The user works at")
    found["same twice"] = len(set(memory.inscribe_many([JOB, JOB])))
    memory.close()
    return found


def residue() -> dict[str, list[str]]:
    """The entities that are left of two documents that share one, deleted one by one and together."""
    memory = HipporagMemory(embed)
    left = {}
    for way, identifiers in (("one by one", ("Ana", "Ben")), ("together", ("Globex",))):
        memory.reset()
        memory.inscribe_many([ANA, BEN, CAT])
        for identifier in identifiers:
            memory.purge(identifier)
        left[way] = sorted(memory._hippo.entity_embedding_store.texts)
    memory.close()
    return left


def dense() -> list[str]:
    """What the other row finds."""
    memory = HipporagDense(embed)
    memory.inscribe_many([JOB, CAT])
    found = memory.recall_texts("Is Miso a cat?", k=2)
    memory.close()
    return found


def unmended(way: str, linked: int) -> str:
    """What becomes of a search, an insertion and a search if the package's own method takes the place of ours."""
    memory = HipporagMemory(embed)
    hippo = memory._hippo
    hippo.global_config.linking_top_k = linked
    own = getattr(type(hippo).__mro__[1], way) if way else None
    if own:
        setattr(hippo, way, partial(own, hippo))
    try:
        for text, query in ((JOB, "The user works at"), (CAT, "Is Miso a cat?")):
            memory.inscribe(text)
            memory.recall_texts(query)
        return str(len(memory.recall_texts("cat")))
    except AssertionError:
        return "AssertionError"
    finally:
        memory.close()


def asked(**replies: str | None) -> dict[str, Any]:
    """One text in, one question, with a language model that replies so."""
    model = Model(**replies)
    memory = HipporagModelMemory(embed, model.url, "a-model")
    defaults = memory._hippo.global_config
    found: dict[str, Any] = {"linking_top_k": [memory.configuration["linking_top_k"], defaults.linking_top_k]}
    try:
        memory.inscribe(JOB)
        found["facts"] = list(memory._hippo.fact_embedding_store.texts)
        found["names"] = json.loads(Path(memory._hippo.openie_results_path).read_text())["docs"][0][
            "extracted_entities"
        ]
        found["recalled"] = memory.recall_texts("Where does the user work?")
    except RuntimeError as error:
        found["error"] = str(error)
    found["asked"] = model.asked
    memory.close()
    model.server.shutdown()
    model.server.server_close()
    return found


def main(report: str) -> None:
    """All of it."""
    found = {
        "graph": graph(),
        "residue": residue(),
        "dense": dense(),
        "mended": unmended("", 5),
        "unmended": {way: unmended(way, 5) for way in ("get_fact_scores", "index")},
        "published": asked(names=NAMED, triples=STATED, choice=CHOSEN),
        "evaluated": asked(names=CODE, triples='{"triples": []}', choice=CHOSEN),
        "unreadable": asked(names="I cannot.", triples="Nor this.", choice="Nor that."),
        "refused": asked(names=None, triples=None, choice=None),
        "children": Path(f"/proc/self/task/{os.getpid()}/children").read_text().split(),
    }
    Path(report).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
