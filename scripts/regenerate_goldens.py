"""Rewrites tests/golden/forgeteval.json from the generator and prints what changed. The only thing that may."""

import difflib
import json
import sys
from pathlib import Path
from typing import Any

from forget_datasets.forgeteval import PROFILES, handmade, languages, stream_cases
from forget_datasets.rows import GeneratedCase, content_hash

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "forgeteval.json"


def configs() -> dict[str, list[GeneratedCase]]:
    """Every config at the size that a release has."""
    found = {}
    for tag in languages.available():
        for suffix, profile in (("", PROFILES["full"]), ("-stress", PROFILES["stress"])):
            found[tag + suffix] = list(stream_cases(profile.n_per_family, distractors=profile.distractors, lang=tag))
    return {**found, "handmade": handmade.load()}


def record(cases: list[GeneratedCase]) -> dict[str, Any]:
    """The content hash of a config, and its first, ninth and last row."""
    rows = [case.to_row() for case in cases]
    return {"rows": len(rows), "content_hash": content_hash(rows), "records": [rows[0], rows[8], rows[-1]]}


def main() -> None:
    """Writes the file if it changed."""
    old = GOLDEN.read_text(encoding="utf-8") if GOLDEN.exists() else ""
    golden = {name: record(cases) for name, cases in configs().items()}
    new = json.dumps(golden, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), "golden", "generated")
    sys.stdout.writelines(lines)
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
