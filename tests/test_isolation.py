"""Adapters in a process of their own: what travels, what a broken system can do to a run, and what is left of it."""

import json
import os
import select as os_select
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forget_datasets.errors import UserError
from forget_datasets.forgeteval import generate
from forget_datasets.rows import Message, Session
from forget_eval import adapters, embedding, forgeteval
from forget_eval.isolation.messages import AdapterFault, WorkerTraceback
from forget_eval.isolation.process import Limits
from forget_eval.isolation.proxy import WorkerMemory
from forget_eval.isolation.selection import Isolation, select, wants_embedder
from forget_eval.recording import BadAnswerError, plain, recalled

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

class Warning(Plain):
    def __init__(self):
        from forget_eval import guest
        class Stuck:
            def close(self): raise ValueError("stuck")
        guest.close(Stuck(), "the store")
        import warnings
        warnings.warn("a system's own")
'''


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_it_has_exactly_the_methods_of_its_class(isolated: Isolated) -> None:
    memory = isolated("Plain")
    assert memory.name == "plain"
    assert [hasattr(memory, op) for op in ("supersede", "release", "purge")] == [False, False, True]
    assert not hasattr(memory, "snapshot")
    assert not hasattr(memory, "inscribe_many")
    assert (memory.operations, memory.choosers) == ({"purge": "native"}, {"purge": "policy"})
    assert memory.described_by_worker()["class"] == "systems:Plain"
    assert memory.described_by_worker()["isolation"] == {"environment": None}


def test_facts_go_in_and_come_back(isolated: Isolated) -> None:
    memory = isolated("Plain")
    long = "Ω" * 500_000 + " end"
    texts = ["a lone \udc00 surrogate", "line\nbreak \u2028", long]
    assert [memory.inscribe(text) for text in texts] == [1, 2, 3]
    assert memory.recall_texts("", k=10) == texts
    assert memory.recall_texts("end") == [long]
    memory.reset()
    assert memory.recall_texts("") == []


def test_two_at_once_do_not_mix(isolated: Isolated) -> None:
    one, two = isolated("Plain"), isolated("Plain")
    one.inscribe("of one")
    two.inscribe("of two")
    assert (one.recall_texts("of"), two.recall_texts("of")) == (["of one"], ["of two"])
    assert one.purge("numbers") != two.purge("numbers")


def test_what_is_printed_stays_out_of_the_way(isolated: Isolated, capfd: pytest.CaptureFixture[str]) -> None:
    memory = isolated("Plain")
    assert memory.purge("talk") == 1
    assert memory.recall_texts("x") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "what",
    [
        *("of_bytes", "of_int64", "of_bool", "of_array", "of_tuple", "of_list", "of_dict"),
        *("of_none", "of_nan", "of_huge", "of_object", "of_text"),
    ],
)
def test_a_transcript_shows_of_a_value_what_it_shows_in_process(what: str, isolated: Isolated, direct: Any) -> None:
    assert plain(isolated("Plain").purge(what)) == plain(direct["Plain"]().purge(what))


@pytest.mark.parametrize("what", ["of_mixed", "of_str", "of_many", "of_none", "of_dict", "of_array", "of_list"])
def test_a_bad_answer_is_refused_with_the_same_words(what: str, isolated: Isolated, direct: Any) -> None:
    memory = isolated("Odd")
    with pytest.raises(BadAnswerError) as there:
        recalled(memory.recall_texts(what), 10)
    with pytest.raises(BadAnswerError) as here:
        recalled(direct["Odd"]().recall_texts(what), 10)
    assert str(there.value) == str(here.value)


def test_texts_of_other_types_are_texts(isolated: Isolated) -> None:
    assert recalled(isolated("Odd").recall_texts("of_texts"), 10) == ["a", "b"]


def test_an_exception_keeps_its_name_its_message_and_its_place(isolated: Isolated) -> None:
    memory = isolated("Plain")
    with pytest.raises(AdapterFault, match="no such fact \udc00") as caught:
        memory.purge("wrong")
    assert type(caught.value).__name__ == "LookupError"
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert "systems.py" in str(caught.value.__cause__)
    memory.inscribe("it lives on")
    assert memory.recall_texts("lives") == ["it lives on"]


def test_what_a_class_cannot_do_is_not_implemented_here_either(isolated: Isolated) -> None:
    with pytest.raises(NotImplementedError, match="no purge today"):
        isolated("Plain").purge("lacking")


@pytest.mark.parametrize(("how", "kind"), [("leave", "SystemExit"), ("mute", "Mute")])
def test_whatever_is_raised_is_a_fault(how: str, kind: str, isolated: Isolated) -> None:
    with pytest.raises(AdapterFault) as caught:
        isolated("Plain").purge(how)
    assert type(caught.value).__name__ == kind


@pytest.mark.parametrize(
    ("how", "ending", "last_words"),
    [
        ("exit", "exited with status 3", None),
        ("crash", "killed by SIGSEGV", "Segmentation fault"),
        ("killed", "killed by SIGKILL", None),
        ("scribble", "not ours", None),
    ],
)
def test_a_worker_that_dies_fails_its_case_and_the_next_one_goes_on(
    how: str, ending: str, last_words: str | None, isolated: Isolated
) -> None:
    memory = isolated("Plain")
    memory.inscribe("lost with the worker")
    with pytest.raises(AdapterFault, match=ending) as caught:
        memory.purge(how)
    assert last_words is None or last_words in str(caught.value.__cause__)
    with pytest.raises(AdapterFault, match="has ended"):
        memory.recall_texts("lost")  # a store that died must not look like an empty one
    memory.reset()
    memory.inscribe("new")
    assert memory.recall_texts("") == ["new"]


def test_a_worker_that_hangs_is_ended_and_says_where(isolated: Isolated) -> None:
    memory = isolated("Plain", timeout=2)
    with pytest.raises(AdapterFault, match="for 2 seconds") as caught:
        memory.purge("hang")
    assert type(caught.value).__name__ == "WorkerTimeout"
    assert "in hang" in str(caught.value.__cause__)
    memory.reset()
    assert memory.recall_texts("") == []


def test_a_case_of_a_worker_that_died_is_an_error_and_the_others_are_not(isolated: Isolated) -> None:
    memory = isolated("Plain")
    queries = ["of_none", "exit", "of_none"]
    cases = [replace(case, mutations=[("purge", q)]) for case, q in zip(generate(1), queries, strict=False)]
    transcripts = [forgeteval.replay(case, memory) for case in cases]
    assert [transcript["status"] for transcript in transcripts] == ["ok", "error", "ok"]
    error = transcripts[1]["error"]
    assert (error["kind"], error["message"]) == ("WorkerDied", "its worker exited with status 3")
    assert error["during"] == "purge"


def test_a_forked_child_that_comes_back_answers_nobody(isolated: Isolated) -> None:
    memory = isolated("Plain")
    assert [memory.purge("come_back"), memory.inscribe("x"), memory.recall_texts("x")] == [7, 1, ["x"]]


@linux
def test_closing_ends_children_and_daemons_too(isolated: Isolated) -> None:
    memory = isolated("Plain")
    processes = memory.purge("children")
    assert len(processes) == 3
    memory.close()
    assert not any(map(_runs, processes))


@linux
def test_when_the_run_is_killed_nothing_of_it_stays(tmp_path: Path) -> None:
    code = (
        "from forget_eval.isolation.selection import Isolation, select; "
        "memory = select('systems:Plain', isolation=Isolation(True)); memory.reset(); "
        "print(memory.purge('variables')[0], *memory.purge('children'), flush=True); memory.purge('hang')"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        home, *pids = run.stdout.readline().split()
        watched = [os.pidfd_open(int(pid)) for pid in pids]
        assert os.path.isdir(home)
        run.kill()
    for process in watched:
        assert os_select.select([process], [], [], 60)[0], "still running"
        os.close(process)


def test_workers_leave_nothing_open(isolated: Isolated) -> None:
    isolated("Plain").close()
    before = _open_files()
    for _ in range(3):
        memory = isolated("Plain")
        with pytest.raises(AdapterFault):
            memory.purge("exit")
        memory.reset()
        memory.close()
        memory.close()
    assert _open_files() == before


def test_home_is_a_folder_that_goes_and_keys_are_passed_on(isolated: Isolated) -> None:
    memory = isolated("Plain")
    home, temporary, telemetry, key = memory.purge("variables")
    assert (telemetry, key) == ("False", "sk-0123456789")
    assert home == temporary != os.environ.get("HOME")
    assert os.path.isdir(home)
    memory.close()
    assert not os.path.exists(home)


@linux
def test_memory_can_be_limited(isolated: Isolated) -> None:
    memory = isolated("Plain", memory_mb=700)
    with pytest.raises(AdapterFault) as caught:
        memory.purge("greedy")
    assert type(caught.value).__name__ == "MemoryError"
    assert memory.recall_texts("") == []


def _digits(texts: Sequence[str]) -> Any:
    """A vector that tells the length of its text."""
    return np.array([[len(text), 0.5, 0.25] for text in texts], dtype=np.float32)


def test_vectors_come_from_the_run(isolated: Isolated) -> None:
    memory = isolated("Embedding", _digits)
    assert memory.wants_embedder
    assert memory.recall_texts("four") == ["[[4.0, 0.5, 0.25]]", "3"]
    assert memory.recall_texts("x" * 1_000_000) == ["[[1000000.0, 0.5, 0.25]]", "3"]


def test_vectors_can_be_asked_for_by_several_threads(isolated: Isolated) -> None:
    assert isolated("Embedding", _digits).release("x") == 12


def test_an_embedder_takes_lists(isolated: Isolated) -> None:
    with pytest.raises(AdapterFault, match="takes a list of texts"):
        isolated("Embedding", _digits).purge("x")


def test_an_embedder_that_fails_fails_the_call_alone(isolated: Isolated) -> None:
    def picky(texts: Sequence[str]) -> Any:
        if "bad" in texts:
            raise ValueError("no vector for this")
        return _digits(texts)

    memory = isolated("Embedding", picky)
    with pytest.raises(AdapterFault, match="no vector for this"):
        memory.recall_texts("bad")
    assert memory.recall_texts("good")[0] == "[[4.0, 0.5, 0.25]]"


def test_an_interrupt_passes_and_leaves_no_worker(isolated: Isolated) -> None:
    def interrupted(texts: Sequence[str]) -> Any:
        if "now" in texts:
            raise KeyboardInterrupt
        return _digits(texts)

    memory = isolated("Embedding", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.recall_texts("now")
    with pytest.raises(AdapterFault, match="has ended"):
        memory.recall_texts("later")


def test_snapshots_are_kept_there_and_dropped_when_nobody_has_them(isolated: Isolated) -> None:
    memory = isolated("Keeping")
    memory.inscribe("first")
    state = memory.snapshot()
    memory.inscribe("second")
    later = memory.snapshot()
    memory.restore(state)
    assert memory.recall_texts("") == ["first"]
    memory.restore(later)
    assert memory.recall_texts("") == ["first", "second"]
    del later
    kept = memory.snapshot()
    assert memory.release("") == 2
    with pytest.raises(AdapterFault):
        memory.purge("exit")
    memory.reset()
    with pytest.raises(AdapterFault, match="that held this snapshot"):
        memory.restore(kept)


def test_an_assistant_can_be_isolated(isolated: Isolated) -> None:
    sessions = [Session("s1", "2026-01-01T00:00:00+00:00", [Message("user", "I met Maya."), Message("assistant", "!")])]
    assistant = isolated("Companion", kinds=(adapters.MANDATORY, adapters.ASSISTANT))
    assert assistant.ingest(sessions) is None
    assert assistant.ask("Whom?") == "I met Maya."
    with pytest.raises(NotImplementedError):
        assistant.forget("Maya")


def test_a_child_of_the_run_gets_a_worker_of_its_own(isolated: Isolated) -> None:
    memory = isolated("Plain")
    memory.inscribe("of the parent")
    child = os.fork()
    if child == 0:
        memory.reset()
        os._exit(len(memory.recall_texts("")))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert memory.recall_texts("") == ["of the parent"]


def test_a_worker_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(SYSTEMS.replace("import numpy as np", "np = None"), encoding="utf-8")
    bare = [sys.executable, "-I", "-S"]
    memory = WorkerMemory("bare:Plain", bare, None, Limits(), (adapters.MANDATORY,), {})
    memory.reset()
    assert memory.inscribe("x") == 1
    memory.close()


def test_a_class_that_cannot_be_made_says_why() -> None:
    with pytest.raises(UserError, match=r"adapter 'systems:Unmakeable' cannot be made: OSError: no disk at all"):
        select("systems:Unmakeable", isolation=Isolation(True))
    with pytest.raises(UserError, match="Did you mean 'Plain'"):
        select("systems:Plan", isolation=Isolation(True))


def test_an_interpreter_that_is_none_says_so() -> None:
    with pytest.raises(UserError, match="cannot start /nowhere/python: No such file"):
        WorkerMemory("systems:Plain", ["/nowhere/python"], None, Limits(), (adapters.MANDATORY,), {})


def test_who_is_told_the_case_cannot_be_isolated() -> None:
    with pytest.raises(UserError, match="told the case"):
        select("systems:Told", isolation=Isolation(True))


def test_a_control_stays_in_this_process() -> None:
    assert type(select("oracle", isolation=Isolation(True))) is adapters.find("oracle")


def test_warnings_of_ours_reach_the_user(isolated: Isolated) -> None:
    with pytest.warns(RuntimeWarning, match="the store cannot be closed: ValueError: stuck") as seen:
        isolated("Warning")
    assert len(seen) == 1


@pytest.mark.parametrize(("system", "wants"), [("Plain", False), ("Embedding", True)])
def test_whether_an_embedder_is_wanted_is_asked_where_it_runs(system: str, wants: bool) -> None:
    assert wants_embedder(f"systems:{system}", Isolation(True)) is wants


@pytest.mark.parametrize("name", ["reference", "lethe"])
def test_isolated_or_not_the_transcripts_are_the_same(name: str) -> None:
    embed = embedding.load("minilm-int8")
    cases = generate(10)
    embed(list(dict.fromkeys(text for case in cases for text in forgeteval.texts(case))))
    lines = []
    for isolate in (False, True):
        memory = select(name, embed, Isolation(isolate))
        lines.append([_timeless(forgeteval.replay(case, memory)) for case in cases])
        if hasattr(memory, "close"):
            memory.close()
    assert len(lines[0]) == 50
    assert lines[0] == lines[1]


def _timeless(transcript: dict[str, Any]) -> str:
    operations = [{**operation, "seconds": 0} for operation in transcript["operations"]]
    return json.dumps({**transcript, "operations": operations, "seconds": {}})


def _open_files() -> int:
    return len(os.listdir("/dev/fd"))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
