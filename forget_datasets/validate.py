"""Works out again, from the Parquet of a dataset folder, what its manifest says of the rows, and compares."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forget_datasets import card, croissant
from forget_datasets.audits import KINDS, Audit
from forget_datasets.errors import DataFault, UserError
from forget_datasets.manifest import CARD, MANIFEST
from forget_datasets.manifest import read as read_manifest
from forget_datasets.rows import RowHash, canonical_lines
from forget_datasets.schema import SCHEMA_VERSION, SCHEMAS, surplus
from forget_datasets.shapes import misfit
from forget_datasets.shards import Shard, columns_of, find, open_shard, read_rows

_DESCRIBED = {part: [{"@id": str}] for part in ("distribution", "recordSet")}
_LONGEST_KEY = 100  # characters of a row's id in a message


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong, and where: a file of the folder, and if it is about a row, its key and column."""

    file: str
    message: str
    row: str = ""
    column: str = ""

    def __str__(self) -> str:
        row = f", row {_brief(self.row)}" if self.row else ""
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
        UserError: no dataset of ours.
        DataFault: a manifest or a file of rows that cannot be read as such.
    """
    if not os.path.isdir(folder):
        raise UserError(f"{folder} is not a folder")
    shards = find(folder)
    manifest = read_manifest(folder) if os.path.lexists(folder / MANIFEST) else None
    dataset = manifest["dataset"] if manifest else _recognise(next(iter(shards.values()))[0].path)
    if manifest and manifest["schema_version"] != SCHEMA_VERSION:
        raise UserError(
            f"{folder / MANIFEST}: schema {manifest['schema_version']}, but this version reads schema "
            f"{SCHEMA_VERSION}. Validate it with the forget-datasets that wrote it (versions in the manifest)."
        )
    _open_all(shards, dataset)
    found = Validation(dataset, problems=[*_surplus(folder, shards, dataset)])
    stated = manifest["configs"] if manifest else {}
    parameters = manifest.get("parameters", {}) if manifest else {}
    audit = KINDS[dataset].audits(parameters)
    for name in dict.fromkeys([*stated, *(config for config, _ in shards)]):
        splits = _in_order({split: files for (c, split), files in shards.items() if c == name}, stated.get(name))
        if splits:
            found.configs[name] = _go_over(folder, name, splits, found, audit(name), progress)
    found.problems += _against_manifest(manifest, found.configs)
    found.problems += [Problem(MANIFEST, text) for text in KINDS[dataset].claims(parameters, found.configs)]
    found.problems += _against_card(folder, found.configs, parameters)
    found.problems += _against_croissant(folder, dataset, found.configs)
    return found


def _brief(key: str) -> str:
    return key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}… ({len(key):,} characters)"


def _recognise(path: Path) -> str:
    """The dataset whose key column a file has."""
    columns = columns_of(path)
    for dataset, kind in KINDS.items():
        if kind.key in columns:
            return dataset
    raise UserError(
        f"{path}: no column {' or '.join(kind.key for kind in KINDS.values())}, so it is no dataset of ours"
    )


def _open_all(shards: Mapping[tuple[str, str], list[Shard]], dataset: str) -> None:
    """Raises one DataFault for all files that cannot be read."""
    unusable = []
    for shard in (s for files in shards.values() for s in files):
        try:
            open_shard(shard.path, SCHEMAS[dataset]).close()
        except UserError as error:
            unusable.append(str(error))
    if unusable:
        raise DataFault("\n".join(unusable))


def _surplus(folder: Path, shards: Mapping[tuple[str, str], list[Shard]], dataset: str) -> Iterator[Problem]:
    for shard in (s for files in shards.values() for s in files):
        for column in surplus(sorted(columns_of(shard.path)), SCHEMAS[dataset]):
            file = shard.path.relative_to(folder).as_posix()
            yield Problem(file, "is no column of the schema", column=column)


def _in_order(splits: dict[str, list[Shard]], stated: Mapping[str, Any] | None) -> dict[str, list[Shard]]:
    order = [*stated["splits"]] if stated else []
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
                lines = canonical_lines([row])
                whole.add_lines(lines)
                split_hash.add_lines(lines)
                key = str(row[kind.key])
                if key in seen:
                    found.problems.append(Problem(file, f"stands in {seen[key]} already", key, kind.key))
                seen[key] = file
                if kind.split and row[kind.split] != split:
                    found.problems.append(Problem(file, f"{row[kind.split]} in split '{split}'", key, kind.split))
                found.problems += [Problem(file, what, key, column) for column, what in _audited(audit, row)]
                if progress:
                    progress(config)
        files = [shard.path.relative_to(folder).as_posix() for shard in shards]
        figures[split] = {"rows": count, "content_hash": split_hash.hexdigest(), "files": files}
        total += count
    late = audit.close()
    found.problems += [Problem(seen.get(key, f"data/{config}"), what, key, column) for key, column, what in late]
    return {"rows": total, "content_hash": whole.hexdigest(), "splits": figures, **audit.summary()}


def _audited(audit: Audit, row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What an audit says of a row. It takes values of the right types for granted, and these may be any."""
    try:
        return audit.add(row)
    except Exception as error:
        return [("", f"cannot be gone over ({type(error).__name__}: {error})")]


def _against_manifest(manifest: Mapping[str, Any] | None, found: Mapping[str, Any]) -> list[Problem]:
    if manifest is None:
        return [Problem(MANIFEST, "is missing")]
    stated = manifest["configs"]
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


def _against_card(folder: Path, found: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[Problem]:
    """A wrong number of examples in the card makes `load_dataset` fail, so it is a problem like any other."""
    path = folder / CARD
    try:
        text = path.read_text(encoding="utf-8")
        stated, gated = card.counts(text), card.is_gated(text)
    except FileNotFoundError:
        return [Problem(CARD, "is missing")]
    except OSError as error:
        return [Problem(CARD, f"cannot be read: {error.strerror or error}")]
    except ValueError as error:
        return [Problem(CARD, f"its YAML cannot be read: {error}")]
    counts = {name: {split: s["rows"] for split, s in config["splits"].items()} for name, config in found.items()}
    problems = [Problem(CARD, f"config '{name}' has no files in data/{name}") for name in stated if name not in counts]
    problems += [Problem(CARD, text) for text in _differences(stated, counts, "num_examples")]
    if parameters.get("gated") and not gated:  # the other way round is a wish of whoever published it
        problems.append(Problem(CARD, "does not ask who wants the data, but parameters.gated is True"))
    return problems


def _against_croissant(folder: Path, dataset: str, found: Mapping[str, Any]) -> list[Problem]:
    """Its files and record sets must be those that are there; the version and the like are up to whoever publishes."""
    file = croissant.CROISSANT
    try:
        stated = json.loads((folder / file).read_bytes())
    except FileNotFoundError:
        return [Problem(file, "is missing")]
    except OSError as error:
        return [Problem(file, f"cannot be read: {error.strerror or error}")]
    except (ValueError, RecursionError) as error:
        return [Problem(file, f"is no JSON: {error}")]
    if what := misfit(stated, _DESCRIBED):
        return [Problem(file, what)]
    expected = json.loads(croissant.render(folder, {"dataset": dataset, "configs": found}))
    return [
        *(Problem(file, f"distribution: {text}") for text in _odd(stated, expected, "distribution", ("@type", "@id"))),
        *(Problem(file, f"recordSet: {text}") for text in _odd(stated, expected, "recordSet", None)),
    ]


def _odd(
    stated: Mapping[str, Any], expected: Mapping[str, Any], part: str, keys: tuple[str, ...] | None
) -> Iterator[str]:
    """Entries of a part that are missing, foreign or, by some keys or all, not as expected.

    The hash of a file does not count: another writer's file with the same rows is as good.
    """
    there = {entry["@id"]: entry for entry in stated[part]}
    for entry in expected[part]:
        found = there.pop(entry["@id"], {})
        if any(found.get(key) != entry[key] for key in keys or entry):
            yield f"'{entry['@id']}' is {'not as the rows give it' if found else 'missing'}"
    yield from (f"there is no '{name}'" for name in there)
