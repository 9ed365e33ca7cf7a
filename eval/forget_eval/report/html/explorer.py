"""What the failure explorer of a group holds: cases, what systems answered where they failed, and texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from forget_eval import runs, transcripts
from forget_eval.data import Dataset
from forget_eval.report.contents import words
from forget_eval.report.groups import Group
from forget_eval.report.html import cases, items
from forget_eval.report.html.embedded import embedded
from forget_eval.report.html.texts import LIMITS, Texts

BUDGET = 4_000_000
"""Bytes of an explorer's data for up to 3,000 outcomes; more outcomes have in proportion more."""
_OUTCOMES = 3000
Row = dict[str, Any]


@dataclass
class Found:
    """An explorer's data. `cases` are those with a failure, `records` one a failure, `left_out` those not stored."""

    cases: list[Row] = field(default_factory=list)
    records: list[Row] = field(default_factory=list)
    left_out: int = 0


def data(group: Group, dataset: Dataset) -> str:
    """The explorer's data as JSON that can stand in a page, with texts cut as far as its size demands.

    Raises:
        UserError: a transcript does not answer the rows of this dataset.
    """
    answers = [_answers(result.folder, group.task) for result in group.results]
    budget = BUDGET * max(1.0, dataset.n * len(group.results) / _OUTCOMES)
    for limit in LIMITS:
        texts = Texts(limit)
        found = _collect(group, dataset, answers, texts)
        text = _written(group, found, texts)
        if len(text.encode()) <= budget:
            return text
    return _shortened(group, found, texts, budget)


def _answers(folder: Any, task: str) -> dict[str, transcripts.Transcript]:
    found = transcripts.read(folder / runs.TRANSCRIPTS, transcripts.SHAPES[task])
    return {transcript["id"]: transcript for transcript in found}


def _collect(
    group: Group, dataset: Dataset, answers: Sequence[dict[str, transcripts.Transcript]], texts: Texts
) -> Found:
    found = Found()
    for case, records in _failed(group, dataset, answers, texts):
        number = len(found.cases)
        found.cases.append(case)
        found.records += [{"case": number, **record} for record in records]
    return found


def _failed(
    group: Group, dataset: Dataset, answers: Sequence[dict[str, transcripts.Transcript]], texts: Texts
) -> Iterable[tuple[Row, list[Row]]]:
    if group.task == "forgeteval":
        verdicts = [cases.verdicts(result.folder) for result in group.results]
        return cases.failed(dataset.cases(), verdicts, answers, texts)
    values = [items.verdicts(result.folder) for result in group.results]
    return items.failed(dataset, values, answers, texts)


def _written(group: Group, found: Found, texts: Texts) -> str:
    columns = ("family", "template") if group.task == "forgeteval" else ("level",)
    return embedded(
        {
            "task": group.task,
            "systems": [result.label for result in group.results],
            "controls": [i for i, result in enumerate(group.results) if result.control],
            "facets": columns,
            "meaning": words(group.task)["reason"],
            "leftOut": found.left_out,
            "cases": found.cases,
            "records": found.records,
            "texts": texts.rows,
        }
    )


def _shortened(group: Group, found: Found, texts: Texts, budget: float) -> str:
    """As many failures as fit, the first of each; a text that none of them shows is emptied."""
    kept = found.records
    while True:
        kept = kept[: len(kept) // 2]
        used = set[int]()
        for record in kept:
            _indexes(record, used)
            _indexes(found.cases[record["case"]], used)
        slim = Texts()
        slim.rows = [row if i in used else "" for i, row in enumerate(texts.rows)]
        last = max((record["case"] for record in kept), default=-1)
        text = _written(group, Found(found.cases[: last + 1], kept, len(found.records) - len(kept)), slim)
        if len(text.encode()) <= budget or not kept:
            return text


def _indexes(value: Any, used: set[int]) -> None:
    """Collects every integer: among them are all indexes of texts, and a few numbers that do no harm."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            _indexes(inner, used)
    elif isinstance(value, int):
        used.add(value)
