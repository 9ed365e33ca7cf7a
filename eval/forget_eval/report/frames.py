"""Scored runs as tidy data frames: what `forget_eval.plots` draws, and what a notebook may want to look at.

    from forget_eval import plots
    from forget_eval.report import frames, groups

    [group] = groups.load([Path("runs/a"), Path("runs/b")])
    plots.heatmap(frames.rates(group))

Every frame has the columns `system` (the label in reports) and `control` (whether it was told the cases); its rows are
in the order of the report.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forget_datasets.rows import FAMILIES, LEVELS
from forget_datasets.verdicts import Reason
from forget_eval import runs, scores, transcripts
from forget_eval.report.groups import Group, load
from forget_eval.report.results import Scored
from forget_eval.scoring.membehave import METRICS, PAIRS

if TYPE_CHECKING:
    from pandas import DataFrame

Row = dict[str, Any]

ENDINGS = ("n/a", "error", "unscored")
"""How a case may end without a verdict; such a case has no reasons."""


def rates(group: Group) -> "DataFrame":
    """Every rate or mean with its interval.

    Columns: task, config, system, control, metric, place, value, low, high, n. For ForgetEval `metric` is strict or
    spec and `place` overall, a family, or family__template; for MemBehave `place` is all, a level, or a pair such as
    high-low, whose values are differences. All are shares from 0 to 1 (`resurfaced` counts entities), and value is
    None where nothing was measured.
    """
    return _frame(group, _rates if group.task == "forgeteval" else _means, ("task", "config"))


def csv(folders: Iterable[Path]) -> str:
    """The rates of all runs as CSV, with the content hash of the dataset.

    Raises:
        UserError: as `groups.load`.
    """
    from pandas import concat

    found = load(folders)
    frames = [rates(group).assign(dataset=group.dataset["content_hash"]) for group in found]
    return str(concat(frames).to_csv(index=False, lineterminator="\n"))


def reasons(group: Group) -> "DataFrame":
    """How many ForgetEval cases failed strictly for each reason, or ended without a verdict.

    Columns: system, control, reason, n, cases. A case may have several reasons; `cases` is the size of the dataset.
    """
    return _frame(group, _reasons)


def items(group: Group) -> "DataFrame":
    """The values of MemBehave, one an item and metric.

    Columns: system, control, item, triplet, level, metric, value (None where the denominator is empty).

    Raises:
        UserError: as `scores.read_scores`.
    """
    return _frame(group, _items)


def latency(group: Group) -> "DataFrame":
    """How long operations took.

    Columns: system, control, operation, seconds. A row is one call, or of `inscribe` (ForgetEval) and `ask`
    (MemBehave) the mean over the facts or probes of one case.

    Raises:
        UserError, EnvironmentFault: as `transcripts.read`.
    """
    return _frame(group, _case_seconds if group.task == "forgeteval" else _item_seconds)


def _frame(group: Group, rows: Callable[[Scored], Iterator[Row]], shared: Sequence[str] = ()) -> "DataFrame":
    from pandas import DataFrame

    common = {"task": group.task, "config": group.dataset["config"]}
    front = {name: common[name] for name in shared}
    found = DataFrame(
        [front | {"system": r.label, "control": r.control} | row for r in group.results for row in rows(r)]
    )
    return found.astype({"value": float}) if "value" in found else found  # where all is None, too


def _rates(result: Scored) -> Iterator[Row]:
    for metric in ("strict", "spec"):
        for place, found in {**result.summary["rates"][metric], **result.summary["templates"][metric]}.items():
            yield {"metric": metric, "place": place, **_interval(found)}


def _means(result: Scored) -> Iterator[Row]:
    for metric in METRICS:
        for place in ("all", *LEVELS):
            yield {"metric": metric, "place": place, **_interval(result.summary["metrics"][metric][place])}
        for more, less in PAIRS:
            pair = f"{more}-{less}"
            yield {"metric": metric, "place": pair, **_interval(result.summary["paired"][pair][metric])}


def _interval(found: Mapping[str, Any]) -> Row:
    return {name: found[name] for name in ("value", "low", "high", "n")}


def _reasons(result: Scored) -> Iterator[Row]:
    statuses = result.summary["statuses"]["strict"]
    counts = {r.value: result.summary["reasons"][r.value] for r in Reason} | {e: statuses[e] for e in ENDINGS}
    for reason, n in counts.items():
        yield {"reason": reason, "n": n, "cases": result.manifest["dataset"]["n"]}


def _items(result: Scored) -> Iterator[Row]:
    from forget_eval.membehave.scores import SCHEMA

    columns = ("item", "triplet", "level", "metric", "value")
    for metric in METRICS:
        yield from scores.read_scores(result.folder, columns, metric, SCHEMA)


def _case_seconds(result: Scored) -> Iterator[Row]:
    for answer in transcripts.read(result.folder / runs.TRANSCRIPTS):
        spent = answer.get("seconds", {})
        facts = answer["store"] - sum(o["op"] == "supersede" and o["status"] == "ok" for o in answer["operations"])
        yield from _spent("inscribe", spent.get("inscribe"), facts)
        for operation in answer["operations"]:
            if operation["status"] == "ok":
                yield from _spent(operation["op"], operation.get("seconds"))
        if answer["final"] is not None:
            yield from _spent("recall", spent.get("final"))


def _item_seconds(result: Scored) -> Iterator[Row]:
    for answer in transcripts.read(result.folder / runs.TRANSCRIPTS):
        spent = answer.get("seconds", {})
        yield from _spent("ingest", spent.get("ingest"))
        for step in ("before", "after"):
            yield from _spent("ask", spent.get(step), len(answer[step] or ()))
        forget = answer["operations"].get("forget", {})
        if forget.get("status") == "ok":
            yield from _spent("forget", forget.get("seconds"))


def _spent(operation: str, seconds: object, calls: int = 1) -> Iterator[Row]:
    """The mean time of some calls, if it was taken."""
    if isinstance(seconds, int | float) and calls > 0:
        yield {"operation": operation, "seconds": seconds / calls}


def places(frame: "DataFrame") -> list[str]:
    """The templates among the places of a frame of `rates`, family by family."""
    found = [place for place in dict.fromkeys(frame["place"]) if "__" in place]
    return [place for family in FAMILIES for place in found if place.startswith(f"{family}__")]
