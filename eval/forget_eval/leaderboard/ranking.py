"""Runs of one dataset, ranked: nobody stands above somebody else whose interval reaches as far."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forget_datasets.errors import UserError
from forget_eval.leaderboard.rows import HEADLINE, Row
from forget_eval.report import labels
from forget_eval.report.results import printable


@dataclass(frozen=True)
class Entry:
    """A run on a board.

    Attributes:
        label: the system's name, made unique on the board, and printable.
        row: its summary.
        ranks: the best and the worst rank that its interval leaves open; None for a control, which is told the
            answers, and where nothing was measured.
    """

    label: str
    row: Row
    ranks: tuple[int, int] | None

    @property
    def rank(self) -> str:
        """The rank, or the range of ranks, as text; empty without one."""
        if self.ranks is None:
            return ""
        best, worst = self.ranks
        return str(best) if best == worst else f"{best}–{worst}"

    @property
    def control(self) -> bool:
        """Whether the system was told the case."""
        return bool(self.row["told_the_case"])

    @property
    def rates(self) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """All rates by metric and place."""
        return {(rate["metric"], rate["place"]): rate for rate in self.row["rates"]}


@dataclass(frozen=True)
class Board:
    """The runs on one content hash: ranked ones best first, then those without a value, controls last."""

    task: str
    config: str
    content_hash: str
    entries: tuple[Entry, ...]

    @property
    def metric(self) -> str:
        """What it is ranked by."""
        return HEADLINE[self.task][0]

    @property
    def name(self) -> str:
        """Names its files."""
        return re.sub(r"[^\w-]+", "-", f"{self.task}-{self.config}-{self.content_hash[:12]}", flags=re.ASCII)


def boards(rows: Iterable[Row]) -> list[Board]:
    """A board for each task, config and content hash, ForgetEval first.

    Raises:
        UserError: a task that this version does not know.
    """
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row["task"] not in HEADLINE:
            raise UserError(f"a run of the task '{row['task']}', which this version does not know. Upgrade it.")
        groups.setdefault((row["task"], row["dataset_config"], row["dataset_hash"]), []).append(row)
    return [Board(*key, entries=_entries(groups[key])) for key in sorted(groups)]


def require_one_hash(found: Sequence[Board]) -> None:
    """Raises UserError if boards of one task and config are of different rows."""
    by_config: dict[tuple[str, str], Board] = {}
    for board in found:
        other = by_config.setdefault((board.task, board.config), board)
        if other is not board:
            stated = ", and ".join(
                f"{each.content_hash} for {', '.join(entry.label for entry in each.entries[:3])}"
                f"{' and others' if len(each.entries) > 3 else ''}"
                for each in (other, board)
            )
            raise UserError(
                f"runs of {board.task}, config {board.config}, are of different rows and cannot be ranked together. "
                f"Content hashes: {stated}.\n    Choose one with --dataset {other.content_hash[:12]}, or run them all "
                "on one release."
            )


def of_hash(found: Sequence[Board], prefix: str) -> list[Board]:
    """The boards whose content hash begins so. Raises UserError if there are none."""
    chosen = [board for board in found if board.content_hash.startswith(prefix.lower())]
    if not chosen or not prefix:
        known = ", ".join(f"{board.content_hash[:12]} ({board.task}, {board.config})" for board in found)
        raise UserError(f"no run is on a dataset whose content hash begins with '{prefix}'. There are: {known}.")
    return chosen


def ranks(intervals: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    """The best and the worst rank of each interval (low, high), where high is good.

    One stands surely above another if its whole interval does. Its best rank is one more than there are surely above
    it, its worst the number of all less those surely below.
    """
    found = []
    for low, high in intervals:
        above = sum(other > high for other, _ in intervals)
        below = sum(other < low for _, other in intervals)
        found.append((above + 1, len(intervals) - below))
    return found


def _entries(rows: Sequence[Row]) -> tuple[Entry, ...]:
    names = _labels(rows)
    ordered = sorted(rows, key=lambda row: (bool(row["told_the_case"]), *_standing(row), names[row["run_id"]]))
    ranked = [row for row in ordered if not row["told_the_case"] and _is_known(row)]
    places = ranks([(row["low"], row["high"]) for row in ranked])
    by_id = {row["run_id"]: place for row, place in zip(ranked, places, strict=True)}
    return tuple(Entry(names[row["run_id"]], row, by_id.get(row["run_id"])) for row in ordered)


def _standing(row: Row) -> tuple[float, float]:
    """Sorts the best first, and last what has no value."""
    return (-row["value"], -row["low"]) if _is_known(row) else (1.0, 0.0)


def _is_known(row: Row) -> bool:
    return all(row[name] is not None and row[name] == row[name] for name in ("value", "low", "high"))


def _labels(rows: Sequence[Row]) -> dict[str, str]:
    named = [
        labels.Named(printable(labels.starred(row["system"], row["policy"])), printable(row["run"]), row["run_id"])
        for row in rows
    ]
    return dict(zip((row["run_id"] for row in rows), labels.unique(named), strict=True))
