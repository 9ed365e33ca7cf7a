"""The table of a report in Markdown, for a README."""

from collections.abc import Sequence

from forget_eval.report import cells
from forget_eval.report.results import Result


def render(groups: Sequence[Sequence[Result]]) -> str:
    """The report as Markdown: a table for each dataset, with two lines a system."""
    return "\n".join(_section(group) for group in groups)


def _section(results: Sequence[Result]) -> str:
    headings = ["system", "rate", *cells.COLUMNS, "n/a", "error"]
    lines = [f"**{cells.title(results)}.** Passed, % [95% interval]", "", _row(headings), _row(["---"] * len(headings))]
    for result in results:
        for metric in cells.METRICS:
            name = _escape(result.label) if metric == "strict" else ""
            lines.append(_row([name, metric, *(cell.strip() for cell in cells.headline(result, metric))]))
    meaning = "; ".join(f"{metric}: {what}" for metric, what in cells.METRICS.items())
    return "\n".join([*lines, "", f"- {meaning}.", *(f"- {_escape(note)}" for note in cells.notes(results)), ""])


def _row(entries: Sequence[str]) -> str:
    return f"| {' | '.join(entries)} |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
