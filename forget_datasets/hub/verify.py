"""Whether a release on the Hub still is what it was: its tag, its rows, and what main says of it."""

import warnings
from collections.abc import Callable

from forget_datasets import releases
from forget_datasets.errors import DataFault, EnvironmentFault, UserError
from forget_datasets.hub.pull import check, pull
from forget_datasets.hub.reference import Reference
from forget_datasets.releases import Release


def verify(reference: Reference, progress: Callable[[str], None] | None = None) -> tuple[Release, str, int]:
    """Fetches a release and goes over all its rows. Gives the release, its commit and the number of rows.

    Args:
        reference: of a tag such as v1.0.0.
        progress: called with the name of the config after each row.

    Raises:
        UserError: there is no such release, or it cannot be had.
        DataFault: rows or hashes that do not agree, or a tag that was moved.
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
    from forget_datasets.hub import plan

    try:
        listed = plan.published(reference.repo)
    except EnvironmentFault as error:  # the release agrees with itself, which is all that can be told
        warnings.warn(f"the list of releases on main was not looked at: {error}", stacklevel=2)
        return
    there = listed.get(release.version) if listed else None
    if there is None or there.content_hash != release.content_hash:
        stands = f"is listed with {there.content_hash[:12]}" if there else "is not listed"
        raise DataFault(
            f"{reference} was moved: it has content hash {release.content_hash[:12]}, and on main {release.version} "
            f"{stands}. Do not use it; tell its maintainer."
        )
