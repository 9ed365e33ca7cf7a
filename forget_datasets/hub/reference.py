"""What names a dataset on the Hub: `owner/name`, or `owner/name@revision`."""

import re
from dataclasses import dataclass

from forget_datasets.errors import UserError

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_REPO = re.compile(f"{_PART}/{_PART}")
_RELEASE = re.compile(r"v(\d+\.\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class Reference:
    """A repository, and perhaps a tag, branch or commit of it."""

    repo: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{self.repo}@{self.revision}" if self.revision else self.repo

    @property
    def version(self) -> str | None:
        """The version of a revision that is the tag of a release."""
        return version_of(self.revision or "")


def version_of(revision: str) -> str | None:
    """1.0.0 for v1.0.0; None for what is no tag of a release."""
    tag = _RELEASE.fullmatch(revision)
    return tag[1] if tag else None


def is_reference(text: str) -> bool:
    """Whether a text has the form of a repository's name, with or without a revision."""
    return _REPO.fullmatch(text.partition("@")[0]) is not None


def parse(text: str, revision: str | None = None) -> Reference:
    """The reference that a text gives, as `owner/name` or `owner/name@revision`.

    Args:
        text: what a person wrote.
        revision: given beside it.

    Raises:
        UserError: it has another form, or names two revisions.
    """
    repo, at, named = text.partition("@")
    if not _REPO.fullmatch(repo) or (at and not named):
        raise UserError(f"'{text}' names no dataset on the Hub: write owner/name, or owner/name@v1.0.0")
    if named and revision and named != revision:
        raise UserError(f"'{text}' names the revision {named}, and {revision} was given beside it: choose one")
    return Reference(repo, named or revision)
