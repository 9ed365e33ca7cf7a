"""The tables of a whole report, whatever they are written in."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forget_datasets.rows import FAMILIES, LEVELS
from forget_datasets.verdicts import Reason
from forget_eval.membehave.disclosure import Label
from forget_eval.report import cells, frames
from forget_eval.report.cells import NOTHING, Cell, share
from forget_eval.report.groups import Group
from forget_eval.report.membehave import FURTHER, MAIN
from forget_eval.report.results import Scored
from forget_eval.scoring.membehave import PAIRS, STATUSES


@dataclass(frozen=True)
class Table:
    """A table. A row whose first cell is empty goes on with the row above.

    Attributes:
        words: how many columns, from the left, hold words; the others hold numbers.
        pairs: whether several rows belong together, of which the first counts more.
        folded: whether a page shows it only when asked to.
        rules: the rows above which a line stands, since the controls begin there.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: int = 1
    pairs: bool = False
    folded: bool = False
    rules: frozenset[int] = frozenset()


def headline(group: Group) -> Table:
    """Systems by families with both rates; of MemBehave systems by levels with the main metrics."""
    if group.task == "membehave":
        return _by_place(group, "", "level", MAIN, ("all", *LEVELS))
    rows = []
    for result in group.results:
        for metric in cells.METRICS:
            found, statuses = result.summary["rates"][metric], result.summary["statuses"][metric]
            rates = [share(found["overall"], 1), *(share(found[family]) for family in FAMILIES)]
            counts = [Cell(str(statuses[ending])) for ending in ("n/a", "error")]
            rows.append((_name(result, metric == "strict"), Cell(metric), *rates, *counts))
    columns = ("system", "rate", *cells.COLUMNS, "n/a", "error")
    return Table("", columns, tuple(rows), 2, True, rules=_rules(group, len(cells.METRICS)))


def templates(group: Group) -> Table:
    """Templates by systems: the strict rate."""
    systems = [result.label for result in group.results]
    rows = []
    for place in frames.places(frames.rates(group)):
        rates = [share(result.summary["templates"]["strict"][place]) for result in group.results]
        rows.append((Cell(place.replace("__", " · ")), *rates))
    return Table("", ("template", *systems), tuple(rows))


def reasons(group: Group) -> Table:
    """How many cases failed for each reason; of MemBehave how items ended and what was answered afterwards."""
    rows = []
    for result in group.results:
        if group.task == "membehave":
            labels = getattr(result, "labels", {})
            counts = [*(result.summary["statuses"][s] for s in STATUSES), *(labels[name] for name in Label)]
        else:
            statuses = result.summary["statuses"]["strict"]
            counts = [*(result.summary["reasons"][r.value] for r in Reason), *(statuses[e] for e in frames.ENDINGS)]
        rows.append((_name(result), *(Cell(str(n)) for n in counts)))
    ends = (*STATUSES, *Label) if group.task == "membehave" else (*Reason, *frames.ENDINGS)
    return Table("", ("system", *map(str, ends)), tuple(rows), 1, rules=_rules(group))


def differences(group: Group) -> Table:
    """Differences between levels within triplets."""
    metrics = {metric: name for metric, name in MAIN.items() if metric != "baseline_recall_target"}
    return _by_place(group, "", "levels", metrics, [f"{more}-{less}" for more, less in PAIRS], signed=True)


def further(group: Group) -> Table | None:
    """The metrics of further probes over all levels, where any item has them."""
    known = {m: n for m, n in FURTHER.items() if any(r.summary["metrics"][m]["all"]["n"] for r in group.results)}
    return _by_place(group, "Further probes", "level", known, ("all",)) if known else None


def exclusions(group: Group) -> Table:
    """How many items of MemBehave each metric excludes."""
    rows = [
        (_name(result), *(Cell(str(result.summary["excluded"][metric])) for metric in MAIN)) for result in group.results
    ]
    return Table("", ("system", *MAIN.values()), tuple(rows), 1, rules=_rules(group))


def latency(group: Group) -> Table:
    """Median and 95th percentile of each operation in milliseconds; workers side by side take longer for each."""
    frame = frames.latency(group)
    operations = list(dict.fromkeys(frame["operation"])) if len(frame) else []
    workers = [result.manifest.get("played", {}).get("workers", 1) for result in group.results]
    shown = ("workers",) if max(workers) > 1 else ()
    rows = []
    for result, count in zip(group.results, workers, strict=True):
        entries = [Cell(str(count))] * len(shown)
        for operation in operations:
            found = frame[(frame["system"] == result.label) & (frame["operation"] == operation)]["seconds"]
            entries.append(_milliseconds(1000 * found.to_numpy()))
        rows.append((_name(result), *entries))
    return Table("", ("system", *shown, *operations), tuple(rows), 1, rules=_rules(group))


def controls(group: Group, known: Mapping[str, Sequence[Any]]) -> Table | None:
    """What each control does, should score and scores; None without controls.

    Args:
        group: of runs.
        known: by the control's name what it does, then the rates that it must have, -1 where none is fixed.
    """
    metrics = ("strict",) if group.task == "forgeteval" else ("attributed_coverage", "ripple_survival")
    rows = []
    for result in group.results:
        if (name := result.manifest["adapter"]["name"]) not in known or not result.control:
            continue
        does, *wanted = known[name]
        entries: list[Cell] = []
        for metric, must in zip(metrics, wanted, strict=True):
            found = _found(group, result, metric)
            right = must < 0 or found["value"] is None or found["value"] == must
            entries += [Cell("any" if must < 0 else f"{100 * must}"), share(found), Cell("yes" if right else "NO")]
        rows.append((_name(result), Cell(does), *entries))
    headings = [h for m in metrics for h in (f"{m.replace('_', ' ')} should be", "is", "as it should")]
    return Table("", ("control", "what it does", *headings), tuple(rows), 2) if rows else None


def common(group: Group) -> Table:
    """What all runs have in common, field by field."""
    described = [_described(group, result) for result in group.results]
    rows = [_pair(name, value) for name, value in described[0].items() if _same(described, name)]
    return Table("The same for all" if len(described) > 1 else "", ("", "value"), tuple(rows), 2)


def apart(group: Group) -> list[Table]:
    """In what each run differs from the others, one table a system; none if there is only one."""
    described = [_described(group, result) for result in group.results]
    return [
        Table(
            result.label,
            ("", "value"),
            tuple(_pair(n, v) for n, v in own.items() if not _same(described, n)),
            2,
            folded=True,
        )
        for result, own in zip(group.results, described, strict=True)
        if len(described) > 1
    ]


def _pair(name: str, value: str) -> tuple[Cell, Cell]:
    return Cell(name), Cell(value)


def _by_place(
    group: Group, title: str, heading: str, metrics: Mapping[str, str], places: Sequence[str], signed: bool = False
) -> Table:
    part = "paired" if signed else "metrics"
    rows: list[tuple[Cell, ...]] = []
    rules = set[int]()
    for result in group.results:
        found = [(Cell(place), *(_entry(result, part, metric, place) for metric in metrics)) for place in places]
        if result.control and len({tuple(cell.text for cell in row[1:]) for row in found}) == 1:
            found = found[:1]  # by construction its levels are alike
        if result.control and rows and not rules:
            rules.add(len(rows))
        rows += [(_name(result, i == 0), *row) for i, row in enumerate(found)]
    return Table(title, ("system", heading, *metrics.values()), tuple(rows), 2, True, rules=frozenset(rules))


def _entry(result: Scored, part: str, metric: str, place: str) -> Cell:
    if part == "paired":
        return share(result.summary[part][place][metric], signed=True)
    found = result.summary[part][metric][place]
    return _count(found) if metric == "resurfaced" else share(found)


def _count(found: Mapping[str, Any]) -> Cell:
    if found["value"] is None:
        return Cell(NOTHING)
    return Cell(f"{found['value']:.2f}", f"{found['low']:.2f}–{found['high']:.2f}")


def _milliseconds(found: "np.ndarray[Any, Any]") -> Cell:
    if not len(found):
        return Cell(NOTHING)
    middle, high = (float(np.quantile(found, q)) for q in (0.5, 0.95))
    return Cell(f"{middle:.3g}", f"to {high:.3g}")


def _name(result: Scored, shown: bool = True) -> Cell:
    return Cell(result.label if shown else "")


def _rules(group: Group, rows: int = 1) -> frozenset[int]:
    first = next((i for i, result in enumerate(group.results) if result.control), 0)
    return frozenset({first * rows} if first else ())


def _found(group: Group, result: Scored, metric: str) -> dict[str, Any]:
    found: dict[str, Any] = (
        result.summary["rates"][metric]["overall"]
        if group.task == "forgeteval"
        else result.summary["metrics"][metric]["all"]
    )
    return found


def _same(described: Iterable[Mapping[str, str]], name: str) -> bool:
    return len({d.get(name) for d in described}) == 1


def _described(group: Group, result: Scored) -> dict[str, str]:
    """What a reader may ask of a run, as words, from its manifest."""
    m = result.manifest
    adapter, dataset, embedder = m["adapter"], m["dataset"], m["embedder"] or {}
    settings = m.get("assistant", {})
    packages = m.get("packages", {})
    found = {
        "dataset": f"{group.task}, config {dataset['config']}, {dataset['n']} rows",
        "content hash": dataset["content_hash"],
        "built with": _pairs(dataset["parameters"]),
        "seeds": _pairs(m.get("seeds", {})),
        "k": str(m["k"]) if group.task == "forgeteval" else _pairs(settings.get("recall", {})),
        "adapter": adapter["class"],
        "package": _joined(adapter["distribution"], adapter["version"]),
        "configuration": _pairs(adapter.get("configuration") or {}),
        "operations": "; ".join(f"{op} {_how(how)}" for op, how in adapter["operations"].items()),
        "embedder": str(embedder.get("name") or NOTHING),
        "embedder weights": str(embedder.get("weights_sha256") or NOTHING),
        "embedder settings": str(embedder.get("settings") or NOTHING),
        "answerer": str(settings.get("answerer", "")),
        "forget policy": str(settings.get("forget_policy", "")),
        "chat model": _pairs(settings.get("model") or {}),
        "started": str(m.get("started", NOTHING)),
        "played": _pairs(m.get("played", {})),
        "packages": _pairs({n: v for n, v in packages.items() if n != adapter["distribution"]}),
        "python": str(m.get("python", NOTHING)),
        "platform": _pairs(m.get("platform", {})),
        "git": _pairs(m.get("git") or {}),
        "run": str(m["run"]),
        "transcripts": f"{result.summary['transcripts']['n']}, sha256 {result.summary['transcripts']['sha256']}",
    }
    return {name: value for name, value in found.items() if value}


def _how(how: Mapping[str, str]) -> str:
    chooser = f", ids by {how['chooser']}" if how["chooser"] != "undeclared" else ""
    return f"{how['kind']}{chooser}"


def _joined(*parts: object) -> str:
    return " ".join(str(part) for part in parts if part) or NOTHING


def _pairs(found: Any) -> str:
    def plain(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

    if not isinstance(found, Mapping):
        return plain(found)
    return ", ".join(f"{name} {plain(value)}" for name, value in found.items())
