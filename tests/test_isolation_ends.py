"""Workers that die, hang, fork or take too much: what that costs a run, and what is left of them."""

import os
import select as os_select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.forgeteval import generate
from forget_eval import forgeteval
from forget_eval.isolation import process
from forget_eval.isolation.messages import AdapterFault
from tests.isolated_systems import Isolated, digits

pytest_plugins = ("tests.isolated_systems",)
pytestmark = pytest.mark.usefixtures("apart")

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a kernel that hands orphans over")


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


def test_a_worker_that_closes_all_and_lives_on_was_not_killed_by_the_kernel(
    isolated: Isolated, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = isolated("Plain")
    monkeypatch.setattr(process, "_TO_END", 0.5)
    with pytest.raises(AdapterFault) as caught:
        memory.purge("deaf")
    assert str(caught.value) == "its worker closed its connection, and was ended"
    assert type(caught.value).__name__ == "WorkerDied"
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
    for ended in watched:
        assert os_select.select([ended], [], [], 60)[0], "still running"
        os.close(ended)


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


def test_an_interrupt_passes_and_leaves_no_worker(isolated: Isolated) -> None:
    def interrupted(texts: Sequence[str]) -> Any:
        if "now" in texts:
            raise KeyboardInterrupt
        return digits(texts)

    memory = isolated("Embedding", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.recall_texts("now")
    with pytest.raises(AdapterFault, match="has ended"):
        memory.recall_texts("later")


def _open_files() -> int:
    return len(os.listdir("/dev/fd"))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
