"""What a whole report says, section by section: the page and its Markdown twin are two ways to write this down."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from forget_eval import plots
from forget_eval.report import cells, frames, tables
from forget_eval.report import membehave as membehave_report
from forget_eval.report.groups import Group
from forget_eval.report.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plot:
    """A figure; `name` is that of its file, `caption` says what is to be seen."""

    name: str
    caption: str
    figure: "Figure"


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        name: by which it is linked to, unique within its group.
        notes: sentences, shown as a list.
        folded: whether the tables say again what a plot shows, and may stay closed until they are asked for.
    """

    name: str
    title: str
    text: str = ""
    notes: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    folded: bool = False


def title(group: Group) -> str:
    """The dataset in one line."""
    if group.task == "forgeteval":
        return cells.title(group.results)  # type: ignore[arg-type]
    return membehave_report.title(group.results)  # type: ignore[arg-type]


def sections(group: Group) -> list[Section]:
    """The sections of a group in their order. The failure explorer, which only a page can have, is none of them."""
    found = _forgeteval(group) if group.task == "forgeteval" else _membehave(group)
    return [*found, *_about(group)]


@cache
def words(task: str) -> Mapping[str, Any]:
    """What the sections of a task say."""
    found: Mapping[str, Any] = tomllib.loads((files(__package__) / "contents.toml").read_text(encoding="utf-8"))[task]
    return found


def _forgeteval(group: Group) -> Iterator[Section]:
    say, rates = words(group.task), frames.rates(group)
    notes = tuple(cells.notes(group.results))  # type: ignore[arg-type]
    shown = (Plot("rates", say["rates"], plots.rates(rates)),)
    yield Section("summary", "Summary", say["reading"], notes, shown, (tables.headline(group),))
    if frames.places(rates):
        heat = (Plot("templates", say["templates"], plots.heatmap(rates)),)
        yield Section("templates", "Templates", plots=heat, tables=(tables.templates(group),), folded=True)
    stacked = (Plot("reasons", say["reasons"], plots.reasons(frames.reasons(group))),)
    yield Section("reasons", "Reasons", plots=stacked, tables=(tables.reasons(group),), folded=True)


def _membehave(group: Group) -> Iterator[Section]:
    say, rates = words(group.task), frames.rates(group)
    notes = tuple(membehave_report.notes(group.results))  # type: ignore[arg-type]
    further = tables.further(group)
    shown = (Plot("tradeoff", say["rates"], plots.tradeoff(rates)),)
    found = (tables.headline(group), *([further] if further else []))
    yield Section("summary", "Summary", say["reading"], notes, shown, found)
    paired = (Plot("levels", say["levels"], plots.levels(frames.items(group), rates)),)
    yield Section("levels", "Levels", say["differences"], (), paired, (tables.differences(group),), folded=True)
    yield Section("reasons", "Endings", say["reasons"], tables=(tables.reasons(group),))


def _about(group: Group) -> Iterator[Section]:
    say, spent = words(group.task), frames.latency(group)
    if len(spent):
        slow = (Plot("latency", say["latency"], plots.latency(spent)),)
        yield Section("latency", "Latency", plots=slow, tables=(tables.latency(group),), folded=True)
    if told := tables.controls(group, say["control"]):
        yield Section("controls", "Controls", say["controls"], tables=(told,))
    yield Section("runs", "What was run", tables=(tables.common(group), *tables.apart(group)))
