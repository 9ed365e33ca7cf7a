"""What stands in the tables, as text: the same for every format."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forget_datasets.rows import FAMILIES
from forget_eval import residue_notes
from forget_eval.report.results import Result

COLUMNS = ("overall", *FAMILIES)
METRICS = {
    "strict": "final question, survivors and leak probes",
    "spec": "final question alone",
}
"""The two rates, in the order in which they are shown, and what each judges."""
NOTHING = "–"
"""Where nothing was measured."""
_TASKS = {"forgeteval": ("ForgetEval", "cases"), "membehave": ("MemBehave: Forgetting", "items")}
_CONTROLS = "forget_eval.adapters.controls:"  # the classes of the controls, which need no description


@dataclass(frozen=True)
class Cell:
    """What stands in a cell: `text`, and behind it, less loud, its interval."""

    text: str
    interval: str = ""

    def padded(self, width: int = 0) -> str:
        """Both in one, with `text` at the right of so many columns: " 98 [90–100]"."""
        return f"{self.text:>{width}} [{self.interval}]" if self.interval else f"{self.text:>{width}}"


def share(found: Mapping[str, Any], places: int = 0, signed: bool = False) -> Cell:
    """A share in percent with its interval. What is not 100% is not rounded to 100, nor to 0 what is not 0.

    Args:
        found: value, low and high, from 0 to 1.
        places: decimal places of the value.
        signed: whether it is a difference, from -1 to 1, and shown with its sign.
    """
    if found["value"] is None:
        return Cell(NOTHING)
    value, low, high = (100 * found[name] for name in ("value", "low", "high"))
    if signed:
        return Cell(f"{round(value):+d}", f"{round(low):+d} to {round(high):+d}")
    step = 10**-places
    shown = f"{value:.0f}" if value in (0, 100) else f"{min(max(value, step), 100 - step):.{places}f}"
    return Cell(shown, f"{low:.0f}–{high:.0f}")


def rate(found: Mapping[str, Any], places: int = 0) -> str:
    """A share as text, with as much room before it as 100% needs."""
    cell = share(found, places)
    return cell.padded(places + 3) if cell.interval else cell.padded(3)


def headline(result: Result, metric: str) -> list[str]:
    """Overall and family rates of a run, then how many cases were not applicable and how many broke."""
    rates, statuses = result.summary["rates"][metric], result.summary["statuses"][metric]
    families = [rate(rates[family]) for family in FAMILIES]
    return [rate(rates["overall"], 1), *families, str(statuses["n/a"]), str(statuses["error"])]


def title(results: Sequence[Result]) -> str:
    """What was run, in one line."""
    dataset, k = results[0].manifest["dataset"], results[0].manifest["k"]
    parts = list[str]()
    if dataset["config"] != "handmade" and (parameters := dataset["parameters"]):
        parts = [
            f"{parameters.get('n_per_family')} a family",
            f"{parameters.get('distractors')} distractors",
            f"seed {parameters.get('seed')}",
        ]
    return heading("forgeteval", dataset["config"], dataset["n"], *parts, f"k = {k}")


def heading(task: str, config: str, n: int, *more: str) -> str:
    """A dataset in one line: its task, config and number of rows, and what more there is to say."""
    name, rows = _TASKS[task]
    return " · ".join([f"{name}, config {config}", f"{n} {rows}", *more])


def notes(results: Sequence[Result]) -> list[str]:
    """What a reader must know to read the rates: the store against k, embedders, who does what, what broke."""
    systems = [*filter(None, map(_system, results)), *filter(None, map(_residue, results))]
    return [*_store(results), *_embedders(results), *systems, *_troubles(results)]


def _store(results: Sequence[Result]) -> list[str]:
    stores = max((result.stores for result in results), key=len)
    if not stores:
        return []
    k = results[0].manifest["k"]
    held = sum(stores) / len(stores)
    covered = sum(store <= k for store in stores) / len(stores)
    line = f"Store: {held:.1f} texts told a case on average, new ones included; k = {k}."
    if covered:
        where = "In every case" if covered == 1 else f"In {100 * covered:.0f}% of cases"
        line += f" {where} k covers all of them: retrieval is bypassed, forgetting alone is tested."
    return [line]


def _embedders(results: Sequence[Result]) -> list[str]:
    users: dict[str, list[str]] = {}
    for result in results:
        if embedder := result.manifest["embedder"]:
            weights = embedder.get("weights_sha256")
            name = f"{embedder['name']} (weights {weights[:12]})" if weights else str(embedder["name"])
            users.setdefault(name, []).append(result.label)
    return [f"Embedder: {name} for {', '.join(labels)}." for name, labels in users.items()]


def _system(result: Result) -> str | None:
    adapter = result.manifest["adapter"]
    if adapter["class"].startswith(_CONTROLS):
        return None
    what = f" ({adapter['distribution']} {adapter['version']})" if adapter["distribution"] else ""
    by_kind: dict[str, list[str]] = {}
    for operation, how in adapter["operations"].items():
        ids = f", ids by {how['chooser']}" if how["chooser"] != "undeclared" else ""
        by_kind.setdefault(f"{how['kind']}{ids}", []).append(operation)
    done = "; ".join(f"{', '.join(operations)} {how}" for how, operations in by_kind.items())
    told = " It is told each case before it is asked." if result.control else ""
    return f"{result.label}{what}: {done or 'no operation of forgetting'}.{told}"


def _residue(result: Result) -> str | None:
    return residue_notes.note(result.folder, result.label)


def _troubles(results: Sequence[Result]) -> list[str]:
    lines = []
    for result in results:
        if result.lacking:
            ended = ", ".join(f"{operation} ({n} cases)" for operation, n in result.lacking.items())
            lines.append(f"{result.label} lacks: {ended}.")
        if result.first_error:
            lines.append(f"{result.label} broke, first in {result.first_error}")
        if unscored := result.summary["statuses"]["spec"]["unscored"]:
            lines.append(f"{result.label}: {unscored} cases have not been run; they count as not passed.")
    return lines


def markdown_row(entries: Iterable[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(entries)} |"


def escaped(text: str) -> str:
    """A text that Markdown shows as it is, on one line."""
    signs = text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
    return " ".join(signs.split())
