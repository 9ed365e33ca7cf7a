"""Replays a ForgetEval case against a memory: the facts go in, the mutations are asked for, the questions are put.

What comes out is a transcript. Nothing here judges it.
"""

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from forget_datasets.forgeteval import TOP_K
from forget_datasets.rows import GeneratedCase
from forget_eval.adapters import is_told
from forget_eval.protocols import Memory
from forget_eval.recording import Steps, described, plain, recalled, since
from forget_eval.transcripts import Transcript


class _LackingError(Exception):
    """The memory does not have an operation."""


def texts(case: GeneratedCase) -> Iterator[str]:
    """All texts of a case that a memory may want to embed: facts, new texts and queries."""
    yield from case.setup_facts
    for mutation in case.mutations:
        yield from mutation[1:]
    yield case.final_query
    for probe in case.probes:
        yield probe.query


def replay(
    case: GeneratedCase,
    memory: Memory,
    k: int = TOP_K,
    told: bool | None = None,
    languages: Sequence[str] | None = None,
) -> Transcript:
    """Plays a case from reset to the last probe and records what the memory answered.

    A control is told the case between reset and the first fact. Whether a memory is one (`told`) follows from its class
    (`adapters.is_told`), and a run decides it before it begins.

    A case in none of the `languages` of the system, if it names any, ends as "n/a" before anything is asked. So does
    one with an operation that is missing or raises NotImplementedError; whatever else is raised, and an answer that is
    not a list of at most `k` strings, ends it as "error". What was answered before then is kept: a `final` that is
    there was given by a memory that had not failed yet.

    Returns:
        id; status "ok", "n/a" or "error"; `operations`, one {op, status, returned, seconds} a mutation; `final`,
        `probes` and `again`, the recalled texts (`again`: leak probes asked once more after all probes); `store`, the
        number of texts inscribed; `error`, {kind, message, during, traceback} or None; `seconds` of the other steps.
    """
    play = _Replay(case, memory, k, is_told(memory) if told is None else told)
    return play.play() if languages is None or case.lang in languages else play.passed_over()


class _Replay:
    def __init__(self, case: GeneratedCase, memory: Memory, k: int, told: bool) -> None:
        self._case, self._memory, self._k, self._told = case, memory, k, told
        self._steps = Steps()
        self._record: Transcript = {
            "id": case.id,
            "status": "ok",
            "operations": [],
            "final": None,
            "probes": [],
            "again": [],
            "store": 0,
            "error": None,
            "seconds": self._steps.seconds,
        }

    def passed_over(self) -> Transcript:
        return {**self._record, "status": "n/a"}

    def play(self) -> Transcript:
        try:
            self._inscribe()
            for mutation in self._case.mutations:
                self._mutate(*mutation)
            self._ask()
        except KeyboardInterrupt:
            raise
        except _LackingError:
            self._record["status"] = "n/a"
        except BaseException as error:  # a system may even exit the interpreter; the run goes on
            self._record["status"] = "error"
            self._record["error"] = described(error, self._steps.now)
        return self._record

    def _inscribe(self) -> None:
        self._steps.timed("reset", self._memory.reset)
        if self._told:
            self._memory._tell(self._case)  # type: ignore[attr-defined]
        self._steps.timed("inscribe", self._inscribe_all)

    def _inscribe_all(self) -> None:
        many = getattr(self._memory, "inscribe_many", None)
        if many is not None:
            many(list(self._case.setup_facts))
            self._record["store"] = len(self._case.setup_facts)
            return
        for fact in self._case.setup_facts:
            self._memory.inscribe(fact)
            self._record["store"] += 1

    def _mutate(self, op: str, *arguments: str) -> None:
        self._steps.now = op
        outcome: dict[str, Any] = {"op": op, "status": "error", "returned": None, "seconds": 0.0}
        self._record["operations"].append(outcome)
        method = getattr(self._memory, op, None)
        started = perf_counter()
        try:
            if method is None:
                raise NotImplementedError
            outcome["returned"] = plain(method(*arguments))
            outcome["status"] = "ok"
            self._record["store"] += op == "supersede"
        except NotImplementedError as error:
            outcome["status"] = "n/a"
            raise _LackingError(op) from error
        finally:
            outcome["seconds"] = since(started)

    def _ask(self) -> None:
        case, record = self._case, self._record
        record["final"] = self._steps.timed("final", lambda: self._recall(case.final_query))
        self._steps.timed("probes", lambda: self._recall_each([probe.query for probe in case.probes], record["probes"]))
        leaks = [probe.query for probe in case.probes if probe.kind == "leak"]
        self._steps.timed("again", lambda: self._recall_each(leaks, record["again"]))

    def _recall_each(self, queries: list[str], answers: list[list[str]]) -> None:
        for query in queries:
            answers.append(self._recall(query))  # noqa: PERF401 (those before a failure are kept)

    def _recall(self, query: str) -> list[str]:
        return recalled(self._memory.recall_texts(query, k=self._k), self._k)
