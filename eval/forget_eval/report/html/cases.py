"""Failing ForgetEval cases as the explorer shows them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from forget_datasets.rows import GeneratedCase, Probe
from forget_datasets.verdicts import strict_reasons
from forget_eval import scores
from forget_eval.protocols import Status
from forget_eval.report.html.texts import Texts
from forget_eval.transcripts import Transcript

Row = dict[str, Any]
Verdicts = Mapping[str, tuple[str, list[str]]]


def verdicts(folder: Path) -> Verdicts:
    """Strict status and reasons of each case of a scored run.

    Raises:
        UserError: as `scores.read_scores`.
    """
    rows = scores.read_scores(folder, ("case", "status", "reasons"), "strict")
    return {row["case"]: (row["status"], row["reasons"] or []) for row in rows}


def failed(
    cases: Iterable[GeneratedCase],
    verdicts: Sequence[Verdicts],
    answers: Sequence[Mapping[str, Transcript]],
    texts: Texts,
) -> Iterator[tuple[Row, list[Row]]]:
    """Every case that some system has not passed strictly, and what each of these systems answered.

    Args:
        cases: of the dataset, in its order.
        verdicts: of each system.
        answers: transcripts of each system by id.
        texts: collects the texts.
    """
    for case in cases:
        ended = [found.get(case.id, (Status.UNSCORED.value, [])) for found in verdicts]
        if all(status == Status.PASS for status, _ in ended):
            continue
        shown = _case(case, texts) | {"ended": [status for status, _ in ended]}
        yield (
            shown,
            [
                _record(case, i, status, reasons, answers[i].get(case.id), texts)
                for i, (status, reasons) in enumerate(ended)
                if status != Status.PASS
            ],
        )


def _case(case: GeneratedCase, texts: Texts) -> Row:
    return {
        "id": case.id,
        "family": case.family,
        "template": case.template,
        "facts": texts.add_all(case.setup_facts),
        "mutations": [[m[0], texts.add_all(m[1:])] for m in case.mutations],
        "asked": [
            _asked("final", case.final_query, case.must_contain, case.must_not_contain, texts),
            *(_asked(p.kind, p.query, p.must_contain, p.must_not_contain, texts) for p in case.probes),
        ],
    }


def _asked(kind: str, query: str, need: Sequence[str], forbid: Sequence[str], texts: Texts) -> list[Any]:
    return [kind, texts.add(query), texts.add_all(need), texts.add_all(forbid)]


def _record(
    case: GeneratedCase, system: int, status: str, reasons: list[str], answer: Transcript | None, texts: Texts
) -> Row:
    record: Row = {"system": system, "status": status, "reasons": reasons or [status]}
    if answer is None:
        return record
    record["store"] = answer["store"]
    record["operations"] = [
        [o["op"], o["status"], _returned(o.get("returned"), texts), o.get("seconds")] for o in answer["operations"]
    ]
    record["answers"] = [_answer(case, i, recalled, texts) for i, recalled in _asked_and_answered(case, answer)]
    if answer["error"]:
        record["error"] = texts.add_all(_words(answer["error"]))
    return record


def _asked_and_answered(case: GeneratedCase, answer: Transcript) -> Iterator[tuple[int, list[str]]]:
    """What was recalled, after the number of its question: 0 is the final one, then the probes; leak probes twice."""
    if answer["final"] is not None:
        yield 0, answer["final"]
    yield from zip(range(1, len(case.probes) + 1), answer["probes"], strict=False)
    leaks = [i for i, probe in enumerate(case.probes, 1) if probe.kind == "leak"]
    yield from zip(leaks, answer["again"], strict=False)


def _answer(case: GeneratedCase, number: int, recalled: list[str], texts: Texts) -> list[Any]:
    asked: GeneratedCase | Probe = case if number == 0 else case.probes[number - 1]
    alone = replace(case, must_contain=asked.must_contain, must_not_contain=asked.must_not_contain, probes=[])
    wrong = [reason.value for reason in strict_reasons(alone, recalled, [], [])]
    marks = [*asked.must_not_contain, *asked.must_contain]
    return [number, wrong, texts.add_all(recalled, marks)]


def _returned(value: object, texts: Texts) -> int:
    return texts.add("nothing" if value is None else str(value))


def _words(error: Mapping[str, str]) -> list[str]:
    return [f"{error['during']}: {error['kind']}: {error['message']}", error.get("traceback", "")]
