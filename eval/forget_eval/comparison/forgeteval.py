"""Two runs of ForgetEval, paired on cases. What is not applicable, broke or was not run has not passed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from forget_datasets.rows import FAMILIES
from forget_eval import scores
from forget_eval.comparison.pairs import Named, Pair, chosen, require_same_rows
from forget_eval.paired import holm, mcnemar, paired_difference, smallest_difference
from forget_eval.scoring.forgeteval import METRICS

PLACES = ("overall", *FAMILIES)


@dataclass(frozen=True, slots=True)
class Cell:
    """Two runs compared on the `n` cases of one place.

    Attributes:
        first, second: the rates of the two runs; None without cases.
        difference, low, high: of second minus first, and its 95% interval.
        gained: ids of cases that pass in the second run alone, in the order of the dataset.
        lost: ids of cases that pass in the first run alone.
        p: of McNemar's exact test; None without cases.
        p_holm: adjusted by Holm's method.
        smallest: the smallest true difference that would have been found with 80% power; None if none would.
    """

    n: int
    first: float | None
    second: float | None
    difference: float | None
    low: float
    high: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    p: float | None
    p_holm: float | None
    smallest: float | None


Outcome = tuple[str, str, bool]
"""Family, template, and whether the case passed."""


def pairs(named: Sequence[Named], all_pairs: bool) -> tuple[Pair[Cell], ...]:
    """Compares runs by their labels and folders, each with the first or all with each other.

    Raises:
        UserError: the scores of a run are not those of the dataset that the other has.
    """
    outcomes = {folder: {m: _outcomes(folder, m) for m in METRICS} for _, folder in named}
    require_same_rows(outcomes, "cases")
    found = [
        Pair(a, b, {m: compare(outcomes[first][m], outcomes[second][m]) for m in METRICS})
        for (a, first), (b, second) in chosen(named, all_pairs)
    ]
    for metric in METRICS:
        _adjust([(pair.metrics[metric], "overall") for pair in found])
    return tuple(found)


def compare(first: Mapping[str, Outcome], second: Mapping[str, Outcome]) -> dict[str, Cell]:
    """Two runs under one metric: a cell for `overall` and every family; `overall` is not adjusted.

    Args:
        first, second: what became of each case, by id; both have the same cases.
    """
    cells = {"overall": _cell(list(first), first, second)}
    for family in FAMILIES:
        cells[family] = _cell([case for case, (of, _, _) in first.items() if of == family], first, second)
    _adjust([(cells, family) for family in FAMILIES])
    return cells


def _cell(cases: Sequence[str], first: Mapping[str, Outcome], second: Mapping[str, Outcome]) -> Cell:
    n = len(cases)
    gained = tuple(case for case in cases if second[case][2] and not first[case][2])
    lost = tuple(case for case in cases if first[case][2] and not second[case][2])
    found = paired_difference(list(_strata(cases, first, set(gained), set(lost))))
    both = sum(first[case][2] and second[case][2] for case in cases)
    return Cell(
        n=n,
        first=_share(both + len(lost), n),
        second=_share(both + len(gained), n),
        difference=found.value,
        low=found.low,
        high=found.high,
        gained=gained,
        lost=lost,
        p=mcnemar(len(gained), len(lost)) if n else None,
        p_holm=None,
        smallest=smallest_difference(n, (len(gained) + len(lost)) / n) if n else None,
    )


def _strata(
    cases: Sequence[str], outcomes: Mapping[str, Outcome], gained: set[str], lost: set[str]
) -> Iterator[tuple[int, int, int]]:
    """(gained, lost, n) of each template."""
    templates: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        templates.setdefault(outcomes[case][:2], []).append(case)
    for found in templates.values():
        yield len(gained.intersection(found)), len(lost.intersection(found)), len(found)


def _adjust(places: Sequence[tuple[dict[str, Cell], str]]) -> None:
    """Fills in `p_holm` of cells whose tests belong together."""
    tested = [(cells, place, p) for cells, place in places if (p := cells[place].p) is not None]
    for (cells, place, _), adjusted in zip(tested, holm([p for _, _, p in tested]), strict=True):
        cells[place] = replace(cells[place], p_holm=adjusted)


def _outcomes(folder: Path, metric: str) -> dict[str, Outcome]:
    rows = scores.read_scores(folder, ("case", "family", "template", "status"), metric)
    return {row["case"]: (row["family"], row["template"], row["status"] == "pass") for row in rows}


def _share(passed: int, n: int) -> float | None:
    return round(passed / n, 12) if n else None
