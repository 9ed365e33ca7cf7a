"""What stands in the tables, as text: the same for every format."""

from collections.abc import Iterable, Mapping, Sequence
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
_CONTROLS = "forget_eval.adapters.controls:"  # the classes of the controls, which need no description


def rate(found: Mapping[str, Any], places: int = 0) -> str:
    """A rate in percent with its interval, as " 98 [90–100]".

    A rate that is not 100 is not rounded to 100, nor one that is not 0 to 0.

    Args:
        found: value, low, high, n and passed.
        places: decimal places of the value.
    """
    if found["value"] is None:
        return "  –"
    value = f"{_percent(found, places):>{places + 3}}"
    return f"{value} [{_round(found['low'])}–{_round(found['high'])}]"


def headline(result: Result, metric: str) -> list[str]:
    """Overall and family rates of a run, then how many cases were not applicable and how many broke."""
    rates, statuses = result.summary["rates"][metric], result.summary["statuses"][metric]
    families = [rate(rates[family]) for family in FAMILIES]
    return [rate(rates["overall"], 1), *families, str(statuses["n/a"]), str(statuses["error"])]


def title(results: Sequence[Result]) -> str:
    """What was run, in one line."""
    dataset, k = results[0].manifest["dataset"], results[0].manifest["k"]
    parts = [f"ForgetEval, config {dataset['config']}", f"{dataset['n']} cases"]
    if dataset["config"] != "handmade" and (parameters := dataset["parameters"]):
        parts += [
            f"{parameters.get('n_per_family')} a family",
            f"{parameters.get('distractors')} distractors",
            f"seed {parameters.get('seed')}",
        ]
    return " · ".join([*parts, f"k = {k}"])


def notes(results: Sequence[Result]) -> list[str]:
    """What a reader must know to read the rates: the store against k, embedders, who does what, what broke."""
    systems = [*filter(None, map(_system, results)), *filter(None, map(_residue, results))]
    return [*_store(results), *_embedders(results), *systems, *_troubles(results)]


def _percent(found: Mapping[str, Any], places: int) -> str:
    if found["passed"] in (0, found["n"]):
        return str(_round(found["value"]))
    step = 10**-places
    return f"{min(max(100 * found['value'], step), 100 - step):.{places}f}"


def _round(share: float) -> int:
    return round(100 * share)


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
