"""Builders of the forgetting benchmarks ForgetEval and MemBehave: Forgetting."""

from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    from forget_datasets.rows import GeneratedCase, Item

__version__ = "0.1.0"


@overload
def load(
    source: str,
    config: str | None = None,
    *,
    split: str | None = None,
    revision: str | None = None,
    as_rows: Literal[True],
) -> "list[dict[str, Any]]": ...
@overload
def load(
    source: str,
    config: str | None = None,
    *,
    split: str | None = None,
    revision: str | None = None,
    as_rows: Literal[False] = False,
) -> "list[GeneratedCase] | list[Item]": ...
def load(
    source: str,
    config: str | None = None,
    *,
    split: str | None = None,
    revision: str | None = None,
    as_rows: bool = False,
) -> list[Any]:
    """The rows of a release: pinned, compared with its content hash, cached, so that they load offline from then on.

    Args:
        source: owner/name on the Hub, owner/name@v1.0.0, or a folder that was built or downloaded, be it behind an
            fsspec URL (`s3://bucket/forgeteval`).
        config: such as "en" or "extended"; by default the first.
        split: by default all of them, one after the other.
        revision: tag of the release, such as "v1.0.0"; a branch or a commit is taken too.
        as_rows: plain dictionaries instead of objects.

    Returns:
        `GeneratedCase` objects of ForgetEval, `Item` objects of MemBehave.

    Raises:
        errors.UserError: no such release, config or split; no access; rows that are not those of the release.
        errors.EnvironmentFault: the Hub cannot be reached, and the cache lacks something.
    """
    from forget_datasets.hub.load import load as load_rows

    return load_rows(source, config, split, revision, as_rows)
