"""The fifteen cases written by hand; `handmade.toml` beside this file holds their words."""

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from forget_datasets.forgeteval.languages import fold
from forget_datasets.forgeteval.screening import meets, require_proof
from forget_datasets.rows import FAMILIES, GeneratedCase, Probe
from forget_datasets.seeding import Stream

TEMPLATE = "handmade"


def load() -> list[GeneratedCase]:
    """The cases, families in order, each proven. Raises ScreeningError if an edit made one ambiguous."""
    data = tomllib.loads((files(__package__) / "handmade.toml").read_text(encoding="utf-8"))
    cases = [
        _case(entry, family, number, data["distractors"])
        for family in FAMILIES
        for number, entry in enumerate(data[family], start=1)
    ]
    for case in cases:
        require_proof(case)
    return cases


def _case(entry: Mapping[str, Any], family: str, number: int, distractors: Sequence[str]) -> GeneratedCase:
    stream = Stream("forgeteval", TEMPLATE, family, number)
    leaks = [Probe("leak", query, [], [string]) for query, string in zip(entry["leaks"], entry["forbid"], strict=True)]
    survivors = [Probe("survivor", s["question"], [s["require"]], []) for s in entry["survivors"]]
    checked = [*entry["require"], *entry["forbid"], *(s["require"] for s in entry["survivors"])]
    free = [text for text in distractors if not any(meets(string, fold(text)) for string in checked)]
    facts = [*entry["facts"], *stream.sample(free, entry["distractors"])]
    stream.shuffle(facts)
    return GeneratedCase(
        id=f"{family}__{TEMPLATE}__{number:03d}",
        family=family,
        setup_facts=facts,
        mutations=[tuple(m[key] for key in ("op", "query", "text") if key in m) for m in entry["mutations"]],
        final_query=entry["question"],
        must_contain=list(entry["require"]),
        must_not_contain=list(entry["forbid"]),
        template=TEMPLATE,
        lang="en",
        probes=[*leaks, *survivors],
        n_distractors=entry["distractors"],
    )
