"""What publishing a release would do: worked out from a folder and from what the Hub holds, and changing neither."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forget_datasets import card, croissant, manifest, releases
from forget_datasets.hub import change, remote
from forget_datasets.hub.change import Change
from forget_datasets.hub.reference import Reference
from forget_datasets.hub.remote import Remote
from forget_datasets.releases import Release, Releases
from forget_datasets.shards import is_shard

if TYPE_CHECKING:
    from huggingface_hub import HfApi


@dataclass(frozen=True, kw_only=True)
class Plan(Change):
    """One release and the way to it: what is published is `release`, and `releases` the table with it."""

    folder: Path
    release: Release
    releases: Releases

    @property
    def reference(self) -> Reference:
        """The repository at the tag of the release."""
        return Reference(self.remote.repo, self.release.tag)

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
    there = remote.find(api, repo, private)
    readme, known = remote.text(api, there, manifest.CARD), _published(api, there)
    built = manifest.read(folder)
    known = _without_failed(known, there, releases.check_version(version), manifest.content_hash(built))
    release, table = releases.freeze(folder, version, notes, known, progress)
    gated = gated or bool(built.get("parameters", {}).get("gated"))
    made = _made(folder, built, there.repo, release, table, readme, gated)
    paths = [*sorted(manifest.data_files(built))]
    contents: dict[str, Path | bytes] = {**{path: folder / path for path in paths}, **made}
    return Plan(
        asked=repo,
        remote=there,
        uploads=[remote.upload(path, content, there) for path, content in contents.items()],
        deletions=sorted(path for path in there.files or {} if is_shard(path) and path not in contents),
        diff=remote.card_diff(readme, made[manifest.CARD].decode(), "the release"),
        message=f"Release {release.version}",
        description=release.changes,
        private=private,
        gated=gated,
        folder=folder,
        release=release,
        releases=table,
    )


def describe(plan: Plan) -> Iterator[str]:
    """The plan for a person, line by line."""
    release = plan.release
    yield from change.renamed(plan)
    named = f"{plan.releases.dataset} {release.version}"
    yield f"{plan.folder} -> {plan.place}: {named}, content hash {release.content_hash}"
    yield from change.files(plan)
    yield "Changes:"
    yield release.changes
    if plan.tagged:
        yield f"{release.tag} is tagged at {plan.tagged[:12]} already: its rows are compared, and nothing is written."
    elif plan.changed or plan.deletions:
        files = f"{len(plan.changed)} files ({plan.size:,} B)"
        yield f"One commit of {files} to main, loaded back, then tagged {release.tag}."
    else:
        yield f"All files are on main already: loaded back, then tagged {release.tag}, without a commit."


def published(repo: str) -> Releases | None:
    """The releases that a repository on the Hub lists; None where there are none. Raises as `make`."""
    from huggingface_hub import HfApi

    api = HfApi()
    return _published(api, remote.find(api, repo))


def _published(api: "HfApi", there: Remote) -> Releases | None:
    table = remote.text(api, there, releases.RELEASES)
    return None if table is None else releases.parse(table, f"{releases.RELEASES} of {there.repo}")


def _without_failed(known: Releases | None, there: Remote, version: str, content_hash: str) -> Releases | None:
    """Published releases without an attempt that never got its tag, if it stands in the way of this release."""
    if known is None:
        return None
    stands = [
        each
        for each in known.known
        if each.tag in (there.tags or {}) or (each.version == version) == (each.content_hash == content_hash)
    ]
    return Releases(known.dataset, stands)


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
