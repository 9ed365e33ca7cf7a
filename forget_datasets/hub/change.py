"""A change of a dataset repository on the Hub: files that come and go in one commit, shown first and then made."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.hub.faults import explained, hub_faults, patiently, status_of
from forget_datasets.hub.reference import Reference
from forget_datasets.hub.remote import Remote, State, Upload, is_same, look
from forget_datasets.manifest import CARD

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Say = Callable[[str], None]

_ADDED = "\n+"


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is to become of a repository.

    Attributes:
        asked: the name that was given, which may be an old one.
        remote: as it was when the change was planned.
        uploads: all files that it is about, those that are there already too.
        deletions: paths on main that go.
        diff: of the card on main and the new one.
        message: of the commit, one line.
        description: of the commit, any number of lines.
        private: whether a repository that is yet to be made is private.
        gated: whether the Hub is told to ask who wants the files.
    """

    asked: str
    remote: Remote
    uploads: Sequence[Upload]
    deletions: Sequence[str] = ()
    diff: str = ""
    message: str
    description: str = ""
    private: bool = False
    gated: bool = False

    @property
    def reference(self) -> Reference:
        """What an error is about."""
        return Reference(self.remote.repo)

    @property
    def changed(self) -> Sequence[Upload]:
        """What has to be uploaded."""
        return [upload for upload in self.uploads if upload.state is not State.SAME]

    @property
    def size(self) -> int:
        """Bytes that have to be uploaded."""
        return sum(upload.size for upload in self.changed)

    @property
    def place(self) -> str:
        """The repository, and what it will be if it is yet to be made."""
        private = "private" if self.private else "public"
        return self.remote.repo if self.remote.head else f"{self.remote.repo} (to be made, {private})"


def renamed(change: Change) -> Iterator[str]:
    """A line for a person if the repository has another name by now."""
    if change.remote.repo != change.asked:
        yield f"{change.asked} is called {change.remote.repo} now."


def files(change: Change) -> Iterator[str]:
    """The files of a change for a person, line by line, and what becomes of the card."""
    for upload in change.uploads:
        yield f"  {upload.state:8}{upload.size:>13,} B  {upload.path}"
    yield from (f"  {'delete':8}{'':>15}  {path}" for path in change.deletions)
    if change.gated:
        yield "The Hub asks who wants the files before it hands them out."
    if change.diff:
        new = CARD not in (change.remote.files or {})
        yield f"The card is new, {change.diff.count(_ADDED)} lines." if new else f"The card:\n{change.diff}"


def commit(api: "HfApi", change: Change, say: Say) -> str:
    """The commit of main that holds the change: a new one, or the present one if nothing has to change.

    Raises:
        UserError: no token, or one without rights.
        EnvironmentFault: the Hub or the way to it failed. Either says what was left.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete, get_token

    if get_token() is None:
        raise UserError("no token to publish with: log in with `hf auth login`, or set HF_TOKEN. Nothing was done.")
    repo = change.remote.repo
    with left(f"Nothing of {repo} was changed." if change.remote.head else f"Nothing was committed to {repo}."):
        head = _prepare(api, change, say)
        if not change.changed and not change.deletions:
            say(f"the files are on main already, at {head[:12]}")
            return head
        operations: list[CommitOperationAdd | CommitOperationCopy | CommitOperationDelete] = [
            *(CommitOperationAdd(upload.path, upload.content) for upload in change.changed),
            *(CommitOperationDelete(path) for path in change.deletions),
        ]
        try:
            done = api.create_commit(
                repo,
                operations,
                repo_type="dataset",
                commit_message=change.message,
                commit_description=change.description,
                parent_commit=head,
            )
        except Exception as error:
            made = _landed(api, change, error)
        else:
            made = done.oid
    say(f"committed {len(change.changed)} files to main: {made[:12]}")
    return made


@contextmanager
def left(what: str) -> Iterator[None]:
    """Adds to an error what it left, and what to do."""
    try:
        yield
    except _Unclear:
        raise
    except UserError as error:
        raise type(error)(f"{error}\n    {what}") from error
    except KeyboardInterrupt:
        raise EnvironmentFault(f"interrupted.\n    {what}") from None


def _prepare(api: "HfApi", change: Change, say: Say) -> str:
    """Makes the repository and has the Hub ask who wants the files, as far as that is wanted; gives main's commit."""
    repo, head = change.remote.repo, change.remote.head
    with hub_faults(change.reference, f"preparing {repo}"):
        if head is None:
            api.create_repo(repo, repo_type="dataset", private=change.private or None)
            say(f"made {repo}, {'private' if change.private else 'public'}")
        if change.gated:
            api.update_repo_settings(repo, repo_type="dataset", gated="auto")
        return head or str(api.dataset_info(repo).sha)


def _landed(api: "HfApi", change: Change, error: Exception) -> str:
    """The commit, if one that seemed to fail has arrived all the same: an answer can be lost on its way back.

    Raises what the error means if it has not, or if nobody can tell.
    """
    doing = f"committing to {change.remote.repo}"
    if status_of(error) in (401, 403, 412):
        raise explained(error, change.reference, doing) from None
    try:
        there = patiently(lambda: look(api, change.remote.repo))
    except Exception:
        raise _Unclear(
            f"{explained(error, change.reference, doing)}\n    Whether the commit arrived cannot be told, for the Hub "
            "does not answer; nothing is tagged. Run the same command again: it looks, and goes on from what is there."
        ) from None
    found = there.files or {}
    if there.head and all(is_same(upload.content, found.get(upload.path)) for upload in change.uploads):
        return there.head
    raise explained(error, change.reference, doing) from None


class _Unclear(EnvironmentFault):
    """It cannot be told what was left; the message says so itself."""
