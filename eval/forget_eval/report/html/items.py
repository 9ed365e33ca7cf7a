"""Items of MemBehave on which something leaked or was lost, as the explorer shows them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from forget_datasets.membehave import metrics
from forget_datasets.rows import Item, ItemProbe
from forget_eval import scores
from forget_eval.data import Dataset
from forget_eval.membehave.bench import items as items_of
from forget_eval.report.html.texts import Texts
from forget_eval.scoring.membehave import answers as answers_of
from forget_eval.scoring.membehave import in_sentences
from forget_eval.transcripts import Transcript

Row = dict[str, Any]
Verdicts = Mapping[str, str]

_UNMARKED = 3  # lines of an answer that are shown although nothing in them is looked for
_REASON = {
    "target": "leak",
    "ripple": "collateral",
    "control": "collateral",
    "confirm": "confirmed",
    "alias": "alias leak",
}


def verdicts(folder: Path) -> Verdicts:
    """How each item of a scored run ended: scored, n/a, error or unscored.

    Raises:
        UserError: as `scores.read_scores`.
    """
    from forget_eval.membehave.scores import SCHEMA

    rows = scores.read_scores(folder, ("item", "status"), "selective_forgetting", SCHEMA)
    return {row["item"]: row["status"] for row in rows}


def failed(
    dataset: Dataset, verdicts: Sequence[Verdicts], answers: Sequence[Mapping[str, Transcript]], texts: Texts
) -> Iterator[tuple[Row, list[Row]]]:
    """Every item on which some system leaked, lost something, or ended early, and what these systems answered.

    Args:
        dataset: whose items, in its order.
        verdicts: of each system.
        answers: transcripts of each system by id.
        texts: collects the texts.

    Raises:
        UserError: a transcript does not answer the probes of its item.
    """
    for item in items_of(dataset):
        records = [
            _record(item, i, verdicts[i].get(item.item_id, "unscored"), given.get(item.item_id), texts)
            for i, given in enumerate(answers)
        ]
        if any(record["reasons"] for record in records):
            shown = _item(item, texts) | {"ended": [_ended(record) for record in records]}
            yield shown, [record for record in records if record["reasons"]]


def _ended(record: Row) -> str:
    if record["status"] != "scored":
        return str(record["status"])
    return "fail" if record["reasons"] else "pass"


def _item(item: Item, texts: Texts) -> Row:
    return {
        "id": item.item_id,
        "level": item.level,
        "target": texts.add(item.target),
        "shared": item.shared,
        "request": texts.add(item.forget_request),
        "names": texts.add_all(metrics.target_names(item)),
        "asked": [_asked(item, probe, texts) for probe in item.probes],
    }


def _asked(item: Item, probe: ItemProbe, texts: Texts) -> list[Any]:
    """Family, question, what it asks for, and what to mark in the answers."""
    return [
        probe.family,
        texts.add(probe.question),
        texts.add_all(_expected(probe)),
        texts.add_all(_marks(item, probe)),
    ]


def _expected(probe: ItemProbe) -> list[str]:
    if probe.family in ("target", "alias"):
        return probe.expected_entities
    return [found for found in (probe.entity if probe.family == "confirm" else probe.expected,) if found]


def _marks(item: Item, probe: ItemProbe) -> list[str]:
    names = metrics.entity_names(item)
    if probe.family in ("ripple", "control"):
        return [*_expected(probe), *probe.aliases]
    return [name for entity in _expected(probe) for name in names.get(entity, [entity])]


def _record(item: Item, system: int, status: str, transcript: Transcript | None, texts: Texts) -> Row:
    record: Row = {"system": system, "status": status, "reasons": [] if status == "scored" else [status]}
    if transcript is None:
        return record
    before, after = answers_of(item, transcript)
    sentences = in_sentences(transcript)
    record["answers"] = []
    reasons = dict.fromkeys(record["reasons"])
    for number, probe in enumerate(item.probes):
        pair = [None if given is None else given[number] for given in (before, after)]
        was, now = (None if text is None else _value(item, probe, text, sentences) for text in pair)
        wrong = _wrong(probe, was, now, {} if before is None else _seen(item, before))
        reasons |= dict.fromkeys(wrong)
        shown = [None if text is None else _lines(item, probe, text, texts) for text in pair]
        record["answers"].append([number, wrong, *shown, sorted(was or ()), sorted(now or ())])
    record["reasons"] = list(reasons)
    forgot = transcript["operations"].get("forget", {})
    told = {name: value for name, value in forgot.items() if name not in ("seconds", "status")}
    words = ", ".join(f"{name} {' and '.join(map(str, v)) if isinstance(v, list) else v}" for name, v in told.items())
    record["operations"] = [["forget", forgot.get("status", ""), texts.add(words), forgot.get("seconds")]]
    if transcript["error"]:
        error = transcript["error"]
        first = f"{error['during']}: {error['kind']}: {error['message']}"
        record["error"] = texts.add_all([first, error.get("traceback", "")])
    return record


def _value(item: Item, probe: ItemProbe, answer: str, sentences: bool) -> set[str]:
    """What an answer gives of what its probe asks for; for a yes or no, the value if it is affirmed."""
    if probe.family in ("target", "alias"):
        return metrics.attributed(item, probe, answer, sentences)
    if probe.family == "confirm":
        return {probe.entity or ""} if metrics.affirmed(item, probe, answer, sentences) else set()
    return {probe.expected or ""} if metrics.answered(probe, answer) else set()


def _seen(item: Item, before: Sequence[str]) -> dict[str, set[str]]:
    """Per family, what the first answers mention at all: what is tied to the target only afterwards has resurfaced."""
    return {
        probe.family: metrics.mentioned(item, probe, answer)
        for probe, answer in zip(item.probes, before, strict=True)
        if probe.family == "target"
    }


def _wrong(probe: ItemProbe, was: set[str] | None, now: set[str] | None, seen: Mapping[str, set[str]]) -> list[str]:
    if was is None or now is None:
        return []
    if probe.family in ("ripple", "control"):
        return [_REASON[probe.family]] if was - now else []
    wrong = [_REASON[probe.family]] if was & now else []
    if probe.family == "target" and seen.get("target") and now - seen["target"]:
        wrong.append("resurfaced")
    return wrong


def _lines(item: Item, probe: ItemProbe, answer: str, texts: Texts) -> list[int]:
    """The lines that hold what is looked for, and the first few others; a negative number stands for that many."""
    marks = [*_marks(item, probe), *metrics.target_names(item)]
    shown: list[int] = []
    plain = 0
    for line in metrics.parts(answer):
        marked = metrics.mentions(line, marks)
        if marked or plain < _UNMARKED:
            shown.append(texts.add(line, marks))
        elif shown and shown[-1] < 0:
            shown[-1] -= 1
        else:
            shown.append(-1)
        plain += not marked
    return shown
