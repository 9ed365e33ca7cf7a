"""Goes over the rows of a config, one by one: proves each, tries the controls on it, and counts.

Build and validate share it, so a manifest says of the data what anyone can work out again from the Parquet.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from forget_datasets import schema
from forget_datasets.forgeteval.controls import CONTROLS, Outcome, outcomes
from forget_datasets.forgeteval.generation import TOP_K
from forget_datasets.forgeteval.screening import prove
from forget_datasets.rows import FAMILIES, OPERATIONS, GeneratedCase
from forget_datasets.tally import Range

RATES = ("spec", "strict", "spec_uncut", "strict_uncut")
"""The two rates, with answers cut at k and not cut."""
_RANKS = {family: rank for rank, family in enumerate(FAMILIES)}


class Audit:
    """The rows of one config, taken in order.

    Args:
        before: where these rows are not the first of their config, how many of each "<family>__<template>" of the
            family they begin in stand before them. Several audits, each of its own rows, are merged in order.
    """

    def __init__(self, before: Mapping[str, int] | None = None) -> None:
        self._before = dict(before or {})
        self._templates: Counter[tuple[str, str]] = Counter()
        self._outcomes: Counter[tuple[str, tuple[Outcome, ...]]] = Counter()
        self._last = dict(self._before)
        self._family = 0
        self._proven = 0
        self._languages: set[str] = set()
        self._store = Range()
        self._distractors = Range()

    def add(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Takes in the next row and says what is wrong with it: column (or "" for the row as a whole) and problem."""
        malformed = [*_malformed(row)]
        misplaced = self._place(row["id"] or "", row["family"], row["template"])
        return [*malformed, *misplaced] if malformed else [*misplaced, *self._judge(GeneratedCase.from_row(row))]

    def take(self, case: GeneratedCase) -> list[tuple[str, str]]:
        """As `add`, of a case that never was a row: nothing in it can be null or of the wrong kind."""
        return [*self._place(case.id, case.family, case.template), *self._judge(case)]

    def merge(self, other: "Audit") -> None:
        """Takes in what another audit found of the rows that follow. Raises ValueError if they do not follow."""
        if gaps := [name for name, n in other._before.items() if self._last.get(name, 0) != n]:
            raise ValueError(f"the rows that follow do not go on where these end: {gaps}")
        self._templates.update(other._templates)
        self._outcomes.update(other._outcomes)
        self._last |= other._last
        self._family = max(self._family, other._family)
        self._proven += other._proven
        self._languages |= other._languages
        self._store.merge(other._store)
        self._distractors.merge(other._distractors)

    def close(self) -> list[tuple[str, str, str]]:
        """Nothing shows only once all rows are there."""
        return []

    def summary(self) -> dict[str, Any]:
        """The figures of all rows so far, for the manifest."""
        return {
            "languages": sorted(self._languages),
            "families": {family: self._in_family(family) for family in FAMILIES},
            "templates": {
                family: {name: n for (f, name), n in self._templates.items() if f == family} for family in FAMILIES
            },
            "n_distractors": self._distractors.summary(),
            "store_size": self._store.summary(),
            "screening": {"proven": self._proven},
            "controls": {control: {rate: self._rates(control, rate) for rate in RATES} for control in CONTROLS},
        }

    def _in_family(self, family: str) -> int:
        return sum(n for (f, _), n in self._templates.items() if f == family)

    def _rates(self, control: str, rate: str) -> dict[str, int]:
        which, when = [*CONTROLS].index(control), RATES.index(rate)
        passed = dict.fromkeys(FAMILIES, 0)
        for (family, outcome), count in self._outcomes.items():
            passed[family] += count * outcome[which][when]
        return {"overall": sum(passed.values()), **passed}

    def _judge(self, case: GeneratedCase) -> list[tuple[str, str]]:
        """Measures a case, proves it and tries the controls on it."""
        store = len(case.setup_facts)
        for mutation in case.mutations:
            store += len(mutation) > 2
        self._store.add(store)
        self._languages.add(case.lang)
        self._distractors.add(case.n_distractors)
        unproven = prove(case)
        self._proven += not unproven
        found = outcomes(case, TOP_K)
        self._outcomes[case.family, found] += 1
        gamed = _gamed(found)
        if not unproven:
            return gamed
        return [*((column, what) for column, _, what in (text.partition(": ") for text in unproven)), *gamed]

    def _place(self, id: str, family: str, template: str) -> list[tuple[str, str]]:
        """Counts a row, and says what is wrong with where it stands."""
        self._templates[family, template] += 1
        misplaced = []
        name, _, number = id.rpartition("__")
        last = self._last.get(name, 0)
        # Counting goes on from the number that is there, so that one gap is reported once.
        self._last[name] = int(number) if number.isdecimal() else last + 1
        if name != f"{family}__{template}":
            misplaced.append(("id", "does not begin with its family and template"))
        elif number != f"{last + 1:03d}":
            misplaced.append(("id", f"stands where {name}__{last + 1:03d} belongs"))
        rank = _RANKS.get(family, self._family)
        if rank < self._family:
            misplaced.append(("family", f"'{family}' after '{FAMILIES[self._family]}'"))
        self._family = max(self._family, rank)
        return misplaced


@lru_cache(maxsize=1024)
def _gamed(found: tuple[Outcome, ...]) -> list[tuple[str, str]]:
    """What is wrong with how the controls fare: strictly, the oracle alone passes."""
    return [
        ("", f"control '{control}' {'passes' if passed else 'fails'} it ({rate})")
        for control, outcome in zip(CONTROLS, found, strict=True)
        for rate, passed in zip(RATES, outcome, strict=True)
        if rate.startswith("strict") and passed != (control == "oracle")
    ]


def _malformed(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What keeps a row from being a case at all."""
    if empty := schema.nulls(row, schema.NULLABLE["forgeteval"]):
        yield from ((path.partition(".")[0], f"{path} is null") for path in empty)
        return
    if row["family"] not in FAMILIES:
        yield "family", f"unknown family '{row['family']}' (known: {', '.join(FAMILIES)})"
    for mutation in row["mutations"]:
        op, text = mutation["op"], mutation["new_text"]
        if op not in OPERATIONS:
            yield "mutations", f"unknown op '{op}' (known: {', '.join(OPERATIONS)})"
        elif (text is not None) != (op == "supersede"):
            yield "mutations", f"a {op} {'lacks its' if text is None else 'has a'} new_text"
