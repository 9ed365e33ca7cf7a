"""The manifest of a dataset folder: what was built, from which parameters, with which figures and hashes."""

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from forget_datasets import __version__, card
from forget_datasets.errors import UserError
from forget_datasets.schema import SCHEMA_VERSION, SCHEMAS
from forget_datasets.shards import Written

MANIFEST = "manifest.json"
CARD = "README.md"
OWN = frozenset({MANIFEST, CARD})
"""What a dataset folder holds beside the files that its manifest names; with anything else it is not replaced."""


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a dataset folder. Raises UserError if there is none or it cannot be read."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{folder} has no {MANIFEST}, so it is no dataset of ours") from None
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}). Build the dataset again.") from error
    if not isinstance(manifest, dict) or manifest.get("dataset") not in SCHEMAS:
        raise UserError(f"{path}: names none of the datasets {', '.join(SCHEMAS)}")
    try:
        _data_files(manifest)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: its configs do not list the files of their splits. Build the dataset again."
        ) from error
    return manifest


def write(
    folder: Path,
    dataset: str,
    parameters: Mapping[str, Any],
    configs: Mapping[str, Mapping[str, Any]],
    generation: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Writes manifest and card beside the data, and returns the manifest; a rerun writes the same bytes.

    Args:
        folder: of the dataset.
        dataset: its name.
        parameters: of the build.
        configs: what the rows of each config show; anyone can work it out again.
        generation: what only the generator knows, if there is such a thing.
    """
    manifest = {
        "dataset": dataset,
        "schema_version": SCHEMA_VERSION,
        "parameters": dict(parameters),
        **({"generation": dict(generation)} if generation else {}),
        "configs": dict(configs),
        "versions": {
            "forget-datasets": __version__,
            "python": platform.python_version(),
            "pyarrow": pa.__version__,
        },
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    (folder / CARD).write_text(card.render(manifest), encoding="utf-8")
    return manifest


def split_figures(place: str, written: Written) -> dict[str, Any]:
    """What a manifest says of one split, whose shards lie in the folder `place` of the dataset."""
    return {
        "rows": written.rows,
        "content_hash": written.content_hash,
        "file_bytes": written.file_bytes,
        "arrow_bytes": written.arrow_bytes,
        "files": [f"{place}/{name}" for name in written.files],
    }


def check_target(out: Path, dataset: str, parameters: Mapping[str, Any], force: bool) -> None:
    """Raises UserError if `out` must not be replaced by a dataset of these parameters."""
    if not out.exists():
        return
    if not out.is_dir():
        raise UserError(f"{out} is a file; choose another folder")
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir()}
    if not files:
        return
    there = read(out)
    if foreign := sorted(files - OWN - _data_files(there)):
        raise UserError(f"{out} holds '{foreign[0]}', which is none of ours, and is left alone; choose another folder")
    if force:
        return
    if there["dataset"] != dataset:
        raise UserError(f"{out} holds {there['dataset']}, not {dataset}; choose another folder, or add --force")
    had = there.get("parameters", {})
    for name, value in parameters.items():
        if had.get(name) != value:
            raise UserError(
                f"{out} holds a dataset with {name} {had.get(name)}, not {value}; "
                "choose another folder, or add --force to replace it"
            )


def _data_files(manifest: Mapping[str, Any]) -> set[str]:
    splits = [split for config in manifest["configs"].values() for split in config["splits"].values()]
    return {file for split in splits for file in split["files"]}
