"""The summary over repeats as a table for the terminal: 100 columns, legible without colour."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from forget_eval.report import console
from forget_eval.report.membehave import FURTHER, MAIN

SHOWN = 10
_NOTES = (
    "Intervals are for cases and repeats. On the right, standard deviations in points (method of moments):",
    "between cases (within templates), between whole repeats, and of one case from repeat to repeat.",
)


def print_repeats(summary: Mapping[str, Any]) -> None:
    """Prints the summary over the repeats of a system, as `repeats.summarise` gives it."""
    out = console.console()
    out.print(Text(f"{summary['adapter']}, {summary['repeats']} repeats: % [95% interval]", style="bold"))
    table = console.table()
    for heading, width in (("", 21), ("", 13), ("n", 5), ("value", 16), ("of each repeat", 16)):
        table.add_column(heading, width=width, justify="right" if heading == "n" else "left", overflow="fold")
    for heading in ("disagree", "cases", "repeats", "noise"):
        table.add_column(heading, width=max(6, len(heading)), justify="right")
    for row in _rows(summary):
        table.add_row(*row)
    out.print(table)
    for metric, ids in summary["disagree"].items():
        if ids and metric in ("spec", "strict", "selective_forgetting"):
            more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
            out.print(Text(f"Not alike in all repeats, {metric}: {', '.join(ids[:SHOWN])}{more}"))
    for note in _NOTES:
        out.print(Text(note))


def _rows(summary: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    names = {"strict": "strict rate", "spec": "spec rate"} if "rates" in summary else {**MAIN, **FURTHER}
    found = summary.get("rates") or summary["metrics"]
    for metric, name in names.items():
        for i, (place, one) in enumerate(found[metric].items()):
            if one["value"] is None:
                continue
            scale = 1 if metric == "resurfaced" else 100
            parts = one["components"]
            deviations = (f"{scale * parts[part] ** 0.5:.1f}" for part in ("cases", "repeats", "noise"))
            each = " ".join(f"{scale * value:.0f}" for value in one["each"])
            interval = f"{scale * one['value']:.1f} [{scale * one['low']:.0f}–{scale * one['high']:.0f}]"
            yield "" if i else name, place, str(one["n"]), interval, each, str(one["disagree"]), *deviations
