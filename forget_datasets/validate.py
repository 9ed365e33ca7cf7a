"""Works out again, from the Parquet of a dataset folder, what its manifest says of the rows, and compares."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from forget_datasets import card
from forget_datasets.errors import UserError, unknown
from forget_datasets.forgeteval.audit import Audit as ForgetEvalAudit
from forget_datasets.manifest import CARD, MANIFEST
from forget_datasets.manifest import read as read_manifest
from forget_datasets.membehave.audit import Audits as MemBehaveAudits
from forget_datasets.schema import SCHEMA_VERSION, SCHEMAS
from forget_datasets.shards import RowHash, Shard, find, open_shard, read_rows


class Audit(Protocol):
    """Goes over the rows of one config in order; each dataset has its own."""

    def add(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Takes in the next row and says what is wrong with it: column (or "") and problem."""
        ...

    def summary(self) -> dict[str, Any]:
        """What the manifest says of the config."""
        ...

    def close(self) -> list[tuple[str, str, str]]:
        """After the last row: what is wrong with rows already taken in, as key, column (or "") and problem."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """How the rows of one dataset are told apart and gone over.

    key     the column of the rows' ids
    audits  makes, from the parameters in the manifest, what makes the audit of a config by its name
    split   the column that names the split, if one does
    """

    key: str
    audits: Callable[[Mapping[str, Any]], Callable[[str], Audit]]
    split: str | None = None


KINDS: Mapping[str, Kind] = {
    "forgeteval": Kind("id", lambda parameters: lambda config: ForgetEvalAudit()),
    "membehave": Kind("item_id", lambda parameters: MemBehaveAudits(_noise(parameters)), split="level"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong, and where: a file of the folder, and if it is about a row, its key and column."""

    file: str
    message: str
    row: str = ""
    column: str = ""

    def __str__(self) -> str:
        row = f", row {self.row}" if self.row else ""
        column = f"column '{self.column}': " if self.column else ""
        return f"{self.file}{row}: {column}{self.message}"


@dataclass(slots=True)
class Validation:
    """What was found in a folder; `configs` holds what the manifest ought to say of each."""

    dataset: str
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """All rows of all configs."""
        return sum(config["rows"] for config in self.configs.values())


def validate(folder: Path, progress: Callable[[str], None] | None = None) -> Validation:
    """Goes over every row of a dataset folder.

    Args:
        folder: holds `data/`, the manifest and the card.
        progress: called with the name of the config after each row.

    Raises:
        UserError: no dataset of ours; a file that is truncated, lacks a column or has one of a wrong type.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    shards = find(folder)
    manifest = read_manifest(folder) if (folder / MANIFEST).exists() else None
    dataset = manifest["dataset"] if manifest else _recognise(next(iter(shards.values()))[0].path)
    if dataset not in KINDS:
        raise unknown("dataset that can be validated", dataset, KINDS)
    if manifest and manifest.get("schema_version") != SCHEMA_VERSION:
        raise UserError(
            f"{folder / MANIFEST}: schema {manifest.get('schema_version')}, but this version reads schema "
            f"{SCHEMA_VERSION}. Validate it with the forget-datasets that wrote it (versions in the manifest)."
        )
    _open_all(shards, dataset)
    found = Validation(dataset)
    stated = manifest["configs"] if manifest else {}
    audit = KINDS[dataset].audits(_parameters(manifest))
    for name in dict.fromkeys([*stated, *(config for config, _ in shards)]):
        splits = _in_order({split: files for (c, split), files in shards.items() if c == name}, stated.get(name))
        if splits:
            found.configs[name] = _go_over(folder, name, splits, found, audit(name), progress)
    found.problems += _against_manifest(manifest, found.configs)
    found.problems += _against_card(folder, found.configs)
    return found


def _parameters(manifest: Mapping[str, Any] | None) -> Mapping[str, Any]:
    stated = manifest.get("parameters") if manifest else None
    return stated if isinstance(stated, Mapping) else {}


def _noise(parameters: Mapping[str, Any]) -> float:
    """The noise of MemBehave's recorded graph; a manifest that states none, or nonsense, is held to the text."""
    noise = parameters.get("noise")
    return float(noise) if isinstance(noise, int | float) else 0.0


def _recognise(path: Path) -> str:
    """The dataset whose key column a file has."""
    try:
        names = pq.read_schema(path).names
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a whole Parquet file ({error}). Build or download it again.") from error
    for dataset, kind in KINDS.items():
        if kind.key in names:
            return dataset
    raise UserError(
        f"{path}: no column {' or '.join(kind.key for kind in KINDS.values())}, so it is no dataset of ours"
    )


def _open_all(shards: Mapping[tuple[str, str], list[Shard]], dataset: str) -> None:
    """Raises one UserError for all files that cannot be read."""
    unusable = []
    for shard in (s for files in shards.values() for s in files):
        try:
            open_shard(shard.path, SCHEMAS[dataset]).close()
        except UserError as error:
            unusable.append(str(error))
    if unusable:
        raise UserError("\n".join(unusable))


def _in_order(splits: dict[str, list[Shard]], stated: Any) -> dict[str, list[Shard]]:
    order = [*stated.get("splits", ())] if isinstance(stated, Mapping) else []
    return dict(sorted(splits.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def _go_over(
    folder: Path,
    config: str,
    splits: Mapping[str, list[Shard]],
    found: Validation,
    audit: Audit,
    progress: Callable[[str], None] | None,
) -> dict[str, Any]:
    """Audits one config, adds its problems to `found`, and returns its figures."""
    kind = KINDS[found.dataset]
    whole, seen = RowHash(), dict[str, str]()
    figures: dict[str, Any] = {}
    total = 0
    for split, shards in splits.items():
        count, split_hash = 0, RowHash()
        for shard in shards:
            file = shard.path.relative_to(folder).as_posix()
            for row in read_rows(shard.path, SCHEMAS[found.dataset]):
                count += 1
                whole.add(row)
                split_hash.add(row)
                key = str(row[kind.key])
                if key in seen:
                    found.problems.append(Problem(file, f"stands in {seen[key]} already", key, kind.key))
                seen[key] = file
                if kind.split and row[kind.split] != split:
                    found.problems.append(Problem(file, f"{row[kind.split]} in split '{split}'", key, kind.split))
                found.problems += [Problem(file, what, key, column) for column, what in audit.add(row)]
                if progress:
                    progress(config)
        files = [shard.path.relative_to(folder).as_posix() for shard in shards]
        figures[split] = {"rows": count, "content_hash": split_hash.hexdigest(), "files": files}
        total += count
    late = audit.close()
    found.problems += [Problem(seen.get(key, f"data/{config}"), what, key, column) for key, column, what in late]
    return {"rows": total, "content_hash": whole.hexdigest(), "splits": figures, **audit.summary()}


def _against_manifest(manifest: Mapping[str, Any] | None, found: Mapping[str, Any]) -> list[Problem]:
    if manifest is None:
        return [Problem(MANIFEST, "is missing")]
    stated = manifest.get("configs", {})
    problems = [
        Problem(MANIFEST, f"config '{name}' has no files in data/{name}") for name in stated if name not in found
    ]
    return problems + [Problem(MANIFEST, text) for text in _differences(stated, found, "configs")]


def _differences(stated: Any, found: Any, place: str) -> Iterator[str]:
    if isinstance(found, Mapping) and isinstance(stated, Mapping):
        for name, value in found.items():
            if name in stated:
                yield from _differences(stated[name], value, f"{place}.{name}")
            else:
                yield f"{place}.{name} is missing"
    elif stated != found:
        yield f"{place} is {stated}, but the rows give {found}"


def _against_card(folder: Path, found: Mapping[str, Any]) -> list[Problem]:
    """A wrong number of examples in the card makes `load_dataset` fail, so it is a problem like any other."""
    path = folder / CARD
    if not path.exists():
        return [Problem(CARD, "is missing")]
    try:
        stated = card.counts(path.read_text(encoding="utf-8"))
    except ValueError as error:
        return [Problem(CARD, f"its YAML cannot be read: {error}")]
    counts = {name: {split: s["rows"] for split, s in config["splits"].items()} for name, config in found.items()}
    missing = [Problem(CARD, f"config '{name}' has no files in data/{name}") for name in stated if name not in counts]
    return missing + [Problem(CARD, text) for text in _differences(stated, counts, "num_examples")]
