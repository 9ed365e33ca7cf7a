"""Publishes a plan: one commit, then everything is loaded back and compared, and only then is it tagged.

Until the commit has arrived, main is what it was. From then on main may be ahead, without a tag, and doing the same
again finds the files there, compares them and tags them without a second commit.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from forget_datasets import manifest, releases
from forget_datasets.errors import DataFault, EnvironmentFault, UserError
from forget_datasets.hub.change import Say, commit, left
from forget_datasets.hub.faults import hub_faults
from forget_datasets.hub.plan import Plan
from forget_datasets.hub.pull import check, pull
from forget_datasets.hub.reference import Reference

if TYPE_CHECKING:
    from huggingface_hub import HfApi


def publish(plan: Plan, say: Say = lambda line: None) -> str:
    """Does what was planned, and gives the commit that the tag of the release points to.

    Args:
        plan: of `plan.make`, just made.
        say: takes a line on each step that is done.

    Raises:
        UserError: no token, one without rights, or a tag that stands for other rows.
        DataFault: what came back is not what was sent.
        EnvironmentFault: the Hub or the way to it failed. Either says what was left, and what to do.
    """
    from huggingface_hub import HfApi

    if plan.tagged:
        return _confirm(plan, plan.tagged, say)
    api = HfApi()
    made = commit(api, plan, say)
    with left(
        f"main of {plan.remote.repo} is at {made[:12]} with the new files, and {plan.release.tag} is not tagged. "
        "Run the same command again: it compares what is there and tags it, without another commit."
    ):
        _compare(plan, made)
        say(f"loaded back from {made[:12]}: content hash {plan.release.content_hash[:12]}, as built")
        _tag(api, plan, made)
    say(f"tagged {plan.release.tag}")
    releases.write(plan.folder, plan.releases)
    return made


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


def _compare(plan: Plan, commit: str) -> None:
    """Loads a commit into an empty folder and compares it with the release. Raises DataFault if it is another."""
    with TemporaryDirectory(prefix="forget-datasets-") as folder:
        pulled = pull(Reference(plan.remote.repo, commit), into=Path(folder))
        check(pulled)
        found = manifest.content_hash(pulled.manifest)
    if found != plan.release.content_hash:
        raise DataFault(f"it has content hash {found[:12]}, and the release {plan.release.content_hash[:12]}")


def _tag(api: "HfApi", plan: Plan, commit: str) -> None:
    repo, tag = plan.remote.repo, plan.release.tag
    try:
        api.create_tag(repo, tag=tag, revision=commit, tag_message=plan.release.changes, repo_type="dataset")
    except Exception as error:
        with hub_faults(plan.reference, f"tagging {repo}"):
            tags = api.list_repo_refs(repo, repo_type="dataset").tags
            if not any(there.name == tag and there.target_commit == commit for there in tags):
                raise error from None
