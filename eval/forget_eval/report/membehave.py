"""The tables of MemBehave: systems by level, differences within triplets, what was excluded, and answers afterwards."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from forget_datasets.rows import LEVELS
from forget_eval import residue_notes, runs, scores
from forget_eval.membehave.disclosure import Label
from forget_eval.report import cells
from forget_eval.report.results import Answers, Scored, grouped
from forget_eval.scoring.membehave import PAIRS, STATUSES

WIDTH = 100
MAIN = {
    "baseline_recall_target": "recall target",
    "baseline_recall_ripple": "recall ripple",
    "attributed_coverage": "attributed coverage",
    "target_coverage": "target coverage",
    "ripple_survival": "ripple survival",
    "selective_forgetting": "selective forgetting",
}
FURTHER = {
    "control_survival": "control survival",
    "confirm_leak": "confirm leak",
    "alias_coverage": "alias coverage",
    "resurfaced": "resurfaced",
}
"""Shown where any item has them, over all levels; `resurfaced` counts entities."""
MEANING = (
    "Means over items in percent [95% interval, bootstrapped by target]. Recall is before the request;",
    "afterwards coverage should be 0 and survival 100. Selective forgetting is the harmonic mean of",
    "100 - attributed coverage and ripple survival. A control whose levels are alike has one row.",
)
_NAME, _LEVEL, _CELL, _WIDE = 11, 6, 13, 16


@dataclass(frozen=True, kw_only=True)
class Result(Scored):
    """A scored run of MemBehave.

    Attributes:
        labels: counts what answers about the target amount to after the request.
        judged: the summaries by other judges.
    """

    labels: Counter[str]
    judged: tuple[dict[str, Any], ...]


def load(folders: Sequence[Path]) -> list[list[Result]]:
    """The runs of each dataset together, in the order given, controls last.

    Raises:
        UserError: a folder is no run, has not been scored since its transcripts changed, or holds something damaged.
    """
    return grouped(folders, _name, _result)


def print_report(groups: Sequence[Sequence[Result]], console: Console | None = None) -> None:
    """Prints the tables of the runs of each dataset, at most 100 columns wide."""
    console = console or Console(width=WIDTH, highlight=False, soft_wrap=False)
    for group in groups:
        console.print(Group(*_parts(group)))


def render_markdown(groups: Sequence[Sequence[Result]]) -> str:
    """The tables as Markdown, for a README."""
    return "\n".join(_markdown(group) for group in groups)


def _parts(results: Sequence[Result]) -> Iterator[RenderableType]:
    yield Text(title(results), style="bold")
    yield from map(Text, MEANING)
    yield Text("")
    yield _table(results, "level", _LEVEL, MAIN, _CELL, ("all", *LEVELS), _by_level)
    yield Text("\nDifferences between levels within triplets, in points, where there are any", style="bold")
    shown = {metric: name for metric, name in MAIN.items() if metric != "baseline_recall_target"}
    yield _table([r for r in results if _differs(r)], "levels", 9, shown, _WIDE, _PAIRS, _by_pair)
    if further := _further(results):
        yield Text("\nFurther probes, all levels (resurfaced: entities an item)", style="bold")
        yield _table(results, "level", _LEVEL, further, _WIDE + 4, ("all",), _by_level)
    yield Text("\nHow items ended, and what answers about the target amount to afterwards", style="bold")
    yield _endings(results)
    yield Text("\nItems that a metric excludes, since nothing was known that could be kept or lost", style="bold")
    yield _exclusions(results)
    yield Text("")
    yield from map(Text, notes(results))


_PAIRS = [f"{more}-{less}" for more, less in PAIRS]
Cell = Callable[[Result, str, str], str]


def _table(
    results: Sequence[Result],
    heading: str,
    width: int,
    metrics: Mapping[str, str],
    cell_width: int,
    places: Sequence[str],
    cell: Cell,
) -> Table:
    table = _empty()
    table.add_column("system", width=_NAME, no_wrap=True)
    table.add_column(heading, width=width, no_wrap=True)
    for name in metrics.values():
        table.add_column(name, width=cell_width)
    for result in results:
        rows = [(place, *(cell(result, metric, place) for metric in metrics)) for place in places]
        if result.control and len({tuple(c.split("[")[0].strip() for c in cells) for _, *cells in rows[1:]}) == 1:
            rows = rows[:1]  # by construction its levels are alike, but for how many targets an interval rests on
        for i, row in enumerate(rows):
            table.add_row("" if i else result.label, *row)
    return table


def _endings(results: Sequence[Result]) -> Table:
    table = _empty()
    table.add_column("system", width=_NAME, no_wrap=True)
    for name in (*STATUSES, *Label):
        table.add_column(name, width=9 if name in STATUSES else 10, justify="right")
    for result in results:
        ended = (result.summary["statuses"][status] for status in STATUSES)
        table.add_row(result.label, *map(str, ended), *(str(result.labels[label]) for label in Label))
    return table


def _exclusions(results: Sequence[Result]) -> Table:
    table = _empty()
    table.add_column("system", width=_NAME, no_wrap=True)
    for name in MAIN.values():
        table.add_column(name, width=_CELL, justify="right")
    for result in results:
        table.add_row(result.label, *(str(result.summary["excluded"][metric]) for metric in MAIN))
    return table


def _empty() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)


def _by_level(result: Result, metric: str, level: str) -> str:
    found = result.summary["metrics"][metric][level]
    return _count(found) if metric == "resurfaced" else _rate(found)


def _differs(result: Result) -> bool:
    """Whether there is a difference to show: of most controls there is none by construction."""
    differences = (result.summary["paired"][pair][metric]["value"] for pair in _PAIRS for metric in MAIN)
    return not result.control or any(differences)


def _by_pair(result: Result, metric: str, pair: str) -> str:
    return _difference(result.summary["paired"][pair][metric])


def _rate(found: Mapping[str, Any]) -> str:
    """A mean in percent with its interval, as " 98 [90–100]"; 99.6 is not rounded to 100, nor 0.4 to 0."""
    if found["value"] is None:
        return "  –"
    shown = round(100 * found["value"])
    shown = min(shown, 99) if found["value"] < 1 else shown
    shown = max(shown, 1) if found["value"] > 0 else shown
    return f"{shown:>3} [{round(100 * found['low'])}–{round(100 * found['high'])}]"


def _difference(found: Mapping[str, Any]) -> str:
    if found["value"] is None:
        return "   –"
    value, low, high = (f"{round(100 * found[key]):+d}" for key in ("value", "low", "high"))
    return f"{value:>4} [{low},{high}]"


def _count(found: Mapping[str, Any]) -> str:
    return "  –" if found["value"] is None else f"{found['value']:.2f} [{found['low']:.2f}–{found['high']:.2f}]"


def _further(results: Sequence[Result]) -> dict[str, str]:
    known = {m for m in FURTHER for result in results if result.summary["metrics"][m]["all"]["n"]}
    return {metric: name for metric, name in FURTHER.items() if metric in known}


def title(results: Sequence[Result]) -> str:
    """What was run, in one line."""
    dataset = results[0].manifest["dataset"]
    parts = [f"MemBehave: Forgetting, config {dataset['config']}", f"{dataset['n']} items"]
    seed = dataset["parameters"].get("seed")
    return " · ".join([*parts, *([f"seed {seed}"] if seed is not None else [])])


def notes(results: Sequence[Result]) -> Iterator[str]:
    """What a reader must know to read the tables: policies, answerers, embedders, judges, what broke."""
    for result in results:
        if not result.control:
            yield _made(result)
        for judge in result.judged:
            yield _judge(result, judge)
        if residue := residue_notes.note(result.folder, result.label):
            yield residue
        if result.first_error:
            yield f"{result.label} broke, first in {result.first_error}"
        if unscored := result.summary["statuses"]["unscored"]:
            yield (
                f"{result.label}: {unscored} items are unscored: not run yet, and then in no metric, or left undecided"
                " by the judge, which counts against the system."
            )


def _made(result: Result) -> str:
    made, adapter = result.manifest["assistant"], result.manifest["adapter"]
    package = f" ({adapter['distribution']} {adapter['version']})" if adapter["distribution"] else ""
    if made["answerer"] == "own":
        return f"{result.label}{package}: an assistant of its own."
    recall = made["recall"]
    model = f", model {made['model']['name']}" if "model" in made else ""
    parts = [
        f"forget policy {made['forget_policy']}",
        f"answerer {made['answerer']}{model}",
        f"k = {recall['target']} for the target and {recall['default']} else",
    ]
    if embedder := result.manifest["embedder"]:
        parts.append(f"embedder {embedder['name']}")
    return f"{result.label}{package}: {'; '.join(parts)}."


def _judge(result: Result, summary: Mapping[str, Any]) -> str:
    judge = summary["judge"]
    kappa = "not defined" if judge["kappa"] is None else f"{judge['kappa']:.2f}"
    return (
        f"{result.label}, judged by {judge['model']}: agrees with the deterministic judge on {judge['agreed']} of"
        f" {judge['n']} judgements (Cohen's kappa {kappa}); {judge['undecided']} neither yes nor no."
    )


def _markdown(results: Sequence[Result]) -> str:
    lines = [f"**{title(results)}.** {' '.join(MEANING)}", ""]
    lines += _markdown_table(results, "level", MAIN, ("all", *LEVELS), _by_level)
    lines += ["", "Differences between levels, within triplets, in points:", ""]
    lines += _markdown_table([r for r in results if _differs(r)], "levels", MAIN, _PAIRS, _by_pair)
    return "\n".join([*lines, "", *(f"- {cells.escaped(note)}" for note in notes(results)), ""])


def _markdown_table(
    results: Sequence[Result], heading: str, metrics: Mapping[str, str], places: Sequence[str], cell: Cell
) -> list[str]:
    rows = [["system", heading, *metrics.values()], ["---"] * (2 + len(metrics))]
    for result in results:
        for place in places:
            name = cells.escaped(result.label) if place == places[0] else ""
            rows.append([name, place, *(cell(result, metric, place).strip() for metric in metrics)])
    return [cells.markdown_row(row) for row in rows]


def _name(manifest: runs.Manifest) -> str:
    """The adapter's name, with an asterisk where the forget policy is not the usual one."""
    policy = manifest["assistant"].get("forget_policy", "named")
    name = str(manifest["adapter"]["name"])
    return name if policy == "named" else f"{name}*"


def _result(scored: Scored, _: Answers) -> Result:
    from forget_eval.membehave.scores import SCHEMA

    rows = scores.read_scores(scored.folder, ("label",), "answer_after", SCHEMA)
    labels = Counter(str(row["label"]) for row in rows if row["label"])
    return Result(**vars(scored), labels=labels, judged=tuple(scores.read_judged(scored.folder)))
