"""Which runs are compared with which, and what a comparison of two holds: the same for either task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Generic, TypeVar

from forget_datasets.errors import UserError

Cell = TypeVar("Cell")
Named = tuple[str, Path]
"""Label and folder of a run."""


@dataclass(frozen=True)
class Pair(Generic[Cell]):
    """Two runs by their labels, and for each metric a cell for all rows and for each part of them."""

    first: str
    second: str
    metrics: dict[str, dict[str, Cell]]


def chosen(named: Sequence[Named], all_pairs: bool) -> list[tuple[Named, Named]]:
    """Each run with the first one, or all with each other."""
    return list(combinations(named, 2)) if all_pairs else [(named[0], other) for other in named[1:]]


def require_same_rows(found: Mapping[Path, Mapping[str, Mapping[str, Any]]], rows: str) -> None:
    """Raises UserError if runs have scores of unlike rows.

    Args:
        found: by run and metric what became of each row, by id.
        rows: what the task calls them, such as "cases".
    """
    (first, reference), *others = found.items()
    for folder, metrics in others:
        for metric, known in metrics.items():
            if odd := known.keys() ^ reference[metric].keys():
                raise UserError(
                    f"the scores of {first} and {folder} are not of the same {rows}: one lacks '{min(odd)}'. Score both"
                    f" again: forget-eval score {first} {folder}"
                )
