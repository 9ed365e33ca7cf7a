"""Systems that misbehave, run by the real command: each gets the outcome that it must get, and nothing else breaks."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from forget_datasets.forgeteval import generate
from forget_eval import scores

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork, and orphans handed over")

N = 20
SHAPE = ("--scale", "4", "--distractors", "3", "--seed", "7")
PURGES = {f"purge__{template}__001" for template in ("api_key", "phi", "gdpr", "many_similar")}
ODD = {"purge__api_key__001"}

Verdicts = dict[str, tuple[str, tuple[str, ...]]]


@dataclass(frozen=True)
class Outcome:
    """What a system must get: the cases that break, and for those that fail the reasons, of the strict rate.

    `cases` None stands for all; of `reasons` the first set must be there, and none may be that is not in the second.
    """

    status: str = "pass"
    cases: set[str] | None = field(default_factory=set)
    must: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    error: str = ""


def fails(must: str, may: str = "", cases: set[str] | None = None) -> Outcome:
    return Outcome("fail", cases, frozenset(must.split()), frozenset((*must.split(), *may.split())))


def breaks(error: str, cases: set[str] | None = None) -> Outcome:
    return Outcome("error", cases, error=error)


THIRDS = {
    *("supersession__diet__001", "decay__verification_code__001", "amnesia__person__001"),
    *("amnesia__many_facts__001", "purge__gdpr__001", "drift__address__001"),
}
ANYWHERE = {
    "Clean": Outcome(),
    "PurgesNothing": fails("leak", "stale", PURGES),
    "WipesAll": fails("collateral", "lost"),
    "ForgetsForTheFinalQuery": fails("leak"),
    "HidesUntilAskedTwice": fails("leak"),
    "Echoes": fails("leak", "stale lost collateral"),
    "ReturnsTooMany": breaks("more than k = 10"),
    "Generates": breaks("not a list of texts"),
    "RaisesOnEveryThird": breaks("LookupError", THIRDS),
    "RaisesTheUnspeakable": breaks("_Unspeakable", ODD),
    "LeavesPolitely": breaks("SystemExit", ODD),
    "Recurses": breaks("RecursionError", ODD),
    "Prints": Outcome(),
    "ChangesTheListItWasGiven": Outcome(),
    "Forks": Outcome(),
    "ForksAndComesBack": Outcome(),
    "ReturnsTextsOfItsOwn": Outcome(),
    "ChangesItsDeclarations": Outcome(),
}
"""In the command's own process and, of which `BOTH` are tried, in a worker alike."""
HERE = {"LiesAboutItsLength": breaks("more than k = 10")}
ISOLATED = {
    "Leaves": breaks("WorkerDied", ODD),
    "ClosesAllFiles": breaks("WorkerDied", ODD),
    "RecursesUntilMemoryIsShort": breaks("", ODD),
    "AllocatesWithoutEnd": breaks("MemoryError", ODD),
    "PatchesTheStandardLibrary": Outcome(),
    "LeavesAThread": Outcome(),
}
BOTH = ("HidesUntilAskedTwice", "RaisesTheUnspeakable", "ForksAndComesBack")


class Place:
    """A folder with a crib for `hostile_systems.Clean`, in which the command is run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        crib = []
        for case in generate(4, seed=7, distractors=3):
            asked = {case.final_query: case.must_contain + case.must_not_contain}
            asked |= {probe.query: probe.must_contain + probe.must_not_contain for probe in case.probes}
            crib.append({"facts": case.setup_facts, "forbidden": case.must_not_contain, "asked": asked})
        (folder / "crib.json").write_text(json.dumps(crib))

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        own = {
            "CRIB": str(self.folder / "crib.json"),
            "PYTHONPATH": str(Path(__file__).parent),
            "FORGET_EVAL_ENVS": str(self.folder / "envs"),
        }
        call = [sys.executable, "-m", "forget_eval", *arguments]
        return subprocess.run(
            call, cwd=self.folder, env=os.environ | own, capture_output=True, text=True, check=False, timeout=500
        )

    def bench(self, systems: Sequence[str], out: str, *more: str) -> subprocess.CompletedProcess[str]:
        named = [word for system in systems for word in ("--adapter", f"hostile_systems:{system}")]
        return self.command("bench", "forgeteval", *SHAPE, *named, "--out", out, *more)

    def run(self, system: str, *more: str) -> subprocess.CompletedProcess[str]:
        named = ("--adapter", f"hostile_systems:{system}", "--out", "run")
        return self.command("run", "forgeteval", "--data", "data", "--config", "en", *named, *more)

    def scored(self, out: str) -> Verdicts:
        scores.score(self.folder / out)
        return self.verdicts(out)

    def verdicts(self, out: str, system: str = "") -> Verdicts:
        """Case to status and reasons, of the strict rate; the denominator is looked at on the way."""
        run = self.folder / out / (f"hostile_systems.{system}" if system else "")
        summary = json.loads((run / "summary.json").read_text())
        assert summary["n"] == N
        assert [sum(counts.values()) for counts in summary["statuses"].values()] == [N, N]
        assert {rates["overall"]["n"] for rates in summary["rates"].values()} == {N}
        rows = pq.read_table(run / "scores.parquet").to_pylist()
        return {r["case"]: (r["status"], tuple(r["reasons"])) for r in rows if r["metric"] == "strict"}

    def transcripts(self, out: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / out / "transcripts.jsonl").read_text().splitlines()]

    def require(self, out: str, system: str, wanted: Outcome) -> None:
        """Each case has ended as it must."""
        found = self.verdicts(out, system)
        chosen = set(found) if wanted.cases is None else wanted.cases
        assert {case for case, (status, _) in found.items() if status != "pass"} == chosen
        for case in chosen:
            status, reasons = found[case]
            assert status == wanted.status
            if wanted.may:
                assert wanted.must <= set(reasons) <= wanted.may
        broken = {t["id"]: t["error"] for t in self.transcripts(f"{out}/hostile_systems.{system}") if t["error"]}
        assert set(broken) == (chosen if wanted.status == "error" else set())
        for error in broken.values():
            assert wanted.error in f"{error['kind']}: {error['message']}"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, subprocess.CompletedProcess[str]]:
    """All that can be run in the command's own process, by one command."""
    place = Place(tmp_path_factory.mktemp("here"))
    return place, place.bench([*ANYWHERE, *HERE], "runs")


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, subprocess.CompletedProcess[str]]:
    """Those that can only be run in a worker, and some of the others, by one command."""
    place = Place(tmp_path_factory.mktemp("isolated"))
    return place, place.bench(["Clean", *ISOLATED, *BOTH], "runs", "--isolate", "--memory-limit", "300")


Ran = tuple[Place, subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("system", [*ANYWHERE, *HERE])
def test_in_its_own_process_a_system_gets_what_it_must(here: Ran, system: str) -> None:
    here[0].require("runs", system, {**ANYWHERE, **HERE}[system])


@pytest.mark.parametrize("system", ["Clean", *ISOLATED, *BOTH])
def test_in_a_worker_a_system_gets_what_it_must(isolated: Ran, system: str) -> None:
    isolated[0].require("runs", system, {**ANYWHERE, **ISOLATED}[system])


def test_every_run_ends_with_a_report(here: Ran, isolated: Ran) -> None:
    for place, done in (here, isolated):
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        systems = [path.parent.name for path in (place.folder / "runs").glob("*/summary.json")]
        assert len(systems) == len([*ANYWHERE, *HERE]) if done is here[1] else len(["Clean", *ISOLATED, *BOTH])
        assert "printed" not in done.stdout
        assert "clean" in done.stdout


def test_no_case_is_played_twice_by_a_child_that_came_back(here: Ran) -> None:
    ids = [t["id"] for t in here[0].transcripts("runs/hostile_systems.ForksAndComesBack")]
    assert len(ids) == len(set(ids)) == N


@pytest.fixture
def place(here: Ran, tmp_path: Path) -> Place:
    """A folder of the test's own, with the dataset that the others are run on."""
    shutil.copytree(here[0].folder / "runs" / "data", tmp_path / "data")
    return Place(tmp_path)


def test_a_system_that_sleeps_past_the_timeout_breaks_its_case_alone(place: Place) -> None:
    done = place.run("Sleeps", "--isolate", "--timeout", "8")
    assert done.returncode == 0, done.stderr
    errors = {t["id"]: t["error"] for t in place.transcripts("run") if t["status"] != "ok"}
    assert set(errors) == ODD
    assert errors.popitem()[1]["kind"] == "WorkerTimeout"
    assert Counter(status for status, _ in place.scored("run").values()) == {"pass": N - 1, "error": 1}


def test_a_system_that_ends_the_process_ends_the_run_which_goes_on_and_says_so(place: Place) -> None:
    killed = place.run("Leaves")
    assert (killed.returncode, killed.stderr) == (0, "")
    before = place.transcripts("run")
    assert len(before) == 12
    again = place.run("Leaves")
    assert "20 in run" not in again.stderr
    assert "going on after 12, with purge__api_key__001." in again.stderr
    assert "--isolate makes that an error of the one" in again.stderr
    assert place.transcripts("run") == before
    confined = place.run("Leaves", "--isolate")
    assert "8 cases run, 20 in run" in confined.stderr
    assert place.transcripts("run")[:12] == before
    assert {case for case, (status, _) in place.scored("run").items() if status != "pass"} == ODD


def test_a_system_that_patches_the_standard_library_patches_no_record(place: Place, here: Ran) -> None:
    done = place.run("PatchesTheStandardLibrary")
    assert done.returncode == 0, done.stderr
    assert place.scored("run") == here[0].verdicts("runs", "Clean")
    assert all(isinstance(t["seconds"]["final"], float) for t in place.transcripts("run"))


def test_a_system_that_closes_all_files_of_the_process_loses_no_transcript(place: Place) -> None:
    place.run("ClosesAllFiles")  # its streams are gone for good: what the command says, nobody hears
    assert "finished before, nothing to do" in place.run("ClosesAllFiles").stderr
    assert {status for status, _ in place.scored("run").values()} == {"pass"}


def test_a_command_ends_whatever_threads_a_system_leaves(place: Place) -> None:
    done = place.run("LeavesAThread")
    assert done.returncode == 0, done.stderr
    assert "20 cases run" in done.stderr
    assert {status for status, _ in place.scored("run").values()} == {"pass"}


def test_a_command_that_fails_ends_with_its_code_whatever_threads_a_system_leaves(place: Place) -> None:
    assert place.run("LeavesAThread").returncode == 0
    (place.folder / "run" / "manifest.json").write_text("{}")
    done = place.run("LeavesAThread")
    assert done.returncode == 2
    assert "not the manifest of a run" in done.stderr


def test_systems_that_close_the_standard_files_and_want_the_last_word_spoil_no_answer(place: Place) -> None:
    done = place.bench(["ClosesStandardFiles", "WantsTheLastWord", "Clean"], "runs", "--json")
    assert done.returncode == 0, done.stderr
    assert [summary["statuses"]["strict"]["pass"] for summary in json.loads(done.stdout)] == [N] * 3
    assert "Clean: 20 cases run" in done.stderr
    assert "and the one before\n" in done.stderr
    assert "the last word\n" in done.stderr


STORE = '''
import os


class Store:
    """Recalls what shares a word with the query; a purge deletes the very text."""

    name = "store"

    def reset(self): self.facts = []

    def inscribe(self, text):
        self.facts.append(text)
        return len(self.facts)

    def recall_texts(self, query, k=5):
        words = set(query.lower().split())
        return [fact for fact in self.facts if words & set(fact.lower().split())][:k]

    def purge(self, query):
        before = len(self.facts)
        self.facts = [fact for fact in self.facts if fact != query]
        return before - len(self.facts)


class Leaves(Store):
    def purge(self, query): os._exit(0)


class TooMany(Store):
    def recall_texts(self, query, k=5): return ["filler"] * (k + 1)


class Third(Store):
    asked = 0

    def reset(self):
        Third.asked += 1
        super().reset()

    def purge(self, query):
        if Third.asked == 3:
            raise LookupError("out of order")
        return super().purge(query)


class Prints(Store):
    def recall_texts(self, query, k=5):
        print("printed by the system")
        return super().recall_texts(query, k)

'''


def test_an_assistant_made_of_a_memory_that_misbehaves_gets_what_it_must(place: Place) -> None:
    (place.folder / "stores.py").write_text(STORE)
    systems = ("Store", "Leaves", "TooMany", "Third", "Prints")
    named = [word for system in systems for word in ("--adapter", f"stores:{system}")]
    done = place.command("bench", "membehave", "--triplets", "1", *named, "--out", "m", "--isolate")
    assert done.returncode == 0, done.stderr
    assert "printed" not in done.stdout
    found = {s: json.loads((place.folder / "m" / f"stores.{s}" / "summary.json").read_text()) for s in systems}
    assert {summary["n"] for summary in found.values()} == {3}
    assert {sum(summary["statuses"].values()) for summary in found.values()} == {3}
    errors = {system: summary["statuses"]["error"] for system, summary in found.items()}
    assert errors == {"Store": 0, "Leaves": 3, "TooMany": 3, "Third": 1, "Prints": 0}
    assert found["Prints"]["metrics"] == found["Store"]["metrics"]
    for system in ("Leaves", "TooMany"):
        selective = found[system]["metrics"]["selective_forgetting"]["all"]
        assert (selective["value"], selective["n"]) == (0.0, 3)
