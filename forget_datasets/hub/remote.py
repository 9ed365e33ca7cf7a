"""What the Hub holds of a dataset repository, and how files that are to go there compare with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from forget_datasets.errors import UserError
from forget_datasets.hub.faults import hub_faults, patiently
from forget_datasets.hub.reference import Reference

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile


class State(StrEnum):
    """What becomes of a file of the repository."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that the repository is to have; `content` lies on the disk or is made for the Hub."""

    path: str
    content: Path | bytes
    size: int
    state: State


@dataclass(frozen=True, slots=True)
class Remote:
    """What the Hub holds of a repository; `head` is the commit of main, None where there is no repository yet."""

    repo: str
    head: str | None = None
    private: bool = False
    files: Mapping[str, "RepoFile"] | None = None
    tags: Mapping[str, str] | None = None


def find(api: "HfApi", repo: str, private: bool = False) -> Remote:
    """What the Hub holds of a repository that is to be written to.

    Args:
        api: the client.
        repo: owner/name.
        private: wanted of a repository that is yet to be made.

    Raises:
        UserError: no access; or the repository is there and public although a private one is wanted.
        EnvironmentFault: the Hub cannot be reached.
    """
    with hub_faults(Reference(repo), f"reading {repo}"):
        remote = patiently(lambda: look(api, repo))
    if private and remote.head and not remote.private:
        raise UserError(f"{remote.repo} is public. Make it private in its settings on the Hub, or leave out --private.")
    return remote


def look(api: "HfApi", repo: str) -> Remote:
    """What the Hub holds; of a renamed repository under its name of now. Raises what the Hub's client raises."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
    from huggingface_hub.hf_api import RepoFile

    try:
        info = api.dataset_info(repo)
    except GatedRepoError:
        raise
    except RepositoryNotFoundError:
        return Remote(repo)
    tree = api.list_repo_tree(info.id, recursive=True, revision=info.sha, repo_type="dataset")
    tags = {tag.name: tag.target_commit for tag in api.list_repo_refs(info.id, repo_type="dataset").tags}
    files = {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}
    return Remote(info.id, info.sha, bool(info.private), files, tags)


def fetch(api: "HfApi", remote: Remote, path: str) -> Path | None:
    """A file of main in the local cache; None where there is none. Raises as `find`."""
    if remote.head is None or path not in (remote.files or {}):
        return None
    with hub_faults(Reference(remote.repo), f"reading {path} of {remote.repo}"):
        return Path(
            patiently(lambda: api.hf_hub_download(remote.repo, path, repo_type="dataset", revision=remote.head))
        )


def text(api: "HfApi", remote: Remote, path: str) -> str | None:
    """A text file of main; None where there is none. Raises as `find`, and UserError for one that is not UTF-8."""
    place = fetch(api, remote, path)
    try:
        return None if place is None else place.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} of {remote.repo} is not UTF-8 ({error.reason}). Mend it on the Hub first.") from error


def upload(path: str, content: Path | bytes, remote: Remote) -> Upload:
    """A file as it would be uploaded."""
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    there = (remote.files or {}).get(path)
    state = State.NEW if there is None else State.SAME if is_same(content, there) else State.CHANGED
    return Upload(path, content, size, state)


def is_same(content: Path | bytes, there: "RepoFile | None") -> bool:
    """Whether a file of the Hub has this content, told by its hash."""
    from io import BytesIO

    from huggingface_hub.utils.sha import git_hash, sha_fileobj

    if there is None:
        return False
    if there.lfs is None:
        data = content if isinstance(content, bytes) else content.read_bytes()
        return there.size == len(data) and there.blob_id == git_hash(data)
    if there.lfs.size != (len(content) if isinstance(content, bytes) else content.stat().st_size):
        return False
    with BytesIO(content) if isinstance(content, bytes) else content.open("rb") as stream:
        return bool(there.lfs.sha256 == sha_fileobj(stream).hex())


def card_diff(old: str | None, new: str, what: str) -> str:
    """What a new card changes in that of the Hub; empty if nothing.

    Args:
        old: the card on the Hub, None where there is none.
        new: what takes its place.
        what: whose card it is, as "the release".
    """
    names = ("README.md on the Hub", f"README.md of {what}")
    return "\n".join(unified_diff((old or "").splitlines(), new.splitlines(), *names, lineterm=""))
