"""Goes over the rows of a config, one by one: proves each, tries the controls on it, and counts.

Build and validate share it, so a manifest says of the data what anyone can work out again from the Parquet.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from forget_datasets import schema
from forget_datasets.forgeteval.controls import CONTROLS, passes
from forget_datasets.forgeteval.generation import TOP_K
from forget_datasets.forgeteval.screening import prove
from forget_datasets.rows import FAMILIES, OPERATIONS, GeneratedCase
from forget_datasets.tally import Range

RATES = ("spec", "strict", "spec_uncut", "strict_uncut")
"""The two rates, with answers cut at k and not cut."""


class Audit:
    """The rows of one config, taken in order."""

    def __init__(self) -> None:
        self._templates: Counter[tuple[str, str]] = Counter()
        self._passed: Counter[tuple[str, str, str]] = Counter()
        self._last: dict[str, int] = {}
        self._family = 0
        self._proven = 0
        self._languages: set[str] = set()
        self._store = Range()
        self._distractors = Range()

    def add(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Takes in the next row and says what is wrong with it: column (or "" for the row as a whole) and problem."""
        self._templates[row["family"], row["template"]] += 1
        problems = [*_malformed(row)]
        misplaced = [*self._out_of_order(row)]
        if problems:
            return [*problems, *misplaced]
        case = GeneratedCase.from_row(row)
        unproven = [(column, what) for column, _, what in (text.partition(": ") for text in prove(case))]
        self._proven += not unproven
        self._measure(case)
        return [*misplaced, *unproven, *self._try_controls(case)]

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
        passed = {family: self._passed[control, rate, family] for family in FAMILIES}
        return {"overall": sum(passed.values()), **passed}

    def _measure(self, case: GeneratedCase) -> None:
        store = len(case.setup_facts) + sum(len(mutation) > 2 for mutation in case.mutations)
        self._store.add(store)
        self._languages.add(case.lang)
        self._distractors.add(case.n_distractors)

    def _out_of_order(self, row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        template, _, number = (row["id"] or "").rpartition("__")
        expected = f"{template}__{self._last.get(template, 0) + 1:03d}"
        # Counting goes on from the number that is there, so that one gap is reported once.
        self._last[template] = int(number) if number.isdecimal() else self._last.get(template, 0) + 1
        if template != f"{row['family']}__{row['template']}":
            yield "id", "does not begin with its family and template"
        elif row["id"] != expected:
            yield "id", f"stands where {expected} belongs"
        if row["family"] in FAMILIES:
            place = FAMILIES.index(row["family"])
            if place < self._family:
                yield "family", f"'{row['family']}' after '{FAMILIES[self._family]}'"
            self._family = max(self._family, place)

    def _try_controls(self, case: GeneratedCase) -> Iterator[tuple[str, str]]:
        for control in CONTROLS:
            cut = passes(control, case, TOP_K)
            small = len(case.setup_facts) + len(case.mutations) <= TOP_K
            uncut = cut if small else passes(control, case, None)
            for rate, passed in zip(RATES, (*cut, *uncut), strict=True):
                self._passed[control, rate, case.family] += passed
                if rate.startswith("strict") and passed != (control == "oracle"):
                    yield "", f"control '{control}' {'passes' if passed else 'fails'} it ({rate})"


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
