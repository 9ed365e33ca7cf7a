"""Whether a folder may be replaced by a new dataset: only what is recognisably ours, and only as was asked for."""

import re
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from forget_datasets import manifest
from forget_datasets.croissant import CROISSANT
from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.releases import RELEASES
from forget_datasets.schema import SCHEMAS
from forget_datasets.shards import columns_of, is_shard

_OWN = frozenset({manifest.MANIFEST, manifest.CARD, CROISSANT, RELEASES})
_NAMES_US = re.compile(rf'"dataset": *"(?:{"|".join(SCHEMAS)})"')


def require_replaceable(out: Path, dataset: str, parameters: Mapping[str, Any], force: bool) -> None:
    """Lets pass what may be replaced: nothing, an empty folder, a dataset of ours.

    A dataset of ours holds the manifest, what is rendered from it, the releases and the files that the manifest lists,
    nothing else. Without `force`
    it must be of the same parameters. With `force` it may be of others, and its manifest broken or gone: then it is
    ours if every file has a name as ours have, no Parquet file has other columns, and something names us: a Parquet
    file with our columns, or what is left of the manifest.

    Raises:
        UserError: `out` must not be replaced; the message says why.
        EnvironmentFault, OSError: the disk refuses.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise UserError(f"{out} is a file; choose another folder")
    # A link to a folder counts as a file: what is behind it is no part of a dataset.
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_symlink() or not path.is_dir()}
    if not files:
        return
    try:
        there = manifest.read(out)
    except EnvironmentFault:
        raise
    except UserError as error:
        _require_ours(out, files - _OWN, error)
        if not force:
            raise UserError(f"{error} To replace what is left of it add --force.") from error
        return
    if foreign := sorted(files - _OWN - manifest.data_files(there)):
        raise _foreign(out, foreign[0])
    if not force:
        _require_same(out, there, dataset, parameters)


def _require_ours(out: Path, files: Set[str], error: UserError) -> None:
    """Raises UserError unless a folder whose manifest cannot be read is recognisably ours all the same."""
    recognised = _names_us(out / manifest.MANIFEST)
    for file in sorted(files):
        ours = _has_our_columns(out / file) if is_shard(file) else False
        if ours is False:
            raise UserError(f"{error}\n    {_foreign(out, file)}") from error
        recognised = recognised or ours is True
    if not recognised:
        raise error


def _has_our_columns(path: Path) -> bool | None:
    """None for a file that is not whole Parquet, of which that cannot be said."""
    try:
        columns = columns_of(path)
    except UserError:
        return None
    return any(columns.issuperset(schema.names) for schema in SCHEMAS.values())


def _names_us(path: Path) -> bool:
    """Whether what is left of a manifest still names a dataset of ours."""
    return path.is_file() and _NAMES_US.search(path.read_text(encoding="utf-8", errors="replace")) is not None


def _foreign(out: Path, file: str) -> UserError:
    return UserError(f"{out} holds '{file}', which is none of ours, and is left alone; choose another folder")


def _require_same(out: Path, there: Mapping[str, Any], dataset: str, parameters: Mapping[str, Any]) -> None:
    if there["dataset"] != dataset:
        raise UserError(f"{out} holds {there['dataset']}, not {dataset}; choose another folder, or add --force")
    had = there.get("parameters", {})
    for name, value in parameters.items():
        if had.get(name) != value:
            raise UserError(
                f"{out} holds a dataset with {name} {had.get(name)}, not {value}; "
                "choose another folder, or add --force to replace it"
            )
