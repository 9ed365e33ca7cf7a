"""What publishing a release would do: worked out from a folder and from what the Hub holds, and changing neither."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forget_datasets import card, croissant, manifest, releases
from forget_datasets.errors import UserError
from forget_datasets.hub.faults import hub_faults, patiently
from forget_datasets.hub.reference import Reference
from forget_datasets.releases import Release, Releases
from forget_datasets.shards import is_shard

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

_ADDED = "\n+"


class State(StrEnum):
    """What becomes of a file of the repository."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of the release; `content` lies on the disk or is made for the Hub."""

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


@dataclass(frozen=True, slots=True)
class Plan:
    """One release and the way to it.

    asked     the name that was given, which may be an old one
    remote    as it was when the plan was made
    release   what is published, and `releases` the table with it
    uploads   all files of the release
    deletions shards on main that the release lacks
    diff      of the card on main and the new one
    gated     whether the Hub is told to ask who wants the files
    """

    folder: Path
    asked: str
    remote: Remote
    release: Release
    releases: Releases
    uploads: Sequence[Upload]
    deletions: Sequence[str]
    diff: str
    private: bool
    gated: bool

    @property
    def reference(self) -> Reference:
        """The repository at the tag of the release."""
        return Reference(self.remote.repo, self.release.tag)

    @property
    def changed(self) -> Sequence[Upload]:
        """What has to be uploaded."""
        return [upload for upload in self.uploads if upload.state is not State.SAME]

    @property
    def tagged(self) -> str | None:
        """The commit that the tag of the release points to, if there is such a tag."""
        return (self.remote.tags or {}).get(self.release.tag)


def make(
    folder: Path,
    repo: str,
    version: str,
    notes: Iterable[str] = (),
    private: bool = False,
    gated: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Plan:
    """Plans a release; nothing is written, here or on the Hub.

    Args:
        folder: of the dataset.
        repo: owner/name.
        version: such as 1.0.0.
        notes: change lines of one's own.
        private: wanted of a repository that is yet to be made.
        gated: the card is to ask who wants the data, as with a build that was made so.
        progress: called with the name of the config after each row that was validated.

    Raises:
        UserError: as `releases.freeze` and `card.merge`; the repository holds another dataset, or is there and public
            although a private one is wanted.
        EnvironmentFault: the Hub cannot be reached.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    with hub_faults(Reference(repo), f"reading {repo}"):
        remote = patiently(lambda: look(api, repo))
        readme = _text(api, remote, manifest.CARD)
        published = _published(api, remote)
    if private and remote.head and not remote.private:
        raise UserError(f"{remote.repo} is public. Make it private in its settings on the Hub, or leave out --private.")
    built = manifest.read(folder)
    published = _without_failed(published, remote, releases.check_version(version), manifest.content_hash(built))
    release, known = releases.freeze(folder, version, notes, published, progress)
    gated = gated or bool(built.get("parameters", {}).get("gated"))
    made = _made(folder, built, remote.repo, release, known, readme, gated)
    paths = [*sorted(manifest.data_files(built))]
    contents: dict[str, Path | bytes] = {**{path: folder / path for path in paths}, **made}
    uploads = [_upload(path, content, remote) for path, content in contents.items()]
    gone = sorted(path for path in remote.files or {} if is_shard(path) and path not in contents)
    diff = _diff(readme or "", made[manifest.CARD].decode())
    return Plan(folder, repo, remote, release, known, uploads, gone, diff, private, gated)


def describe(plan: Plan) -> Iterator[str]:
    """The plan for a person, line by line."""
    remote, release = plan.remote, plan.release
    if remote.repo != plan.asked:
        yield f"{plan.asked} is called {remote.repo} now."
    place = remote.repo if remote.head else f"{remote.repo} (to be made, {'private' if plan.private else 'public'})"
    yield f"{plan.folder} -> {place}: {plan.releases.dataset} {release.version}, content hash {release.content_hash}"
    for upload in plan.uploads:
        yield f"  {upload.state:8}{upload.size:>13,} B  {upload.path}"
    yield from (f"  {'delete':8}{'':>15}  {path}" for path in plan.deletions)
    if plan.gated:
        yield "The Hub asks who wants the files before it hands them out."
    if plan.diff:
        new = manifest.CARD not in (remote.files or {})
        yield f"The card is new, {plan.diff.count(_ADDED)} lines." if new else f"The card:\n{plan.diff}"
    yield "Changes:"
    yield release.changes
    if plan.tagged:
        yield f"{release.tag} is tagged at {plan.tagged[:12]} already: its rows are compared, and nothing is written."
    elif plan.changed or plan.deletions:
        size = sum(upload.size for upload in plan.changed)
        yield f"One commit of {len(plan.changed)} files ({size:,} B) to main, loaded back, then tagged {release.tag}."
    else:
        yield f"All files are on main already: loaded back, then tagged {release.tag}, without a commit."


def published(repo: str) -> Releases | None:
    """The releases that a repository on the Hub lists; None where there are none. Raises as `make`."""
    from huggingface_hub import HfApi

    api = HfApi()
    with hub_faults(Reference(repo), f"reading {repo}"):
        return _published(api, patiently(lambda: look(api, repo)))


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


def is_same(content: Path | bytes, there: "RepoFile | None") -> bool:
    """Whether a file of the Hub has this content, told by its hash."""
    from huggingface_hub.utils.sha import git_hash, sha_fileobj

    if there is None:
        return False
    if there.lfs is None:
        data = content if isinstance(content, bytes) else content.read_bytes()
        return there.size == len(data) and there.blob_id == git_hash(data)
    if isinstance(content, bytes):
        return False
    if there.lfs.size != content.stat().st_size:
        return False
    with content.open("rb") as stream:
        return bool(there.lfs.sha256 == sha_fileobj(stream).hex())


def _published(api: "HfApi", remote: Remote) -> Releases | None:
    table = _text(api, remote, releases.RELEASES)
    return None if table is None else releases.parse(table, f"{releases.RELEASES} of {remote.repo}")


def _without_failed(known: Releases | None, remote: Remote, version: str, content_hash: str) -> Releases | None:
    """Published releases without an attempt that never got its tag, if it stands in the way of this release."""
    if known is None:
        return None
    stands = [
        each
        for each in known.known
        if each.tag in (remote.tags or {}) or (each.version == version) == (each.content_hash == content_hash)
    ]
    return Releases(known.dataset, stands)


def _diff(old: str, new: str) -> str:
    names = ("README.md on the Hub", "README.md of the release")
    return "\n".join(unified_diff(old.splitlines(), new.splitlines(), *names, lineterm=""))


def _text(api: "HfApi", remote: Remote, path: str) -> str | None:
    """A text file of main; None where there is none."""
    if remote.head is None or path not in (remote.files or {}):
        return None
    place = patiently(lambda: api.hf_hub_download(remote.repo, path, repo_type="dataset", revision=remote.head))
    try:
        return Path(place).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} of {remote.repo} is not UTF-8 ({error.reason}). Mend it on the Hub first.") from error


def _made(
    folder: Path,
    built: Mapping[str, Any],
    repo: str,
    release: Release,
    known: Releases,
    readme: str | None,
    gated: bool,
) -> dict[str, bytes]:
    """The files that are made for the Hub, or read from the folder as they are."""
    from huggingface_hub import constants

    rendered = card.render(built, repo, release.version, gated)
    url = f"{constants.ENDPOINT}/datasets/{repo}"
    texts = {
        manifest.CARD: rendered if readme is None else card.merge(rendered, readme),
        croissant.CROISSANT: croissant.render(folder, built, url, release.version),
        releases.RELEASES: known.render(),
    }
    files = {path: text.encode() for path, text in texts.items()}
    return {**files, manifest.MANIFEST: (folder / manifest.MANIFEST).read_bytes()}


def _upload(path: str, content: Path | bytes, remote: Remote) -> Upload:
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    there = (remote.files or {}).get(path)
    state = State.NEW if there is None else State.SAME if is_same(content, there) else State.CHANGED
    return Upload(path, content, size, state)
