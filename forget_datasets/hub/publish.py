"""Publishes a plan: one commit, then everything is loaded back and compared, and only then is it tagged.

Until the commit has arrived, main is what it was. From then on main may be ahead, without a tag, and doing the same
again finds the files there, compares them and tags them without a second commit.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from forget_datasets import manifest, releases
from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.hub import plan as plans
from forget_datasets.hub.faults import explained, hub_faults, patiently, status_of
from forget_datasets.hub.plan import Plan
from forget_datasets.hub.pull import check, pull
from forget_datasets.hub.reference import Reference

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Say = Callable[[str], None]


def publish(plan: Plan, say: Say = lambda line: None) -> str:
    """Does what was planned, and gives the commit that the tag of the release points to.

    Args:
        plan: of `plans.make`, just made.
        say: takes a line on each step that is done.

    Raises:
        UserError: no token, one without rights, or a tag that stands for other rows.
        EnvironmentFault: the Hub or the way to it failed. Either says what was left, and what to do.
    """
    from huggingface_hub import HfApi, get_token

    if plan.tagged:
        return _confirm(plan, plan.tagged, say)
    if get_token() is None:
        raise UserError("no token to publish with: log in with `hf auth login`, or set HF_TOKEN. Nothing was done.")
    api = HfApi()
    commit = _commit(api, plan, say)
    with _left(
        f"main of {plan.remote.repo} is at {commit[:12]} with the new files, and {plan.release.tag} is not tagged. "
        "Run the same command again: it compares what is there and tags it, without another commit."
    ):
        _compare(plan, commit)
        say(f"loaded back from {commit[:12]}: content hash {plan.release.content_hash[:12]}, as built")
        _tag(api, plan, commit)
    say(f"tagged {plan.release.tag}")
    releases.write(plan.folder, plan.releases)
    return commit


def _confirm(plan: Plan, commit: str, say: Say) -> str:
    """A tag that is there already must stand for these very rows."""
    try:
        _compare(plan, commit)
    except EnvironmentFault:
        raise
    except UserError as error:
        raise UserError(
            f"{plan.remote.repo} has a tag {plan.release.tag} at {commit[:12]}, which is not what would be published: "
            f"{error}\n    Nothing was changed. A tag stays as it is: release under a new version."
        ) from error
    say(f"{plan.release.tag} is published already, at {commit[:12]}, with these rows: nothing to do")
    releases.write(plan.folder, plan.releases)
    return commit


def _commit(api: "HfApi", plan: Plan, say: Say) -> str:
    """The commit of main that holds the release: a new one, or the present one if nothing has to change."""
    from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete

    repo = plan.remote.repo
    with _left(f"Nothing of {repo} was changed." if plan.remote.head else f"Nothing was committed to {repo}."):
        head = _prepare(api, plan, say)
        if not plan.changed and not plan.deletions:
            say(f"the files are on main already, at {head[:12]}")
            return head
        operations: list[CommitOperationAdd | CommitOperationCopy | CommitOperationDelete] = [
            *(CommitOperationAdd(upload.path, upload.content) for upload in plan.changed),
            *(CommitOperationDelete(path) for path in plan.deletions),
        ]
        try:
            done = api.create_commit(
                repo,
                operations,
                repo_type="dataset",
                commit_message=f"Release {plan.release.version}",
                commit_description=plan.release.changes,
                parent_commit=head,
            )
        except Exception as error:
            commit = _landed(api, plan, error)
        else:
            commit = done.oid
    say(f"committed {len(plan.changed)} files to main: {commit[:12]}")
    return commit


def _prepare(api: "HfApi", plan: Plan, say: Say) -> str:
    """Makes the repository and has the Hub ask who wants the files, as far as that is wanted; gives main's commit."""
    repo, head = plan.remote.repo, plan.remote.head
    with hub_faults(plan.reference, f"preparing {repo}"):
        if head is None:
            api.create_repo(repo, repo_type="dataset", private=plan.private or None)
            say(f"made {repo}, {'private' if plan.private else 'public'}")
        if plan.gated:
            api.update_repo_settings(repo, repo_type="dataset", gated="auto")
        return head or str(api.dataset_info(repo).sha)


def _landed(api: "HfApi", plan: Plan, error: Exception) -> str:
    """The commit, if one that seemed to fail has arrived all the same: an answer can be lost on its way back.

    Raises what the error means if it has not, or if nobody can tell.
    """
    doing = f"committing to {plan.remote.repo}"
    if status_of(error) in (401, 403, 412):
        raise explained(error, plan.reference, doing) from None
    try:
        there = patiently(lambda: plans.look(api, plan.remote.repo))
    except Exception:
        raise _Unclear(
            f"{explained(error, plan.reference, doing)}\n    Whether the commit arrived cannot be told, for the Hub "
            "does not answer; nothing is tagged. Run the same command again: it looks, and goes on from what is there."
        ) from None
    files = there.files or {}
    if there.head and all(plans.is_same(upload.content, files.get(upload.path)) for upload in plan.uploads):
        return there.head
    raise explained(error, plan.reference, doing) from None


def _compare(plan: Plan, commit: str) -> None:
    """Loads a commit into an empty folder and compares it with the release. Raises UserError if it is another."""
    with TemporaryDirectory(prefix="forget-datasets-") as folder:
        pulled = pull(Reference(plan.remote.repo, commit), into=Path(folder))
        check(pulled)
        found = manifest.content_hash(pulled.manifest)
    if found != plan.release.content_hash:
        raise UserError(f"it has content hash {found[:12]}, and the release {plan.release.content_hash[:12]}")


def _tag(api: "HfApi", plan: Plan, commit: str) -> None:
    repo, tag = plan.remote.repo, plan.release.tag
    try:
        api.create_tag(repo, tag=tag, revision=commit, tag_message=plan.release.changes, repo_type="dataset")
    except Exception as error:
        with hub_faults(plan.reference, f"tagging {repo}"):
            tags = api.list_repo_refs(repo, repo_type="dataset").tags
            if not any(there.name == tag and there.target_commit == commit for there in tags):
                raise error from None


class _Unclear(EnvironmentFault):
    """It cannot be told what was left; the message says so itself."""


@contextmanager
def _left(what: str) -> Iterator[None]:
    """Adds to an error what it left, and what to do."""
    try:
        yield
    except _Unclear:
        raise
    except UserError as error:
        raise type(error)(f"{error}\n    {what}") from error
    except KeyboardInterrupt:
        raise EnvironmentFault(f"interrupted.\n    {what}") from None
