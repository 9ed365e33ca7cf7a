"""What was found of residue, on its way to a reader: as JSON, beside the scores of a run, and as a sentence."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forget_datasets.errors import UserError
from forget_datasets.shapes import read_json
from forget_eval import runs, seals

if TYPE_CHECKING:
    from forget_eval.residue import Residue

FILE = "residue.json"
"""In the folder of a run."""
SCHEMA_VERSION = 1
_LOOK = {"answer": ("yes", "no", "unknown"), "found": int, "files": [str], "why": str}
_SHAPE = {
    "schema_version": int,
    "adapter": {"name": str, "class": str, "version": (str, None)},
    "store": str,
    "purged": int,
    "before": _LOOK,
    "maintenance": str,
    "after": (_LOOK, None),
}


def row(found: "Residue") -> dict[str, Any]:
    """As JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(found)))
    return {"schema_version": SCHEMA_VERSION, **plain}


def write(found: "Residue", run: Path) -> None:
    """Puts what was found beside the scores of a run of the same adapter.

    Raises:
        UserError: the folder is no run, or that of another adapter or version.
        EnvironmentFault: the disk refuses.
    """
    _require_same(run, found.adapter)
    runs.write_json(run / FILE, row(found))
    seals.add(run, FILE)


def note(run: Path, label: str) -> str | None:
    """What a report says of a run's residue, None if nobody has looked.

    Raises:
        UserError: the file is not as `write` makes it, or of another system than the run.
    """
    try:
        found = read_json(run / FILE, _SHAPE, "Remove it, or make it again: forget-eval residue --run.")
    except FileNotFoundError:
        return None
    _require_same(run, found["adapter"], f", of which {FILE} speaks. Remove that file")
    said = f"{label}: residue after a purge: {shown(found['before'])}"
    if found["after"]:
        said += f"; after maintenance ({found['maintenance']}): {shown(found['after'])}"
    return f"{said}. Store: {found['store']}."


def _require_same(run: Path, adapter: Mapping[str, Any], more: str = "") -> None:
    ran = runs.read(run)["adapter"]
    for what in ("class", "version"):
        if ran[what] != adapter[what]:
            one, other = (f"{each['class']} {each['version'] or ''}".strip() for each in (ran, adapter))
            raise UserError(f"{run} is a run of {one}, not of {other}{more}.")


def shown(look: dict[str, Any]) -> str:
    """A look in a few words: "yes (in data.db)", "unknown (in memory)"."""
    names = look["files"]
    rest = f" and {len(names) - 1} more" if len(names) > 1 else ""
    reason = look["why"] or (f"in {names[0]}{rest}" if names else "")
    return f"{look['answer']} ({reason})" if reason else str(look["answer"])
