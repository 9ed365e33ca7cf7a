"""The manifest of a dataset folder: what was built, from which parameters, with which figures and hashes."""

import json
import platform
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from forget_datasets import __version__, card, croissant
from forget_datasets.errors import DataFault, EnvironmentFault, UserError
from forget_datasets.schema import SCHEMA_VERSION, SCHEMAS
from forget_datasets.shapes import misfit, read_json
from forget_datasets.shards import Written

MANIFEST = "manifest.json"
CARD = "README.md"

_REMEDY = "Build the dataset again, or download it again."
_SPLIT = {
    "files": [str], "rows?": int, "content_hash?": str, "file_bytes?": int, "arrow_bytes?": int,
}  # fmt: skip
_CONFIG = {"splits": {str: _SPLIT}, "rows?": int, "content_hash?": str, "languages?": [str]}
_SHAPE = {
    "dataset": tuple(SCHEMAS),
    "schema_version": int,
    "parameters?": dict,
    "generation?": dict,
    "configs": {str: _CONFIG},
    "versions?": {str: str},
}
_PARAMETERS = {
    "forgeteval": {"langs?": [str], "n_per_family?": int, "distractors?": int, "seed?": int, "stress?": bool},
    "membehave": {
        "triplets?": int, "triplets_per_user?": int, "sessions_per_user?": int, "same_message?": float,
        "noise?": float, "seed?": int, "gated?": bool,
    },
}  # fmt: skip


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a dataset folder, every key that has a meaning here of the type that it must have.

    Keys beyond the dataset, the schema's version and the files of the splits may be missing.

    Raises:
        UserError: there is none.
        DataFault: it is not as it should be; the message names file and key.
        EnvironmentFault: the disk refuses.
    """
    path = folder / MANIFEST
    try:
        manifest = read_json(path, _SHAPE, _REMEDY)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{folder} has no {MANIFEST}, so it is no dataset of ours") from None
    except EnvironmentFault:
        raise
    except UserError as error:
        raise DataFault(str(error)) from error
    if what := misfit(manifest.get("parameters", {}), _PARAMETERS[manifest["dataset"]], "parameters"):
        raise DataFault(f"{path}: {what}. {_REMEDY}")
    return manifest


def write(
    folder: Path,
    dataset: str,
    parameters: Mapping[str, Any],
    configs: Mapping[str, Mapping[str, Any]],
    generation: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Writes manifest, card and Croissant metadata beside the data; a rerun writes the same bytes.

    Args:
        folder: of the dataset.
        dataset: its name.
        parameters: of the build.
        configs: what the rows of each config show; anyone can work it out again.
        generation: what only the generator knows, if there is such a thing.

    Returns:
        The manifest.
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
    (folder / croissant.CROISSANT).write_text(croissant.render(folder, manifest), encoding="utf-8")
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


def content_hash(manifest: Mapping[str, Any]) -> str:
    """What all rows of a dataset are known by: the sha256 of `<config> <content hash>` lines, sorted by config.

    Raises UserError for a manifest that lacks the content hash of a config.
    """
    if bare := [name for name, config in manifest["configs"].items() if "content_hash" not in config]:
        raise UserError(f"{MANIFEST} has no content hash of the config '{bare[0]}'. {_REMEDY}")
    lines = (f"{name} {config['content_hash']}\n" for name, config in sorted(manifest["configs"].items()))
    return sha256("".join(lines).encode()).hexdigest()


def data_files(manifest: Mapping[str, Any]) -> set[str]:
    """The files that a manifest lists, relative to its folder."""
    splits = [split for config in manifest["configs"].values() for split in config["splits"].values()]
    return {file for split in splits for file in split["files"]}
