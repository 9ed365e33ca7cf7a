"""Goes over the items of MemBehave, one by one: checks each, tries the controls on it, and counts.

Build and validate share it, so a manifest says of the data what anyone can work out again from the Parquet.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from forget_datasets import schema
from forget_datasets.membehave.controls import CONTROLS, answers
from forget_datasets.membehave.metrics import Answers, measure, mentions, selective_forgetting, target_names
from forget_datasets.membehave.screening import check_item, check_triplet
from forget_datasets.rows import LEVELS, Item, canonical
from forget_datasets.tally import Mean, Range

CONFIGS = ("default", "extended")
"""The first is what the benchmark scores; the second has the same items with further probes."""

FURTHER = ("control", "confirm", "alias")
"""Probe families that only `extended` has."""

_METRICS = (
    "baseline_recall_target",
    "baseline_recall_ripple",
    "target_coverage",
    "attributed_coverage",
    "resurfaced",
    "ripple_survival",
    "selective_forgetting",
)
_FURTHER_METRICS = ("control_survival", "confirm_leak", "alias_coverage")

_MENTIONS_APART = 1.15
"""The target of a triplet that is named most often is named at most so many times as often as the one named least."""

_LANDINGS: Mapping[str, tuple[float, float | None, float | None]] = {
    "null": (0.0, None, None),
    "keep-all": (1.0, 1.0, 1.0),
    "wipe-all": (1.0, 0.0, 0.0),
    "redactor": (1.0, 0.0, 1.0),
    "oracle": (1.0, 0.0, 1.0),
}
"""Where a control must land: recall before the request, coverage after it, survival after it (None: excluded)."""

_FIRM = ("baseline_recall_target", "baseline_recall_ripple", "attributed_coverage", "resurfaced")
"""What the redactor, which reads names in messages, still reaches where the recorded graph is not what was told."""

Found = tuple[str, str]
"""A column, or "" for the row as a whole, and what is wrong."""


class Audits:
    """The audits of a dataset's configs, each made by its name, `default` first.

    Args:
        noise: of the recorded graph, as the manifest states it. Above 0 the graph is not what the messages tell, and
            what compares the two is left out.
    """

    def __init__(self, noise: float = 0.0) -> None:
        self._noise = noise
        self._items: dict[str, bytes] = {}

    def __call__(self, config: str) -> "Audit":
        return Audit(config, self._noise, self._items)


class Audit:
    """The items of one config. Those of a level come in the order of triplets, the levels together or in turn."""

    def __init__(self, config: str, noise: float, common: dict[str, bytes]) -> None:
        self._noise, self._common = noise, common
        self._extended = config != CONFIGS[0]
        self._levels = {level: _Level() for level in LEVELS}
        self._families: Counter[str] = Counter()
        self._rates: dict[tuple[str, str, str], Mean] = {}
        self._ids: set[str] = set()
        self._targets: set[str] = set()
        self._users: dict[str, bytes] = {}
        self._triplets: dict[str, list[_Member]] = {}
        self._places: dict[str, int] = {}
        self._next = dict.fromkeys(LEVELS, 0)
        self._ranges: dict[str, Range] = {}

    def add(self, row: Mapping[str, Any]) -> list[Found]:
        """Takes in the next row and says what is wrong with it."""
        if empty := schema.nulls(row, schema.NULLABLE["membehave"]):
            return [(path.partition(".")[0], f"{path} is null") for path in empty]
        item = Item.from_row(row)
        problems = [*_located(item.item_id, check_item(item)), *self._families_of(item), *self._compare(row)]
        if not problems and not self._noise:
            problems += against_text(item)
        if item.level not in LEVELS:
            return problems
        member = _Member.of(item)
        self._measure(item, member, whole=not problems)
        return [*problems, *self._try_controls(item), *self._out_of_order(item), *self._join(item.triplet_id, member)]

    def close(self) -> list[tuple[str, str, str]]:
        """What only shows once all rows are there: item, column, what is wrong."""
        open_ones = [(name, members) for name, members in self._triplets.items() if members]
        found = [
            (members[0].item.item_id, column, what)
            for name, members in open_ones
            for column, what in _located(name, check_triplet([m.item for m in members]))
        ]
        if self._extended:
            gone = [item for item in self._common if item not in self._ids]
            found += [(item, "item_id", f"is in config '{CONFIGS[0]}' alone") for item in gone]
        return found

    def summary(self) -> dict[str, Any]:
        """The figures of all rows so far, for the manifest."""
        return {
            "users": len(self._users),
            "triplets": len(self._triplets),
            "targets": len(self._targets),
            "levels": {name: level.summary() for name, level in self._levels.items()},
            "probes": dict(sorted(self._families.items(), key=lambda counted: _family_rank(counted[0]))),
            **{name: self._ranges.get(name, Range()).summary() for name in ("sessions", "messages", "days")},
            "controls": {control: self._rates_of(control) for control in CONTROLS},
        }

    @property
    def _metrics(self) -> tuple[str, ...]:
        return _METRICS + _FURTHER_METRICS if self._extended else _METRICS

    def _rates_of(self, control: str) -> dict[str, Any]:
        return {metric: {level: self._rate(control, metric, level) for level in LEVELS} for metric in self._metrics}

    def _rate(self, control: str, metric: str, level: str) -> dict[str, Any]:
        rate = self._rates.get((control, metric, level), Mean())
        return {"value": rate.value, "excluded": rate.excluded}

    def _families_of(self, item: Item) -> Iterator[Found]:
        if not self._extended:
            for family in sorted({p.family for p in item.probes} & set(FURTHER)):
                yield "probes", f"a {family} probe, which belongs to config '{CONFIGS[1]}'"

    def _compare(self, row: Mapping[str, Any]) -> Iterator[Found]:
        """The configs hold the same items, and the rows of a user the same history."""
        name, digest = row["item_id"], _digest({**row, "probes": _without_further(row["probes"])})
        if not self._extended:
            self._common[name] = digest
        elif self._common and self._common.get(name) is None:
            yield "item_id", f"is not in config '{CONFIGS[0]}'"
        elif self._common and self._common[name] != digest:
            yield "", f"but for its further probes it is not the item of config '{CONFIGS[0]}'"
        self._ids.add(name)
        history = _digest({"sessions": row["sessions"]})
        if self._users.setdefault(row["user"], history) != history:
            yield "sessions", "are not those of the user's rows before"

    def _measure(self, item: Item, member: "_Member", whole: bool) -> None:
        self._levels[item.level].add(item, member.mentions)
        self._families.update(p.family for p in item.probes)
        self._targets.add(item.target)
        sizes = {"sessions": len(item.sessions), "messages": sum(len(s.messages) for s in item.sessions)}
        if whole:
            starts = [datetime.fromisoformat(s.start_time) for s in item.sessions]
            sizes["days"] = (max(starts) - min(starts)).days
        for name, size in sizes.items():
            self._ranges.setdefault(name, Range()).add(size)

    def _try_controls(self, item: Item) -> Iterator[Found]:
        for control in CONTROLS:
            before, after = ([answers(control, item, p, late) for p in item.probes] for late in (False, True))
            found, wanted = measure(item, Answers(before, after)), landing(control, item)
            for metric in self._metrics:
                value = found[metric]
                self._rates.setdefault((control, metric, item.level), Mean()).add(value)
                if self._noise and (value is None or (control == "redactor" and metric not in _FIRM)):
                    continue
                if not _same(value, wanted[metric]):
                    yield "", f"control '{control}' has {metric} {_said(value)}, not {_said(wanted[metric])}"

    def _out_of_order(self, item: Item) -> Iterator[Found]:
        """The n-th rows of all levels are one triplet, so that whoever reads them in turn has it whole."""
        expected = self._next[item.level]
        if expected == len(self._places):
            self._places.setdefault(item.triplet_id, expected)
        place = self._places.get(item.triplet_id)
        if place is None:  # the levels before lack the triplet: said when it stays incomplete
            return
        self._next[item.level] = place + 1
        if place != expected:
            yield "triplet_id", f"{item.triplet_id} does not stand where it does in the other levels"

    def _join(self, triplet: str, member: "_Member") -> Iterator[Found]:
        """Checks a triplet once it has as many rows as there are levels, and lets go of them."""
        members = self._triplets.setdefault(triplet, [])
        members.append(member)
        if len(members) < len(LEVELS):
            return
        yield from _located(triplet, check_triplet([m.item for m in members]))
        counts = [m.mentions for m in members]
        if max(counts) > _MENTIONS_APART * min(counts):
            yield "target", f"the targets of {triplet} are named in {min(counts)} to {max(counts)} messages"
        self._triplets[triplet] = []


def landing(control: str, item: Item) -> dict[str, float | None]:
    """Where a control must land on an item, by metric; the redactor loses what is told in the target's own messages.

    Raises KeyError for an unknown control.
    """
    recall, coverage, survival = _LANDINGS[control]
    kept = _told_apart(item) if control == "redactor" else survival
    found = {
        "baseline_recall_target": recall,
        "baseline_recall_ripple": recall,
        "resurfaced": None if coverage is None else 0.0,
        "ripple_survival": kept,
        "control_survival": survival,
        **dict.fromkeys(("target_coverage", "attributed_coverage", "confirm_leak", "alias_coverage"), coverage),
    }
    return {**found, "selective_forgetting": selective_forgetting(found)}


def against_text(item: Item) -> Iterator[Found]:
    """Where the graph of an item and what its user tells part: column and problem. Holds without noise alone.

    A message that states an edge names the person and holds the entity's full name, and no other message holds that;
    one that is no evidence of the target does not name the target.
    """
    told = [(s.session_id, i, m.content) for s in item.sessions for i, m in enumerate(s.messages) if m.role == "user"]
    places = {(e.entity, e.session_id, e.message_index) for e in item.evidence}
    own = {(e.session_id, e.message_index) for e in item.evidence if e.person == item.target}
    for e in item.evidence:
        names = target_names(item) if e.person == item.target else [e.person, e.person.partition(" ")[0]]
        if not mentions(e.quote, names):
            yield "evidence", f"the quote for {e.entity} does not name {e.person}"
        if (e.session_id, e.message_index) not in own and mentions(e.quote, target_names(item)):
            yield "evidence", f"the quote for {e.person} and {e.entity} names the target, of whom it is no evidence"
    for neighbor in item.neighbors:
        for session, index, text in told:
            if neighbor.entity in text and (neighbor.entity, session, index) not in places:
                yield (
                    "evidence",
                    f"{session}, message {index} states {neighbor.entity}, and is evidence of nobody there",
                )
    kinds = Counter(n.kind for n in item.neighbors)
    yield from (("neighbors", f"{n} of the kind {kind}") for kind, n in kinds.items() if n > 1)


@dataclass(frozen=True, slots=True)
class _Member:
    """What the checks of a triplet need of an item: everything but the weight."""

    item: Item
    mentions: int

    @classmethod
    def of(cls, item: Item) -> "_Member":
        names = target_names(item)
        told = (m.content for s in item.sessions for m in s.messages if m.role == "user")
        return cls(
            replace(item, neighbors=[], evidence=[], probes=[], sessions=[]), sum(mentions(t, names) for t in told)
        )


@dataclass(slots=True)
class _Level:
    """Running figures over the items of a level."""

    shared: Mean = field(default_factory=Mean)
    ratio: Mean = field(default_factory=Mean)
    named: Mean = field(default_factory=Mean)
    degrees: Range = field(default_factory=Range)
    ripples: int = 0
    joint: int = 0

    def add(self, item: Item, named: int) -> None:
        self.shared.add(item.shared)
        self.ratio.add(item.entanglement_ratio)
        self.named.add(named)
        self.degrees.add(item.degree)
        self.ripples += sum(p.family == "ripple" for p in item.probes)
        self.joint += len(_joint(item))

    def summary(self) -> dict[str, Any]:
        return {
            "items": self.shared.counted,
            "mean_shared": self.shared.value,
            "degree": self.degrees.summary(),
            "mean_ratio": self.ratio.value,
            "ripple_probes": self.ripples,
            "same_message": self.joint,
            "mean_mentions": self.named.value,
        }


def _located(name: str, problems: Iterable[str]) -> list[Found]:
    """Problems as screening words them ("<name>: <column>: <what>") by column."""
    split = (problem.removeprefix(f"{name}: ").partition(": ") for problem in problems)
    return [(column, what) if what else ("", column) for column, _, what in split]


def _joint(item: Item) -> set[str]:
    """The shared entities of which another person is told in the very message that tells of the target."""
    places = {(e.person, e.entity): (e.session_id, e.message_index) for e in item.evidence}
    own = {n.entity: places.get((item.target, n.entity)) for n in item.neighbors}
    return {
        n.entity
        for n in item.neighbors
        for person in n.shared_with
        if own[n.entity] is not None and places.get((person, n.entity)) == own[n.entity]
    }


def _told_apart(item: Item) -> float | None:
    """The share of ripple probes whose answer stands in a message that does not tell of the target."""
    asked = [p.entity for p in item.probes if p.family == "ripple"]
    joint = _joint(item)
    return sum(entity not in joint for entity in asked) / len(asked) if asked else None


def _without_further(probes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [p for p in probes if p["family"] not in FURTHER]


def _digest(row: Mapping[str, Any]) -> bytes:
    return sha256(canonical(row)).digest()


def _family_rank(family: str) -> tuple[int, str]:
    known = ("target", "ripple", *FURTHER)
    return (known.index(family) if family in known else len(known)), family


def _same(one: float | None, other: float | None) -> bool:
    return one == other if one is None or other is None else abs(one - other) < 1e-9


def _said(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"
