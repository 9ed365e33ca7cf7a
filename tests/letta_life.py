"""The life of one Letta, in its environment: `python letta_life.py REPORT`; ends by killing itself, with it still open.

What `test_letta.py` looks at is written to REPORT as JSON.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import conformance

from forget_datasets.forgeteval import generate
from forget_eval import forgeteval
from forget_eval.adapters.letta import LettaMemory

JOB, SECRET = conformance.JOB, "The zebra's secret is 4711."
PORTS = (5432, 8283)  # PostgreSQL's and Letta's own
MODEL: dict[str, Any] = {
    "model": "unused",
    "model_endpoint_type": "openai",
    "model_endpoint": "http://127.0.0.1:9",
    "context_window": 9,
}


def main(report: str) -> None:
    """Goes through it all, and is gone."""
    with taken(PORTS):
        memory = LettaMemory(conformance.embed)
    found: dict[str, Any] = {"deleted agent": after_an_agent(memory), "rows": rows_of_a_purge(memory)}
    found["misnamed"] = misnamed(memory)
    found["strangers"] = strangers(descendants(os.getpid()))
    found["run"] = [forgeteval.replay(case, Killing(memory, i == 1)) for i, case in enumerate(islice(generate(3), 3))]
    memory.reset()
    memory.inscribe(JOB)
    found["after the restart"] = memory.recall_texts("Where does the user work?")
    found["processes"] = descendants(os.getpid())
    Path(report).write_text(json.dumps(found))
    os.kill(os.getpid(), signal.SIGKILL)


def after_an_agent(memory: LettaMemory) -> dict[str, list[str]]:
    """What the whole server finds of an agent's passage, once the agent is deleted, and once its archive is."""
    client = memory._client
    agent = client.agents.create(name="a", llm_config=MODEL, embedding_config=memory._embedding())
    client.agents.passages.create(agent.id, text=SECRET)
    [archive] = client.archives.list(agent_id=agent.id)
    client.agents.delete(agent.id)
    kept = searched(client)
    client.archives.delete(archive.id)
    return {"agent deleted": kept, "archive deleted": searched(client)}


def searched(client: Any) -> list[str]:
    """Texts of all archives; without a query nothing is embedded."""
    return [each.passage.text for each in client.passages.search(limit=100)]


def rows_of_a_purge(memory: LettaMemory) -> list[str]:
    """What is in the table after two facts were stored and one purged."""
    memory.reset()
    memory.inscribe_many([JOB, SECRET])
    memory.purge("4711")
    return memory._server.query("select text from archival_passages").splitlines()


def misnamed(memory: LettaMemory) -> list[str]:
    """Texts of a batch whose ids are another text's in the table, or in what the adapter remembers."""
    memory.reset()
    texts = [*(f"Note {n}." for n in range(100)), "null \0 null", JOB, JOB]
    ids = memory.inscribe_many(texts)
    rows = dict(row.split("|") for row in memory._server.query("select id, text from archival_passages").splitlines())
    stored = [text.replace("\0", "") for text in texts]
    return [text for id, text in zip(ids, stored, strict=True) if not rows[id] == memory._texts[id] == text]


@contextmanager
def taken(ports: tuple[int, ...]) -> Iterator[None]:
    """While the block runs, somebody has these ports: this process, or whoever has them already."""
    held = []
    for port in ports:
        with suppress(OSError):
            held.append(socket.create_server(("127.0.0.1", port)))
    yield
    for each in held:
        each.close()


class Killing:
    """The memory for one case. With `does`, the server is killed before the first fact: what its guard has started."""

    def __init__(self, memory: LettaMemory, does: bool) -> None:
        self.name = memory.name
        self._memory, self._does = memory, does

    def reset(self) -> None:
        self._memory.reset()
        if self._does:
            assert self._memory._server is not None
            guard = self._memory._server._children[1]
            [server] = children(guard.pid)
            os.kill(server, signal.SIGKILL)
            guard.close()  # it ends by itself: this waits

    def __getattr__(self, name: str) -> Any:
        if name == "release":
            raise AttributeError(name)
        return getattr(self._memory, name)


def children(pid: int) -> list[int]:
    """Processes that this one has started (Linux); none of one that has ended meanwhile, as PostgreSQL's do."""
    tasks = Path(f"/proc/{pid}/task")
    try:
        return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    """All below a process."""
    return [each for child in children(pid) for each in (child, *descendants(child))]


def strangers(pids: list[int]) -> list[str]:
    """What these processes have open, or listen on, beyond the loopback (Linux)."""
    return [each for pid in pids for table in ("tcp", "tcp6", "udp", "udp6") for each in beyond(pid, table)]


def beyond(pid: int, table: str) -> list[str]:
    """Of one process and kind; nothing of a process that has ended meanwhile, as PostgreSQL's come and go."""
    try:
        own = {os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()}
        rows = [line.split() for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
    except OSError:
        return []
    ours = [row for row in rows if f"socket:[{row[9]}]" in own]
    return [f"{table} {row[1]} {row[2]}" for row in ours if not all(map(is_here, row[1:3]))]


def is_here(end: str) -> bool:
    """Whether an end, as "0100007F:1F90", is on the loopback; the other end of what listens is all zeros."""
    address, _, port = end.partition(":")
    return address.endswith(("0100007F", "01000000")) or (port == "0000" and not address.strip("0"))


if __name__ == "__main__":
    main(sys.argv[1])
