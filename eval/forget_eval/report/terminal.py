"""Tables for the terminal: 100 columns, legible without colour."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from forget_datasets.rows import FAMILIES
from forget_datasets.verdicts import Reason
from forget_eval import catalogue
from forget_eval.catalogue import Row
from forget_eval.report import cells, console
from forget_eval.report.results import Result, tallies

_NAME = 10
_CELL = 12  # of "100 [93–100]", and of "supersession"; a decimal place takes one more
_NEEDS = 11  # of "an embedder"
_NONE = "·"  # a zero in the long table, so that the other counts stand out
_ENDINGS = {"n/a": "n/a", "error": "err"}  # statuses, and how they are headed


def print_report(groups: Sequence[Sequence[Result]]) -> None:
    """Prints the report of the runs of each dataset: one run in detail, several side by side."""
    out = console.console()
    for group in groups:
        out.print(_detail(group[0]) if len(group) == 1 else _comparison(group))


def print_adapters(rows: Sequence[Row]) -> None:
    """Prints the list of adapters; below it what needs more room, and the commands that get what is not installed."""
    table = console.table(gap=1)
    for heading in ("adapter", "package", "version", *catalogue.COLUMNS):
        table.add_column(heading, overflow="fold", no_wrap=heading not in ("adapter", "package"))
    for row in rows:
        *how, needs = catalogue.entries(row)
        table.add_row(row.name, row.package or catalogue.BUILT_IN, _presence(row), *how, _short(needs))
    console.console().print(table)
    if long := [row for row in rows if _short(row.needs) != row.needs]:
        print("\nThese need more:")
        for row in long:
            print(f"  {row.name}: {row.needs}")
    lacking = [row for row in rows if row.version is None and row.environment is None]
    if lines := dict.fromkeys(line for row in lacking for line in row.install):
        print("\nTo get those that are not installed, in an environment of their own or into this Python:")
        print("\n".join(f"  {line}" for line in lines))


def _short(needs: str) -> str:
    """What fits into a column beside the others."""
    return needs if len(needs) <= _NEEDS else "see below"


def _presence(row: Row) -> str:
    if row.environment:
        return f"{row.environment} (env)"
    return row.version or "not installed"


def _comparison(results: Sequence[Result]) -> RenderableType:
    parts: list[RenderableType] = []
    for metric, what in cells.METRICS.items():
        parts += [Text(f"\n{metric.capitalize()} rate: {what}", style="bold"), _rates(results, metric)]
    parts += [Text("\nWhy cases failed strictly (a case may have several reasons)", style="bold"), _reasons(results)]
    return Group(_heading(results), *parts, *_notes(results))


def _rates(results: Sequence[Result], metric: str) -> Table:
    table = _table("system", _NAME)
    for column in cells.COLUMNS:
        table.add_column(column, width=_CELL + (column == "overall"), no_wrap=True)
    _add_counts(table, ("n/a", "err"))
    for i, result in enumerate(results):
        *rates, lacking, broken = cells.headline(result, metric)
        table.add_row(result.label, *rates, lacking, broken, end_section=_ends_section(results, i))
    return table


def _reasons(results: Sequence[Result]) -> Table:
    table = _table("system", _NAME)
    _add_counts(table, Reason, extra=4)
    for i, result in enumerate(results):
        counts = (str(result.summary["reasons"][reason.value]) for reason in Reason)
        table.add_row(result.label, *counts, end_section=_ends_section(results, i))
    return table


def _ends_section(results: Sequence[Result], i: int) -> bool:
    """A line stands between the systems and the controls."""
    return i + 1 < len(results) and results[i + 1].control and not results[i].control


def _detail(result: Result) -> RenderableType:
    """One run: families with their templates, both rates, and how the cases ended under the strict one."""
    table = _table("", 19)
    _add_counts(table, ("n",))
    for metric in cells.METRICS:
        table.add_column(f"{metric} rate", width=_CELL + 1, no_wrap=True)
    _add_counts(table, (*_ENDINGS.values(), *Reason))
    found = tallies(result)
    for name, place in _lines(result):
        rates = [(result.summary["rates"][m] | result.summary["templates"][m])[place] for m in cells.METRICS]
        counts = [str(found[place][ending] or _NONE) for ending in (*_ENDINGS, *Reason)]
        style = None if name.startswith(" ") else "bold"
        table.add_row(name, str(rates[0]["n"]), *(cells.rate(rate, 1) for rate in rates), *counts, style=style)
    return Group(_heading([result]), Text(""), table, *_notes([result]))


def _lines(result: Result) -> Iterator[tuple[str, str]]:
    """Name and place of each line: overall, then each family and its templates."""
    yield "overall", "overall"
    for family in FAMILIES:
        yield family, family
        templates = [place for place in result.summary["templates"]["spec"] if place.startswith(f"{family}__")]
        if len(templates) > 1:
            yield from ((f"  {place.removeprefix(f'{family}__')}", place) for place in templates)


def _table(first: str, width: int) -> Table:
    table = console.table()
    console.add_names(table, first, width)
    return table


def _add_counts(table: Table, names: Iterable[str], extra: int = 0) -> None:
    for name in names:
        table.add_column(name, width=max(4, len(name) + 1) + extra, justify="right", no_wrap=True)


def _heading(results: Sequence[Result]) -> Text:
    name = f" · {results[0].label}" if len(results) == 1 else ""
    return Text(f"{cells.title(results)}{name}\n", style="bold").append("Passed, % [95% interval]", style="not bold")


def _notes(results: Sequence[Result]) -> list[RenderableType]:
    return [Text(""), *(Text(note) for note in cells.notes(results)), Text("")]
