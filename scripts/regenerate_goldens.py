"""Rewrites the golden records in tests/golden from the generators and prints what changed.

Nothing else may write there, but `golden_runs.py` in its folder `versions`.
"""

import difflib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from forget_datasets import membehave
from forget_datasets.forgeteval import PROFILES, engine, handmade, languages, stream_cases
from forget_datasets.rows import content_hash

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
PLACES = (0, 8, -1)


def forgeteval() -> dict[str, Any]:
    """Every config at the size of a release: its content hash, its first, ninth and last row; the engine's version."""
    configs = {"handmade": handmade.load()}
    for tag in languages.available():
        for suffix, profile in (("", PROFILES["full"]), ("-stress", PROFILES["stress"])):
            configs[tag + suffix] = list(stream_cases(profile.n_per_family, distractors=profile.distractors, lang=tag))
    golden = {name: _record([case.to_row() for case in cases]) for name, cases in configs.items()}
    return {**golden, "version": engine.VERSION}


def membehave_records() -> dict[str, Any]:
    """The same of the default size; records keep their first session alone, for their histories are long."""
    triplets = list(membehave.generate())
    golden: dict[str, Any] = {}
    for config in ("default", "extended"):
        record = _record([item.to_row() for triplet in triplets for item in getattr(triplet, config)])
        record["records"] = [{**row, "sessions": row["sessions"][:1]} for row in record["records"]]
        golden[config] = record
    rows = [item.to_row() for triplet in triplets[:2] for item in triplet.extended]
    return {**golden, "two triplets": content_hash(rows)}


def _record(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"rows": len(rows), "content_hash": content_hash(rows), "records": [rows[place] for place in PLACES]}


def write(name: str, golden: Mapping[str, Any]) -> None:
    """Writes one file and prints the difference."""
    path = GOLDEN / name
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    new = json.dumps(golden, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, "generated"))
    path.parent.mkdir(exist_ok=True)
    path.write_text(new, encoding="utf-8")


RECORDS: dict[str, Callable[[], dict[str, Any]]] = {"forgeteval": forgeteval, "membehave": membehave_records}


@click.command(help=__doc__)
@click.option("--only", type=click.Choice(list(RECORDS)), help="Leave the records of the other dataset as they are.")
def main(only: str | None) -> None:
    for name in [only] if only else RECORDS:
        write(f"{name}.json", RECORDS[name]())


if __name__ == "__main__":
    main()
