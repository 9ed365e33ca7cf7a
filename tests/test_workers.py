"""Several processes at one run: the transcripts of one, whatever the system does and however the run ends."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.rows import GeneratedCase
from forget_eval import bench, embedding, forgeteval
from forget_eval.data import Dataset, open_dataset
from forget_eval.isolation.selection import Isolation
from forget_eval.membehave import bench as membehave
from forget_eval.membehave.systems import Settings
from forget_eval.parallel import crew
from forget_eval.parallel.seats import CaseSeat
from forget_eval.parallel.stage import stage
from forget_eval.report import groups, tables
from forget_eval.runner import Options
from forget_eval.scores import score
from forget_eval.transcripts import Writer
from tests.transcript_lines import lines

Built = tuple[Path, dict[str, Any]]
N = 50
ODD = 23
"""The number of the one case at which some systems do their worst."""


@pytest.fixture(autouse=True)
def systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("FORGET_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FORGET_EVAL_ENVS", str(tmp_path / "envs"))
    monkeypatch.setenv("OTHERS", str(tmp_path / "others"))


@pytest.fixture
def cases(forgeteval_built: Built) -> Dataset:
    return open_dataset(str(forgeteval_built[0]), "forgeteval", "en")


@pytest.fixture
def at(cases: Dataset, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of the one case."""
    found = list(cases.cases())
    query = found[ODD].mutations[0][1]
    assert [case.id for case in found if any(query in mutation for mutation in case.mutations)] == [found[ODD].id]
    monkeypatch.setenv("AT", query)
    return found[ODD].id


@pytest.fixture
def items(membehave_built: Built) -> Dataset:
    return open_dataset(str(membehave_built[0]), "membehave", "default")


def played(cases: Dataset, system: str, folder: Path, workers: int, embed: Any = None) -> list[Any]:
    bench.run_adapter(cases, f"parallel_systems:{system}", folder, embed, workers=workers)
    return lines(folder)


def command(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    call = [sys.executable, "-m", "forget_eval", *map(str, arguments)]
    return subprocess.Popen(call, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(cases: Dataset, system: str, *more: object) -> tuple[object, ...]:
    named = ("--adapter", f"parallel_systems:{system}", "--out", "run")
    return ("run", "forgeteval", "--data", cases.source, "--config", "en", *named, *more)


def model(texts: Sequence[str]) -> Any:
    """A vector a text, from its hash. Notes who asks."""
    CALLS.extend((os.getpid(), text) for text in texts)
    seeds = [int.from_bytes(sha256(text.encode()).digest()[:4], "big") for text in texts]
    return np.stack([np.random.default_rng(seed).normal(size=8) for seed in seeds])


CALLS: list[tuple[int, str]] = []


# The same transcripts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["keep-all", "parallel_systems:Store"])
def test_three_processes_write_what_one_writes(cases: Dataset, tmp_path: Path, system: str) -> None:
    for workers in (1, 3):
        assert bench.run_adapter(cases, system, tmp_path / str(workers), None, workers=workers) == N
    found = lines(tmp_path / "3")
    assert found == lines(tmp_path / "1")
    assert [json.loads(line)["id"] for line in found] == [case.id for case in cases.cases()]


def test_manifests_differ_by_how_many_there_were_alone(cases: Dataset, tmp_path: Path) -> None:
    manifests = []
    for workers in (1, 2):
        played(cases, "Store", tmp_path / str(workers), workers)
        manifests.append(json.loads((tmp_path / str(workers) / "manifest.json").read_text()))
    for manifest in manifests:
        del manifest["run"], manifest["started"]
    assert [manifest.pop("played") for manifest in manifests] == [
        {"engine": "local", "workers": 1},
        {"engine": "local", "workers": 2},
    ]
    assert manifests[0] == manifests[1]


def test_the_page_says_whose_calls_were_timed_beside_others(cases: Dataset, tmp_path: Path) -> None:
    for name, workers in (("one", 1), ("two", 2)):
        played(cases, "Store", tmp_path / name, workers)
        score(tmp_path / name)
    (alone,), (both,) = groups.load([tmp_path / "one"]), groups.load([tmp_path / "one", tmp_path / "two"])
    assert "workers" not in tables.latency(alone).columns
    assert tables.latency(both).columns[:2] == ("system", "workers")
    assert [row[1].text for row in tables.latency(both).rows] == ["1", "2"]


def test_vectors_are_made_once_by_the_run_itself_and_are_those_of_one_process(cases: Dataset, tmp_path: Path) -> None:
    embed = embedding.load(model, cache=False)
    one = played(cases, "Embedding", tmp_path / "1", 1, embed)
    CALLS.clear()
    embed = embedding.load(model, cache=False)
    assert played(cases, "Embedding", tmp_path / "3", 3, embed) == one
    assert {process for process, _ in CALLS} == {os.getpid()}
    texts = [text for _, text in CALLS]
    assert len(texts) == len(set(texts))
    assert sum(text.startswith("unforeseen") for text in texts) == len(
        {mutation[1] for case in cases.cases() for mutation in case.mutations}
    )


def test_a_model_that_fails_on_what_nobody_foresaw_breaks_those_cases_alone(cases: Dataset, tmp_path: Path) -> None:
    def picky(texts: list[str]) -> Any:
        if any(text.startswith("unforeseen") for text in texts):
            raise ValueError("too odd")
        return model(texts)

    played(cases, "Embedding", tmp_path / "2", 2, embedding.load(picky, cache=False))
    found = [json.loads(line) for line in (tmp_path / "2" / "transcripts.jsonl").read_text().splitlines()]
    assert [t["status"] for t in found] == ["error"] * N
    assert {t["error"]["kind"] for t in found} == {"UserError"}
    assert all("failed on 1 texts: ValueError: too odd" in t["error"]["message"] for t in found)


def test_triplets_stay_together_even_if_a_run_begins_within_one(items: Dataset, tmp_path: Path) -> None:
    def go(folder: Path, workers: int) -> list[Any]:
        membehave.run_system(items, "parallel_systems:Store", folder, None, Settings(), workers=workers)
        return lines(folder)

    one = go(tmp_path / "1", 1)
    assert go(tmp_path / "2", 2) == one
    path = tmp_path / "2" / "transcripts.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:1]))
    assert go(tmp_path / "2", 2) == one
    steps = [json.loads(line)["seconds"] for line in path.read_text().splitlines()]
    assert ["restore" in seconds for seconds in steps] == [False, False, True, False, True, True, False, True, True]


def test_a_slow_case_holds_up_no_other_and_is_written_in_its_place(
    cases: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AT", next(cases.cases()).mutations[0][1])
    assert played(cases, "WaitsForTheOthers", tmp_path / "2", 2) == played(cases, "Store", tmp_path / "1", 1)


def test_isolated_systems_and_repeats(cases: Dataset, tmp_path: Path, at: str) -> None:
    done = command(tmp_path, *run(cases, "Leaves", "--isolate", "--workers", 2, "--repeats", 2))
    _, err = done.communicate()
    assert done.returncode == 0, err
    one = played(cases, "Store", tmp_path / "one", 1)
    for repeat in ("repeat-1", "repeat-2"):
        found = lines(tmp_path / "run" / repeat)
        odd = json.loads(found[ODD])
        assert (odd["id"], odd["status"], odd["error"]["kind"]) == (at, "error", "WorkerDied")
        assert found[:ODD] + found[ODD + 1 :] == one[:ODD] + one[ODD + 1 :]


# Who may --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["Silent", "SaysNo"])
def test_a_class_that_does_not_say_that_it_may_runs_in_one_process(
    cases: Dataset, tmp_path: Path, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "Player", None)
    with pytest.warns(RuntimeWarning, match=rf"'parallel_systems:{system}' runs in one process: .* parallel = True"):
        found = played(cases, system, tmp_path / "run", 4)
    assert len(found) == N


def test_a_class_that_says_it_with_no_bool_is_told_so(cases: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="its attribute 'parallel' is of type str; it must be True or False"):
        played(cases, "SaysNonsense", tmp_path / "run", 2)


def test_an_isolated_class_is_asked_where_it_is(cases: Dataset, tmp_path: Path) -> None:
    from forget_eval.isolation.selection import may_be_several

    assert may_be_several("parallel_systems:Store", Isolation(isolate=True))
    with pytest.warns(RuntimeWarning, match="runs in one process"):
        assert not may_be_several("parallel_systems:Silent", Isolation(isolate=True))


# Systems that misbehave -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "ending"),
    [
        ("Leaves", "exited with status 3"),
        ("IsKilled", r"was killed by SIGKILL \(is memory short\?\)"),
        ("LeavesADaemonBehind", "exited with status 3"),
        ("ClosesItsFiles", "closed its connection to the run, and was ended"),
    ],
)
def test_a_system_that_ends_its_process_ends_the_run_at_that_case(
    cases: Dataset, tmp_path: Path, at: str, system: str, ending: str
) -> None:
    for _ in range(2):  # the second time it goes on at that case
        with pytest.raises(UserError, match=rf"its process {ending} at {at}\. .*--isolate"):
            played(cases, system, tmp_path / "run", 2)
        assert lines(tmp_path / "run") == played(cases, "Store", tmp_path / "one", 1)[:ODD]


def test_an_interrupt_that_a_system_raises_ends_the_run_at_that_case(cases: Dataset, tmp_path: Path, at: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        played(cases, "Interrupts", tmp_path / "run", 2)
    assert lines(tmp_path / "run") == played(cases, "Store", tmp_path / "one", 1)[:ODD]


def test_a_child_that_comes_back_plays_nothing(cases: Dataset, tmp_path: Path, at: str) -> None:
    assert played(cases, "ForksAndComesBack", tmp_path / "run", 2) == played(cases, "Store", tmp_path / "one", 1)


def test_a_model_that_is_down_ends_the_run_at_that_item(
    items: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AT", list(membehave.items(items))[4].forget_request)
    with pytest.raises(EnvironmentFault, match="the model is down"):
        membehave.run_system(items, "parallel_systems:LosesItsModel", tmp_path / "run", None, Settings(), workers=3)
    assert len(lines(tmp_path / "run")) == 4


@pytest.mark.parametrize("isolation", [None, Isolation(isolate=True)])
def test_a_vector_that_comes_late_is_no_answer_to_another_question(
    cases: Dataset, tmp_path: Path, at: str, isolation: Isolation | None
) -> None:
    def slow(texts: list[str]) -> Any:
        while "late" in texts and not Path(os.environ["OTHERS"]).exists():
            time.sleep(0.001)
        return model(texts)

    embed = embedding.load(slow, cache=False)
    system, run = "parallel_systems:Impatient", tmp_path / "run"
    bench.run_adapter(cases, system, run, embed, isolation=isolation, workers=2)
    odd = json.loads((run / "transcripts.jsonl").read_text().splitlines()[ODD])
    assert (odd["id"], odd["status"]) == (at, "ok")
    assert [each["returned"] for each in odd["operations"]] == [int(1_000_000 * float(embed(["the other"])[0, 0]))]


def test_an_embedder_that_fails_leaves_what_was_before_it(cases: Dataset, tmp_path: Path, at: str) -> None:
    def picky(texts: list[str]) -> Any:
        if os.environ["AT"] in texts:
            raise ValueError("not this one")
        return model(texts)

    embed = embedding.load(picky, cache=False)
    how = Options[GeneratedCase](forgeteval.texts, embed, chunk=10)
    with (
        stage(CaseSeat("parallel_systems:Embedding", 10), embed, 2) as players,
        Writer(tmp_path / "transcripts.jsonl") as writer,
        pytest.raises(UserError, match=r"failed on .* texts: ValueError: not this one"),
    ):
        players.run(cases.cases(), writer, how)
    assert len(lines(tmp_path)) == 20


def test_a_system_that_cannot_be_made_is_told_as_ever(cases: Dataset, tmp_path: Path) -> None:
    said = []
    for workers in (1, 2):
        with pytest.raises(UserError) as failure:
            played(cases, "CannotBeMade", tmp_path / "run", workers)
        said.append(str(failure.value))
    assert said[0] == said[1]
    assert "cannot be made: LookupError: no such store (parallel_systems.py, line " in said[0]
    assert not (tmp_path / "run").exists()


def test_what_one_cannot_close_is_warned_of_and_counts(cases: Dataset, tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match=r"cannot be closed: OSError: stuck"):
        assert len(played(cases, "CannotBeClosed", tmp_path / "run", 2)) == N


def test_warnings_are_passed_on_but_for_those_of_programmers(cases: Dataset, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        played(cases, "Warns", tmp_path / "run", 2)
    assert [str(each.message) for each in said if "old store" in str(each.message)] == ["an old store"] * 2


def test_a_child_of_the_system_inherits_nothing_of_the_run(cases: Dataset, tmp_path: Path) -> None:
    played(cases, "CountsWhatAChildWouldInherit", tmp_path / "run", 2)
    found = [json.loads(line) for line in (tmp_path / "run" / "transcripts.jsonl").read_text().splitlines()]
    assert {each["returned"] for transcript in found for each in transcript["operations"]} == {0, None}


@pytest.mark.parametrize("system", ["LeavesAThread", "Prints"])
def test_a_command_ends_well_whatever_its_systems_leave_or_print(cases: Dataset, tmp_path: Path, system: str) -> None:
    done = command(tmp_path, *run(cases, system, "--workers", 2))
    out, err = done.communicate()
    assert (done.returncode, out) == (0, ""), err
    assert "50 cases run, 50 in run" in err
    operations = sum(len(case.mutations) for case in cases.cases())
    assert err.count("printed by the system") == (operations if system == "Prints" else 0)
    assert lines(tmp_path / "run") == played(cases, "Store", tmp_path / "one", 1)


# Ended from outside ---------------------------------------------------------------------------------------------------


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Hears what `Told` has to say."""
    with socket.socket(socket.AF_UNIX) as found:
        found.settimeout(120)
        found.bind(str(tmp_path / "told"))
        found.listen()
        monkeypatch.setenv("TOLD", str(tmp_path / "told"))
        yield found


def heard(connections: Sequence[socket.socket]) -> list[str]:
    """All that was said until the process at the other end had ended, by each."""
    said = []
    for connection in connections:
        connection.settimeout(120)
        with connection, connection.makefile() as file:
            said.append(file.read())
    return sorted(said)


@pytest.mark.parametrize(
    ("sign", "system"), [(signal.SIGINT, "Told"), (signal.SIGKILL, "Told"), (signal.SIGKILL, "HasAChild")]
)
def test_all_end_with_the_run_and_what_is_written_is_whole(
    cases: Dataset, tmp_path: Path, at: str, listener: socket.socket, sign: signal.Signals, system: str
) -> None:
    process = command(tmp_path, *run(cases, system, "--workers", 2))
    connections = [listener.accept()[0] for _ in range(2)]
    ready, _, _ = select.select(connections, [], [], 120)
    assert len(ready) == 1
    process.send_signal(sign)
    _, err = process.communicate(timeout=120)
    assert process.returncode == (130 if sign == signal.SIGINT else -signal.SIGKILL)
    assert heard(connections) == ["at\nclosed\n", "closed\n"]
    found = lines(tmp_path / "run")
    assert found == played(cases, "Store", tmp_path / "one", 1)[: min(ODD, len(found))]
    if sign == signal.SIGINT:
        assert err.endswith("interrupted. The same command goes on from there.\n")


def test_what_a_system_has_started_ends_though_the_system_has_ended_its_process(
    cases: Dataset, tmp_path: Path, at: str, listener: socket.socket
) -> None:
    with pytest.raises(UserError, match=f"its process exited with status 3 at {at}"):
        played(cases, "LeavesItsChild", tmp_path / "run", 2)
    assert heard([listener.accept()[0] for _ in range(2)]) == ["", "closed\n"]


def test_a_run_goes_on_with_another_number_of_processes(cases: Dataset, tmp_path: Path) -> None:
    whole = played(cases, "Store", tmp_path / "run", 2)
    path = tmp_path / "run" / "transcripts.jsonl"
    content = path.read_bytes()
    for cut, workers in ((len(content) // 3, 3), (len(content) // 2, 1), (len(content) - 1, 2)):
        path.write_bytes(content[:cut])
        assert played(cases, "Store", tmp_path / "run", workers) == whole
