"""Releases of a dataset: `RELEASES.md`, a table in its folder that ties a version to the hash of its rows for good."""

import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forget_datasets.errors import DataFault, UserError
from forget_datasets.shapes import unreadable
from forget_datasets.staging import write_whole

RELEASES = "RELEASES.md"

_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_TITLE = re.compile(r"# Releases of ([a-z]+)")
_ROW = re.compile(r"\| (?P<version>[\d.]+) \| `(?P<hash>[0-9a-f]{64})` \| (?P<schema>\d+) \| (?P<configs>.*) \|")
_CONFIG = re.compile(r"`(?P<name>[^` ]+)` (?P<rows>[\d,]+) \((?P<hash>[0-9a-f]{64})\)")
_REMEDY = "Take the file from the repository on the Hub, or mend that line."
_INTRODUCTION = """\
A version stands for the same rows for good. Its content hash is the SHA-256 of a line `<config> <content hash>` for
each config, sorted by config; that of a config is the SHA-256 of its rows, and stands behind their number.

| version | content hash | schema | configs, with rows and content hash |
|---|---|---:|---|
"""


@dataclass(frozen=True, slots=True)
class Release:
    """A version and what it stands for; `configs` holds the rows and the content hash of each."""

    version: str
    content_hash: str
    schema: int
    configs: Mapping[str, tuple[int, str]]
    changes: str = field(default="", compare=False)

    @property
    def tag(self) -> str:
        """The name of its tag on the Hub."""
        return f"v{self.version}"


@dataclass(frozen=True, slots=True)
class Releases:
    """All releases of a dataset, the newest version first."""

    dataset: str
    known: Sequence[Release] = ()

    def get(self, version: str) -> Release | None:
        """The release of a version, if there is one."""
        return next((release for release in self.known if release.version == version), None)

    def before(self, version: str) -> Release | None:
        """The release that a version follows upon, if any."""
        return next((release for release in self.known if _rank(release.version) < _rank(version)), None)

    def with_(self, release: Release) -> "Releases":
        """The releases and one more, or the same if that one is known.

        Raises:
            UserError: the version stands for other rows, or the rows are released under another version.
        """
        if there := self.get(release.version):
            if there.content_hash != release.content_hash:
                raise UserError(
                    f"{self.dataset} {release.version} is released with content hash {there.content_hash[:12]}, and "
                    f"these rows have {release.content_hash[:12]}. A version never changes: release under a new one."
                )
            return self
        for other in self.known:
            if other.content_hash == release.content_hash:
                raise UserError(
                    f"these rows (content hash {release.content_hash[:12]}) are {self.dataset} {other.version} "
                    f"already, and cannot be {release.version} as well. Use that version."
                )
        known = sorted((*self.known, release), key=lambda each: _rank(each.version), reverse=True)
        return Releases(self.dataset, tuple(known))

    def continued(self, published: "Releases") -> "Releases":
        """These releases on top of those that are published, which have the last word on what they list.

        Raises:
            UserError: the two contradict each other, or belong to different datasets.
        """
        if published.dataset != self.dataset:
            raise UserError(f"{RELEASES} on the Hub lists releases of {published.dataset}, and this is {self.dataset}.")
        merged = published
        for release in reversed(self.known):
            merged = merged.with_(release)
        return merged

    def render(self) -> str:
        """The file."""
        rows = "".join(_row(release) for release in self.known)
        changes = "".join(f"\n## {release.version}\n\n{release.changes}\n" for release in self.known)
        return f"# Releases of {self.dataset}\n\n{_INTRODUCTION}{rows}{changes}"


def check_version(text: str) -> str:
    """A version such as 1.0.0, also given as v1.0.0. Raises UserError for anything else."""
    version = text.removeprefix("v")
    if not _VERSION.fullmatch(version):
        raise UserError(f"'{text}' is no version: give three numbers, such as 1.0.0")
    return version


def read(folder: Path, dataset: str) -> Releases:
    """The releases in a dataset folder; none where there is no such file. Raises UserError as `parse`."""
    path = folder / RELEASES
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        return Releases(dataset)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 ({error.reason}). {_REMEDY}") from error
    except OSError as error:
        raise unreadable(path, error) from error


def parse(text: str, place: str) -> Releases:
    """The releases that a file lists. Raises UserError, naming `place` and line, for a table that is not ours."""
    title = _TITLE.match(text)
    if title is None:
        raise UserError(f"{place}: does not begin with '# Releases of <dataset>'. {_REMEDY}")
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    changes = {name.strip(): body.strip() for name, _, body in (section.partition("\n") for section in sections)}
    releases = Releases(title[1])
    for number, line in enumerate(head.splitlines(), 1):
        if not line.startswith("|") or line.startswith(("| version ", "|---")):
            continue
        row = _ROW.fullmatch(line)
        configs = {found["name"]: (_number(found["rows"]), found["hash"]) for found in _CONFIG.finditer(line)}
        if row is None or not _VERSION.fullmatch(row["version"]) or not configs or releases.get(row["version"]):
            raise UserError(f"{place}, line {number}: no release, or one that stands there twice. {_REMEDY}")
        version = row["version"]
        releases = releases.with_(Release(version, row["hash"], int(row["schema"]), configs, changes.get(version, "")))
    return releases


def make(manifest: Mapping[str, Any], content_hash: str, version: str) -> Release:
    """The release of a built dataset under a version; what changed is not said yet."""
    configs = {name: (config["rows"], config["content_hash"]) for name, config in manifest["configs"].items()}
    return Release(version, content_hash, manifest["schema_version"], configs)


def changes(release: Release, previous: Release | None, notes: Iterable[str] = ()) -> str:
    """The change lines of a release: notes first, then what became of each config since the one before."""
    lines = [" ".join(note.split()) for note in notes]
    if previous is None:
        lines.append(
            f"First release: {', '.join(f'`{n}` with {rows:,} rows' for n, (rows, _) in release.configs.items())}."
        )
    else:
        lines += _differences(release, previous)
    return "\n".join(f"- {line}" for line in lines)


def write(folder: Path, releases: Releases) -> None:
    """Writes the file, whole or not at all. Raises EnvironmentFault if the disk refuses."""
    write_whole(folder / RELEASES, releases.render().encode())


def carry(old: Path, new: Path, dataset: str) -> None:
    """Keeps the releases of a folder that is built anew: copies the file as it is, unless another dataset was there.

    Raises OSError if the disk refuses.
    """
    path = old / RELEASES
    if path.is_file():
        title = _TITLE.match(path.read_text(encoding="utf-8", errors="replace"))
        if title is None or title[1] == dataset:
            shutil.copyfile(path, new / RELEASES)


def freeze(
    folder: Path,
    version: str,
    notes: Iterable[str] = (),
    published: Releases | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[Release, Releases]:
    """What a release of a folder would be, and the table with it. Writes nothing.

    Args:
        folder: of the dataset.
        version: such as 1.0.0.
        notes: change lines of one's own.
        published: the releases that the Hub knows of.
        progress: called with the name of the config after each row that was validated.

    Raises:
        DataFault: the dataset is not valid.
        UserError: the version stands for other rows, or these rows have another version.
    """
    from forget_datasets import manifest
    from forget_datasets.validate import validate

    version = check_version(version)
    found = validate(folder, progress)
    if found.problems:
        shown = "".join(f"\n  {problem}" for problem in found.problems[:5])
        raise DataFault(f"{folder} is not fit to be released:{shown}\nRun `forget-datasets validate {folder}`.")
    built = manifest.read(folder)
    releases = read(folder, built["dataset"])
    if published:
        releases = releases.continued(published)
    if releases.dataset != built["dataset"]:
        raise UserError(f"{folder / RELEASES} lists releases of {releases.dataset}, and this is {built['dataset']}.")
    plain = make(built, manifest.content_hash(built), version)
    told = Release(
        plain.version, plain.content_hash, plain.schema, plain.configs, changes(plain, releases.before(version), notes)
    )
    releases = releases.with_(told)
    return releases.get(version) or told, releases


def _differences(release: Release, previous: Release) -> Iterable[str]:
    for name, (rows, digest) in release.configs.items():
        if name not in previous.configs:
            yield f"`{name}` is new: {rows:,} rows."
        elif digest == previous.configs[name][1]:
            yield f"`{name}` has the rows of {previous.version}."
        else:
            yield f"`{name}` has other rows than in {previous.version}: {rows:,}, before {previous.configs[name][0]:,}."
    for name in previous.configs:
        if name not in release.configs:
            yield f"`{name}` is gone."
    if release.schema != previous.schema:
        yield f"Schema {release.schema}, before {previous.schema}."


def _row(release: Release) -> str:
    configs = ", ".join(f"`{name}` {rows:,} ({digest})" for name, (rows, digest) in release.configs.items())
    return f"| {release.version} | `{release.content_hash}` | {release.schema} | {configs} |\n"


def _rank(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _number(text: str) -> int:
    return int(text.replace(",", ""))
