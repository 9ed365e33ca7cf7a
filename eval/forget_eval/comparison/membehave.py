"""Two runs of MemBehave, paired on items: means of their differences, bootstrapped by target."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forget_datasets.rows import LEVELS
from forget_eval import scores
from forget_eval.bootstrap import Interval, difference_interval, smallest_mean
from forget_eval.comparison.pairs import Named, Pair, chosen, require_same_rows
from forget_eval.membehave.scores import SCHEMA
from forget_eval.scoring.membehave import METRICS

PLACES = ("all", *LEVELS)


@dataclass(frozen=True, slots=True)
class Cell:
    """Two runs compared on the `n` items of one place where both have a value; `excluded` is where one has none.

    Attributes:
        first, second: the means of the two runs over these items; None without items.
        difference, low, high: of second minus first, and its 95% interval.
        higher: ids of items whose value is larger in the second run, in the order of the dataset.
        lower: ids of items whose value is smaller.
        smallest: the smallest true difference that would have been found with 80% power; None where nothing varies.
    """

    n: int
    excluded: int
    first: float | None
    second: float | None
    difference: float | None
    low: float
    high: float
    higher: tuple[str, ...]
    lower: tuple[str, ...]
    smallest: float | None


@dataclass(frozen=True, slots=True)
class Value:
    """What an item scores under a metric, and the clusters that it belongs to."""

    level: str
    target: str
    triplet: str
    value: float | None


def pairs(named: Sequence[Named], all_pairs: bool, bounds: Mapping[str, float]) -> tuple[Pair[Cell], ...]:
    """Compares runs by their labels and folders, each with the first or all with each other.

    Args:
        named: label and folder of each run.
        all_pairs: whether each is compared with every other one.
        bounds: the largest value that each metric can have.

    Raises:
        UserError: the scores of a run are not those of the dataset that the other has.
    """
    values = {folder: {m: _values(folder, m) for m in METRICS} for _, folder in named}
    require_same_rows(values, "items")
    return tuple(
        Pair(a, b, {m: compare(values[first][m], values[second][m], bounds[m]) for m in METRICS})
        for (a, first), (b, second) in chosen(named, all_pairs)
    )


def compare(first: Mapping[str, Value], second: Mapping[str, Value], bound: float = 1.0) -> dict[str, Cell]:
    """Two runs under one metric: a cell for `all` and every level.

    Args:
        first, second: the value of each item, by id; both have the same items.
        bound: the largest value that the metric can have.
    """
    cells = {}
    for place in PLACES:
        items = [item for item, v in first.items() if place in ("all", v.level)]
        cells[place] = _cell(items, first, second, bound, ("target", "triplet") if place == "all" else ("target",))
    return cells


def _cell(
    items: Sequence[str],
    first: Mapping[str, Value],
    second: Mapping[str, Value],
    bound: float,
    clusterings: Sequence[str],
) -> Cell:
    known = {
        item: (a, b) for item in items if (a := first[item].value) is not None and (b := second[item].value) is not None
    }
    changes = {item: b - a for item, (a, b) in known.items()}
    clusters = [[getattr(first[item], name) for item in known] for name in clusterings]
    found = _widest(list(changes.values()), clusters, bound)
    smallest = [s for ids in clusters if (s := smallest_mean(list(changes.values()), ids)) is not None]
    return Cell(
        n=len(known),
        excluded=len(items) - len(known),
        first=_mean([a for a, _ in known.values()]),
        second=_mean([b for _, b in known.values()]),
        difference=found.value,
        low=found.low,
        high=found.high,
        higher=tuple(item for item, change in changes.items() if change > 0),
        lower=tuple(item for item, change in changes.items() if change < 0),
        smallest=max(smallest, default=None),
    )


def _widest(changes: Sequence[float], clusters: Sequence[Sequence[Hashable]], bound: float) -> Interval:
    found = [difference_interval(changes, ids, bound=bound) for ids in clusters]
    return max(found, key=lambda interval: interval.high - interval.low)


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 12) if values else None


def _values(folder: Path, metric: str) -> dict[str, Value]:
    rows = scores.read_scores(folder, ("item", "level", "target", "triplet", "value"), metric, SCHEMA)
    return {row["item"]: Value(row["level"], row["target"], row["triplet"], row["value"]) for row in rows}
