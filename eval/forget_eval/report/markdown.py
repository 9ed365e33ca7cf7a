"""Reports in Markdown: the table for a README, and the twin of the page."""

from collections.abc import Iterator, Mapping, Sequence

from forget_eval.report import cells
from forget_eval.report.contents import Section
from forget_eval.report.results import Result
from forget_eval.report.tables import Table


def render(groups: Sequence[Sequence[Result]]) -> str:
    """The report as Markdown: a table for each dataset, with two lines a system."""
    return "\n".join(_section(group) for group in groups)


def twin(groups: Sequence[tuple[str, Sequence[Section]]], pictures: Mapping[tuple[int, str], str]) -> str:
    """All that the page says but for single cases, as Markdown.

    Args:
        groups: title and sections of each.
        pictures: paths of plots by the number of their group and their name; without one a plot is left out.
    """
    lines = ["# Report on forgetting", ""]
    for number, (title, sections) in enumerate(groups):
        lines += [f"## {cells.escaped(title)}", ""]
        for section in sections:
            lines += _lines(number, section, pictures)
    return "\n".join(lines)


def _lines(number: int, section: Section, pictures: Mapping[tuple[int, str], str]) -> Iterator[str]:
    yield from (f"### {section.title}", "")
    if section.text:
        yield from (cells.escaped(section.text), "")
    for each in section.tables:
        yield from table(each)
    for plot in section.plots:
        if path := pictures.get((number, plot.name)):
            yield from (f"![{cells.escaped(plot.caption)}]({path})", "")
        yield from (cells.escaped(plot.caption), "")
    if section.notes:
        yield from (*(f"- {cells.escaped(note)}" for note in section.notes), "")


def table(found: Table) -> Iterator[str]:
    """The lines of a table, below its title."""
    if found.title:
        yield from (f"**{cells.escaped(found.title)}**", "")
    yield cells.markdown_row([cells.escaped(column) for column in found.columns])
    yield cells.markdown_row(["---"] * found.words + ["---:"] * (len(found.columns) - found.words))
    yield from (cells.markdown_row([cells.escaped(cell.padded()) for cell in row]) for row in found.rows)
    yield ""


def _section(results: Sequence[Result]) -> str:
    headings = ["system", "rate", *cells.COLUMNS, "n/a", "error"]
    lines = [
        f"**{cells.title(results)}.** Passed, % [95% interval]",
        "",
        cells.markdown_row(headings),
        cells.markdown_row(["---"] * len(headings)),
    ]
    for result in results:
        for metric in cells.METRICS:
            name = cells.escaped(result.label) if metric == "strict" else ""
            lines.append(cells.markdown_row([name, metric, *(cell.strip() for cell in cells.headline(result, metric))]))
    meaning = "; ".join(f"{metric}: {what}" for metric, what in cells.METRICS.items())
    return "\n".join([*lines, "", f"- {meaning}.", *(f"- {cells.escaped(note)}" for note in cells.notes(results)), ""])
