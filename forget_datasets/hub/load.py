"""A release as objects: what `forget_datasets.load` does."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from forget_datasets import manifest
from forget_datasets.errors import UserError, unknown
from forget_datasets.hub.pull import Pulled, pull, rows_of
from forget_datasets.hub.reference import parse
from forget_datasets.remote import is_url, pulled_dataset
from forget_datasets.rows import GeneratedCase, Item

_OBJECTS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "forgeteval": GeneratedCase.from_row,
    "membehave": Item.from_row,
}


def load(source: str, config: str | None, split: str | None, revision: str | None, as_rows: bool) -> list[Any]:
    """As `forget_datasets.load`, which has the documentation."""
    pulled = open_source(source, config, revision)
    configs = pulled.manifest["configs"]
    if config is None:
        config = next(iter(configs))
    if config not in configs:
        raise unknown("config", config, configs)
    splits = configs[config]["splits"]
    if split is not None and split not in splits:
        raise unknown("split", split, splits)
    made: Callable[[Mapping[str, Any]], Any] = dict if as_rows else _OBJECTS[pulled.manifest["dataset"]]
    found: list[Any] = []
    for name in splits if split is None else (split,):
        rows_of(pulled, config, name, lambda row: found.append(made(row)))
    return found


def open_source(source: str, config: str | None, revision: str | None) -> Pulled:
    """The files of a folder, of one behind an fsspec URL, or of a release on the Hub.

    Raises:
        UserError: neither; a repository without a revision; and as `pull`.
    """
    url = is_url(source)
    folder = pulled_dataset(source, config) if url else Path(os.path.expanduser(source))
    if os.path.isdir(folder):
        if revision:
            raise UserError(
                f"{source} is a {'URL' if url else 'folder'}, which has no revision '{revision}'. Leave it out."
            )
        return Pulled(folder, None, manifest.read(folder))
    reference = parse(source, revision)
    if reference.revision is None:
        raise UserError(
            f"{source} is no folder here, and of a dataset on the Hub a release is wanted, such as revision='v1.0.0': "
            "its main branch moves."
        )
    return pull(reference, config)
