"""The tables of MemBehave as text, for a terminal of 100 columns and in Markdown: two ways to write down the same."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table as Printed
from rich.text import Text

from forget_eval.membehave.disclosure import Label
from forget_eval.report import cells, console, markdown, tables
from forget_eval.report.groups import Group
from forget_eval.report.membehave import MAIN, Result, notes, title
from forget_eval.report.results import Scored
from forget_eval.report.tables import Table
from forget_eval.scoring.membehave import PAIRS, STATUSES

MEANING = (
    "Means over items in percent [95% interval, bootstrapped by target]. Recall is before the request;",
    "afterwards coverage should be 0 and survival 100. Selective forgetting is the harmonic mean of",
    "100 - attributed coverage and ripple survival. A control whose levels are alike has one row.",
)
_NAME, _CELL, _WIDE = 11, 13, 16


@dataclass(frozen=True)
class _Part:
    """A table under its heading, and how a terminal shows it.

    Attributes:
        widths: of its columns but the first.
        digits: how far to the right a number stands that has an interval; 0 for a table of counts.
    """

    table: Table
    widths: tuple[int, ...]
    digits: int = 0


def print_report(groups: Sequence[Sequence[Result]]) -> None:
    """Prints the tables of the runs of each dataset, at most 100 columns wide."""
    for results in groups:
        console.console().print(Stack(*_printed(results)))


def render_markdown(groups: Sequence[Sequence[Result]]) -> str:
    """The tables as Markdown, for a README."""
    return "\n".join(line for results in groups for line in _markdown(results))


def _parts(results: Sequence[Result]) -> Iterator[_Part]:
    group = Group("membehave", tuple(results))
    yield _Part(tables.headline(group), (6, *[_CELL] * len(MAIN)), 3)
    if differing := tuple(filter(_differs, results)):
        found = tables.differences(replace(group, results=differing))
        heading = "Differences between levels within triplets, in points, where there are any"
        yield _Part(replace(found, title=heading), (9, *[_WIDE] * (len(found.columns) - 2)), 4)
    if further := tables.further(group):
        heading = "Further probes, all levels (resurfaced: entities an item)"
        yield _Part(replace(further, title=heading), (6, *[_WIDE + 4] * (len(further.columns) - 2)), 3)
    heading = "How items ended, and what answers about the target amount to afterwards"
    yield _Part(replace(tables.reasons(group), title=heading), (*[9] * len(STATUSES), *[10] * len(Label)))
    heading = "Items that a metric excludes, since nothing was known that could be kept or lost"
    yield _Part(replace(tables.exclusions(group), title=heading), (_CELL,) * len(MAIN))


def _differs(result: Scored) -> bool:
    """Whether there is a difference to show: of most controls there is none by construction."""
    paired = result.summary["paired"]
    differences = (paired[f"{more}-{less}"][metric]["value"] for more, less in PAIRS for metric in MAIN)
    return not result.control or any(differences)


def _printed(results: Sequence[Result]) -> Iterator[RenderableType]:
    yield Text(title(results), style="bold")
    yield from map(Text, MEANING)
    for part in _parts(results):
        yield Text(f"\n{part.table.title}" if part.table.title else "", style="bold")
        yield _rich(part)
    yield Text("")
    yield from map(Text, notes(results))


def _rich(part: _Part) -> Printed:
    found, table = part.table, console.table()
    first, *columns = found.columns
    console.add_names(table, first, _NAME)
    for column, width in zip(columns, part.widths, strict=True):
        table.add_column(column, width=width, justify="left" if part.digits else "right")
    for row in found.rows:
        words, numbers = row[: found.words], row[found.words :]
        shown = (cell.padded(part.digits).replace(" to ", ",") for cell in numbers)  # an interval of differences
        table.add_row(*(cell.text for cell in words), *shown)
    return table


def _markdown(results: Sequence[Result]) -> Iterator[str]:
    yield from (f"**{cells.escaped(title(results))}.** {' '.join(MEANING)}", "")
    for part in _parts(results):
        yield from markdown.table(part.table)
    yield from (*(f"- {cells.escaped(note)}" for note in notes(results)), "")
