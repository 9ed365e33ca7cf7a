"""Comparisons of runs as text: for the terminal (100 columns, legible without colour), in Markdown, JSON and CSV."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table as Printed
from rich.text import Text

from forget_eval.comparison import Compared, Comparison, forgeteval, membehave
from forget_eval.comparison.pairs import Pair
from forget_eval.report import cells, console
from forget_eval.report.membehave import FURTHER, MAIN

SHOWN = 10
"""How many ids of cases that flipped stand in a text, unless more are asked for."""
_NAMES = {**MAIN, **FURTHER}
_ENDINGS = ("n/a", "error", "unscored")
_WIDTHS = {"cases": 13, "metric": 20, "n": 5, "first": 6, "second": 7, "difference": 24, "p": 7, "Holm": 7}
Cell = forgeteval.Cell | membehave.Cell
Rows = list[tuple[str, ...]]
Table = tuple[str, tuple[str, ...], Rows]
"""Heading, columns and rows."""


def print_comparison(found: Comparison, shown: int = SHOWN) -> None:
    """Prints a comparison, at most 100 columns wide.

    Args:
        found: the comparison.
        shown: how many ids of cases that flipped are listed each way.
    """
    out = console.console()
    out.print(Text(_title(found), style="bold"))
    for pair in found.pairs:
        out.print(Text(f"\n{_against(pair)}", style="bold"))
        for heading, columns, rows in _TABLES[found.task](pair):
            out.print(Text(f"\n{heading}"))
            out.print(_rich(columns, rows))
        for line in _FLIPPED[found.task](pair, shown):
            out.print(Text(line))
    out.print(Text(""))
    for note in _notes(found):
        out.print(Text(note))


def markdown(found: Comparison, shown: int = SHOWN) -> str:
    """A comparison as Markdown; `shown` as in `print_comparison`."""
    lines = [f"## {cells.escaped(_title(found))}", ""]
    for pair in found.pairs:
        lines += [f"### {cells.escaped(_against(pair))}", ""]
        for heading, columns, rows in _TABLES[found.task](pair):
            lines += [f"{heading}:", "", cells.markdown_row(columns), cells.markdown_row(["---"] * len(columns))]
            lines += [*(cells.markdown_row(map(cells.escaped, row)) for row in rows), ""]
        lines += [f"- {cells.escaped(line)}" for line in _FLIPPED[found.task](pair, shown)] + [""]
    return "\n".join([*lines, *(f"- {cells.escaped(note)}" for note in _notes(found)), ""])


def plain(found: Comparison) -> dict[str, Any]:
    """A comparison as data for JSON, with every id that flipped."""
    return asdict(found)


def as_csv(found: Comparison) -> str:
    """A comparison as CSV: one row a pair, metric and place; ids that flipped stand in two columns, between spaces."""
    rows = [
        {"task": found.task, "first_run": pair.first, "second_run": pair.second, "metric": metric, "place": place}
        | {name: " ".join(value) if isinstance(value, tuple) else value for name, value in asdict(cell).items()}
        for pair in found.pairs
        for metric, places in pair.metrics.items()
        for place, cell in places.items()
    ]
    sink = io.StringIO()
    writer = csv.DictWriter(sink, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return sink.getvalue()


def _title(found: Comparison) -> str:
    dataset = found.dataset
    return cells.heading(found.task, dataset["config"], dataset["n"], f"content hash {dataset['content_hash'][:12]}")


def _against(pair: Pair[Any]) -> str:
    return f"{pair.second} (second) against {pair.first} (first)"


def _membehave_tables(pair: Pair[membehave.Cell]) -> Iterator[Table]:
    columns = ("metric", "level", "n", "first", "second", "difference", "higher", "lower", "excl.", "smallest")
    yield "Means over items in percent, difference in points [95% interval]", columns, list(_membehave_rows(pair))


def _forgeteval_tables(pair: Pair[forgeteval.Cell]) -> Iterator[Table]:
    columns = ("cases", "n", "first", "second", "difference", "gained", "lost", "p", "Holm", "smallest")
    for metric, what in cells.METRICS.items():
        heading = f"{metric.capitalize()} rate: {what}. Percent, difference in points [95% interval]"
        yield heading, columns, [_forgeteval_row(place, cell) for place, cell in pair.metrics[metric].items()]


def _forgeteval_row(place: str, cell: forgeteval.Cell) -> tuple[str, ...]:
    flips = [str(len(ids)) for ids in (cell.gained, cell.lost)]
    tests = [_p(cell.p), _p(cell.p_holm)]
    return place, str(cell.n), *_means(cell), *flips, *tests, _points(cell.smallest)


def _membehave_rows(pair: Pair[membehave.Cell]) -> Iterator[tuple[str, ...]]:
    for metric, name in _NAMES.items():
        if metric in FURTHER and not pair.metrics[metric]["all"].n:
            continue
        scale = 1 if metric == "resurfaced" else 100
        for place, cell in pair.metrics[metric].items():
            counts = [str(len(cell.higher)), str(len(cell.lower)), str(cell.excluded)]
            first = name if place == "all" else ""
            yield first, place, str(cell.n), *_means(cell, scale), *counts, _points(cell.smallest, scale)


def _means(cell: Cell, scale: int = 100) -> tuple[str, str, str]:
    if cell.first is None or cell.second is None or cell.difference is None:
        return "–", "–", "–"
    places = 1 if scale == 100 else 2
    low, high = (f"{scale * end:+.{places}f}" for end in (cell.low, cell.high))
    first, second = (f"{scale * rate:.{places}f}" for rate in (cell.first, cell.second))
    return first, second, f"{scale * cell.difference:+.{places}f} [{low}, {high}]"


def _points(value: float | None, scale: int = 100) -> str:
    return "–" if value is None else f"{scale * value:.{1 if scale == 100 else 2}f}"


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _membehave_flipped(pair: Pair[membehave.Cell], shown: int) -> Iterator[str]:
    cell = pair.metrics["selective_forgetting"]["all"]
    for word, ids in (("higher", cell.higher), ("lower", cell.lower)):
        yield f"Selective forgetting is {word} in {pair.second}: {_listed(ids, shown)}"


def _forgeteval_flipped(pair: Pair[forgeteval.Cell], shown: int) -> Iterator[str]:
    for metric in cells.METRICS:
        overall = pair.metrics[metric]["overall"]
        for ids, run in ((overall.gained, pair.second), (overall.lost, pair.first)):
            yield f"Pass in {run} alone, {metric} rate: {_listed(ids, shown)}"


_TABLES: Mapping[str, Callable[[Pair[Any]], Iterator[Table]]] = {
    "forgeteval": _forgeteval_tables,
    "membehave": _membehave_tables,
}
_FLIPPED: Mapping[str, Callable[[Pair[Any], int], Iterator[str]]] = {
    "forgeteval": _forgeteval_flipped,
    "membehave": _membehave_flipped,
}
"""Which rows flipped, each way, under each metric that matters."""


def _listed(ids: Sequence[str], shown: int) -> str:
    if not ids:
        return "none"
    more = f", and {len(ids) - shown} more by --json or --csv" if len(ids) > shown else ""
    return f"{len(ids)} ({', '.join(ids[:shown])}{more})" if shown else str(len(ids))


def _notes(found: Comparison) -> Iterator[str]:
    for run in found.runs:
        if run.told_the_case:
            yield f"{run.label} is a control: it is told each case before it is asked."
        if ended := _ended(found.task, run):
            yield f"{run.label}: {ended}; these count as failed."
    for name in found.runs[0].conditions:
        values = "; ".join(f"{run.label} {run.conditions[name] or 'none'}" for run in found.runs)
        yield f"Made with different conditions, {name}: {values}."
    yield from found.method


def _ended(task: str, run: Compared) -> str:
    statuses = run.statuses["strict"] if task == "forgeteval" else run.statuses
    endings = _ENDINGS if task == "forgeteval" else _ENDINGS[:2]
    return ", ".join(f"{statuses[ending]} {ending}" for ending in endings if statuses[ending])


def _rich(columns: Sequence[str], rows: Rows) -> Printed:
    table = console.table()
    words = 2 if "level" in columns else 1
    for i, column in enumerate(columns):
        width = _WIDTHS.get(column, len(column))
        table.add_column(column, justify="left" if i < words else "right", width=width, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
