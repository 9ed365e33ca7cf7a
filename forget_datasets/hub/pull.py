"""A dataset of the Hub in the local cache: pinned to a commit, and compared with the hash that its release states."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forget_datasets import manifest, releases
from forget_datasets.errors import DataFault, EnvironmentFault, UserError
from forget_datasets.hub.faults import hub_faults, patiently
from forget_datasets.hub.reference import Reference
from forget_datasets.rows import RowHash
from forget_datasets.schema import SCHEMA_VERSION, SCHEMAS
from forget_datasets.shards import read_rows

_AGAIN = "Build or fetch the dataset again."


@dataclass(frozen=True, slots=True)
class Pulled:
    """A folder with the files of a commit; without `commit` it is a folder of one's own."""

    folder: Path
    commit: str | None
    manifest: Mapping[str, Any]


def pull(reference: Reference, config: str | None = None, into: Path | None = None) -> Pulled:
    """Fetches a dataset, or what is missing of it, and holds its manifest against its release.

    Args:
        reference: of the dataset; a tag or branch is pinned to its commit.
        config: of which the data is fetched; None for all.
        into: a folder for the files instead of the cache.

    Raises:
        UserError: there is no such dataset or revision; access is denied; it is no dataset of ours.
        DataFault: it is not the release.
        EnvironmentFault: the Hub cannot be reached, and the cache lacks something.
    """
    from huggingface_hub import snapshot_download

    place = config or "*"
    with hub_faults(reference, f"fetching {reference}"):
        found = patiently(
            lambda: snapshot_download(
                reference.repo,
                repo_type="dataset",
                revision=reference.revision,
                local_dir=into,
                allow_patterns=[manifest.MANIFEST, releases.RELEASES, f"data/{place}/*.parquet"],
            )
        )
    folder = Path(found)
    if not (folder / manifest.MANIFEST).exists():
        raise UserError(f"{reference} has no {manifest.MANIFEST}, so it is no dataset of ours")
    built = manifest.read(folder)
    if reference.version:
        require_release(folder, built, reference)
    return Pulled(folder, None if into else folder.name, built)


def require_release(folder: Path, built: Mapping[str, Any], reference: Reference) -> None:
    """Raises DataFault unless the releases in a folder tie the version of a tag to the content hash of its manifest."""
    version = reference.version or ""
    with _findings():
        release = releases.read(folder, built["dataset"]).get(version)
    if release is None:
        raise DataFault(
            f"{reference}: its {releases.RELEASES} lists no {version}, so nothing says what it should hold."
        )
    content_hash = manifest.content_hash(built)
    if release.content_hash != content_hash:
        raise DataFault(
            f"{reference} is not the release {version}, for {releases.RELEASES} states content hash "
            f"{release.content_hash[:12]} and {manifest.MANIFEST} has {content_hash[:12]}. Tell its maintainer."
        )


def rows_of(pulled: Pulled, config: str, split: str, take: Callable[[dict[str, Any]], None]) -> None:
    """Hands over the rows of a split in order, and compares their hash with the manifest once all are read.

    Raises:
        DataFault: rows that are not those that were built, a file that is damaged.
        UserError: a schema of a later version.
        EnvironmentFault: a file that is missing.
    """
    built, task = pulled.manifest, pulled.manifest["dataset"]
    if built["schema_version"] > SCHEMA_VERSION:
        raise UserError(
            f"{pulled.folder}: schema {built['schema_version']}, and this version reads {SCHEMA_VERSION} at most. "
            "Install the forget-datasets that wrote it."
        )
    part = built["configs"][config]["splits"][split]
    digest = RowHash()
    for file in part["files"]:
        if not (pulled.folder / file).exists():
            raise EnvironmentFault(f"{pulled.folder / file} is missing. {_AGAIN}")
        with _findings():
            for row in read_rows(pulled.folder / file, SCHEMAS[task]):
                digest.add(row)
                take(row)
    if digest.hexdigest() != part.get("content_hash"):
        raise DataFault(
            f"{pulled.folder}: the rows of {config}/{split} are not those that were built (content hash "
            f"{digest.hexdigest()[:12]}, in {manifest.MANIFEST} {str(part.get('content_hash'))[:12]}). {_AGAIN}"
        )


def check(pulled: Pulled, progress: Callable[[str], None] | None = None) -> int:
    """Compares all rows with the manifest: each split, and each config as a whole. Gives their number.

    Raises as `rows_of`, and DataFault where splits do not add up.
    """
    total = 0
    for name, config in pulled.manifest["configs"].items():
        whole = RowHash()

        def take(row: dict[str, Any], name: str = name, whole: RowHash = whole) -> None:
            nonlocal total
            total += 1
            whole.add(row)
            if progress:
                progress(name)

        for split in config["splits"]:
            rows_of(pulled, name, split, take)
        if whole.hexdigest() != config.get("content_hash"):
            raise DataFault(f"{pulled.folder}: the splits of '{name}' do not add up to its content hash. {_AGAIN}")
    return total


@contextmanager
def _findings() -> Iterator[None]:
    """What is wrong with files that were fetched is a finding about them, and not about who asked for them."""
    try:
        yield
    except EnvironmentFault:
        raise
    except UserError as error:
        raise error if isinstance(error, DataFault) else DataFault(str(error)) from error
