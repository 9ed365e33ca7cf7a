"""Whether a release on the Hub still is what it was: its tag, its rows, and what main says of it."""

from collections.abc import Callable
from pathlib import Path

from forget_datasets import releases
from forget_datasets.errors import UserError
from forget_datasets.hub.pull import check, pull
from forget_datasets.hub.reference import Reference
from forget_datasets.releases import Release


def verify(reference: Reference, progress: Callable[[str], None] | None = None) -> tuple[Release, str, int]:
    """Fetches a release and goes over all its rows. Gives the release, its commit and the number of rows.

    Args:
        reference: of a tag such as v1.0.0.
        progress: called with the name of the config after each row.

    Raises:
        UserError: no release, rows or hashes that do not agree, or a tag that was moved.
        EnvironmentFault: the Hub cannot be reached, and the cache lacks something.
    """
    if reference.version is None:
        raise UserError(f"'{reference}' names no release: write {reference.repo}@v1.0.0")
    pulled = pull(reference)
    rows = check(pulled, progress)
    release = releases.read(pulled.folder, pulled.manifest["dataset"]).get(reference.version)
    assert release is not None  # pull refuses a release that is not listed
    assert pulled.commit
    _against_main(reference, release)
    return release, pulled.commit, rows


def _against_main(reference: Reference, release: Release) -> None:
    """Whoever moves a tag moves the table in it; main's table, which only grows, still has the version as it was."""
    from huggingface_hub import hf_hub_download

    try:
        table = hf_hub_download(reference.repo, releases.RELEASES, repo_type="dataset")
    except Exception:  # offline: the release agrees with itself, which is all that can be told
        return
    listed = releases.parse(Path(table).read_text(encoding="utf-8"), f"{releases.RELEASES} of {reference.repo}")
    there = listed.get(release.version)
    if there and there.content_hash != release.content_hash:
        raise UserError(
            f"{reference} was moved: it has content hash {release.content_hash[:12]}, and on main {release.version} is "
            f"listed with {there.content_hash[:12]}. Do not use it; tell its maintainer."
        )
