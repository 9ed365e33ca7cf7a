"""Systems that do all kinds of things in a process of their own, and workers of them."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forget_eval import adapters
from forget_eval.isolation.process import Limits
from forget_eval.isolation.proxy import WorkerMemory
from forget_eval.isolation.selection import Isolation, select

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a kernel that hands orphans over")

SYSTEMS = '''
import ctypes, os, re, signal, subprocess, sys, threading, weakref
import numpy as np

class Plain:
    """Facts in a list; a query finds those that hold it. What a purge does, its query says."""
    name = "plain"
    operations = {"purge": "native"}
    choosers = {"purge": "policy"}
    def reset(self): self.facts = []
    def inscribe(self, text):
        self.facts.append(text)
        return len(self.facts)
    def recall_texts(self, query, k=5): return [fact for fact in self.facts if query in fact][:k]
    def purge(self, query): return getattr(self, query)()

    def exit(self): os._exit(3)
    def crash(self): ctypes.string_at(0)
    def killed(self): os.kill(os.getpid(), signal.SIGKILL)
    def deaf(self):
        os.closerange(3, 4096)
        signal.pause()
    def hang(self): re.match(r"(a+)+$", "a" * 60 + "b")
    def wrong(self): raise LookupError("no such fact \\udc00")
    def lacking(self): raise NotImplementedError("no purge today")
    def leave(self): sys.exit("bye")
    def mute(self):
        class Mute(Exception):
            def __str__(self): raise ValueError
        raise Mute
    def talk(self):
        print("to stdout")
        os.write(1, b"past Python\\n")
        subprocess.run(["echo", "from a child"])
        return 1
    def scribble(self):
        for descriptor in range(3, 1024):
            try: os.write(descriptor, b"not ours\\n")
            except OSError: pass
    def come_back(self):
        os.fork()
        return 7
    def children(self):
        near = subprocess.Popen(["sleep", "600"]).pid
        read, write = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(write, b"%d\\n" % os.getpid())
                os.execlp("sleep", "sleep", "600")
            os._exit(0)
        return [os.getpid(), near, int(os.read(read, 20))]
    def greedy(self): return len(bytearray(1 << 30))
    def variables(self): return [os.environ[name] for name in ("HOME", "TMPDIR", "MEM0_TELEMETRY", "MY_API_KEY")]
    def numbers(self): return os.getpid()

    def of_bytes(self): return b"x"
    def of_int64(self): return np.int64(5)
    def of_bool(self): return np.bool_(True)
    def of_array(self): return np.zeros(2)
    def of_tuple(self): return (1, 2)
    def of_list(self): return ["a", 1]
    def of_dict(self): return {"a": 1}
    def of_none(self): return None
    def of_nan(self): return float("nan")
    def of_huge(self): return 1 << 70
    def of_object(self): return object()
    def of_text(self): return "done"

class Odd(Plain):
    """Recalls what a memory must not."""
    def recall_texts(self, query, k=5): return getattr(self, query)()
    def of_mixed(self): return ["a", b"b"]
    def of_str(self): return "a"
    def of_many(self): return ["a"] * (k := 99)
    def of_texts(self): return (np.str_("a"), "b")

class Embedding:
    def __init__(self, embed): self.embed = embed
    def reset(self): pass
    def inscribe(self, text): return 1
    def recall_texts(self, query, k=5): return [str(self.embed([query]).tolist()), str(self.embed.dim)]
    def release(self, query):
        found = []
        threads = [threading.Thread(target=lambda: found.append(len(self.embed([query] * 3)))) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return sum(found)
    def purge(self, query): return self.embed(query)

class Keeping(Plain):
    """Snapshots whose number is known, while they live."""
    def __init__(self): self.alive = weakref.WeakSet()
    def snapshot(self):
        class State(list): __hash__ = object.__hash__
        state = State(self.facts)
        self.alive.add(state)
        return state
    def restore(self, state): self.facts = list(state)
    def release(self, query): return len(self.alive)

class Companion:
    def ingest(self, sessions): self.heard = [m.content for s in sessions for m in s.messages if m.role == "user"]
    def ask(self, question): return " ".join(self.heard)
    def forget(self, request): raise NotImplementedError

class Told(Plain):
    def _tell(self, case): self.case = case

class Unmakeable(Plain):
    def __init__(self): raise OSError("no disk at all")

class Full(Plain):
    def __init__(self):
        from forget_datasets.errors import EnvironmentFault
        raise EnvironmentFault("no room on the disk")

class Warning(Plain):
    def __init__(self):
        from forget_eval import guest
        class Stuck:
            def close(self): raise ValueError("stuck")
        guest.close(Stuck(), "the store")
        import warnings
        warnings.warn("a system's own")
'''


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the systems, and none of the machine's environments."""
    (tmp_path / "systems.py").write_text(SYSTEMS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORGET_EVAL_ENVS", str(tmp_path / "envs"))
    monkeypatch.setenv("MY_API_KEY", "sk-0123456789")


Isolated = Callable[..., Any]


@pytest.fixture
def isolated() -> Iterator[Isolated]:
    """Makes workers of a class, and ends them afterwards."""
    made: list[WorkerMemory] = []

    def make(
        system: str, embed: Any = None, timeout: float = 120, memory_mb: int | None = None, kinds: Any = None
    ) -> Any:
        isolation = Isolation(True, Limits(timeout, memory_mb))
        made.append(select(f"systems:{system}", embed, isolation, kinds or (adapters.MANDATORY,)))
        if hasattr(made[-1], "reset"):
            made[-1].reset()
        return made[-1]

    yield make
    for memory in made:
        memory.close()


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The same classes in this process."""
    namespace: dict[str, Any] = {"__name__": "systems"}
    exec(SYSTEMS, namespace)
    return namespace


def digits(texts: Sequence[str]) -> Any:
    """A vector that tells the length of its text."""
    return np.array([[len(text), 0.5, 0.25] for text in texts], dtype=np.float32)
