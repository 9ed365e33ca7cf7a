"""A run is a folder: `manifest.json` says what was run, `transcripts.jsonl` what the system answered."""

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.remote import is_url
from forget_datasets.shapes import misfit, read_json
from forget_datasets.staging import write_whole as write_whole
from forget_eval import __version__, adapters, locks, transcripts
from forget_eval.data import Dataset
from forget_eval.packages import version
from forget_eval.redaction import redact
from forget_eval.transcripts import Writer

MANIFEST = "manifest.json"
TRANSCRIPTS = transcripts.FILE
SHARDS = "shards"
"""A folder of transcripts that are not merged yet, while a run is played on Ray."""

SCHEMA_VERSION = 1
"""Of manifest, transcripts and scores together, and in the manifest.

Raised when a field goes, gets another name or means something else, so that a reader of the version before would refuse
the run or misread it. A field that is new and that no reader needs raises nothing. With every version come its step in
`MIGRATIONS` and a golden run in the tests. What is computed from others, as scores and summary are, needs no step: an
old summary that lacks something says how it is made again.
"""

REPEAT = "repeat-"
"""Begins the names of the folders of repeats."""

Manifest = dict[str, Any]
MIGRATIONS: Mapping[int, Callable[[Manifest], Manifest]] = {}
"""Version to what makes of a manifest of it one of the version after. So far there has been one version."""
_PACKAGES = ("forget-datasets", "datasets", "huggingface_hub", "numpy", "onnxruntime", "pyarrow", "scipy", "tokenizers")
_IDENTITY = {
    "task": ("task",),
    "dataset config": ("dataset", "config"),
    "dataset content hash": ("dataset", "content_hash"),
    "adapter": ("adapter", "name"),
    "adapter class": ("adapter", "class"),
    "adapter version": ("adapter", "version"),
    "adapter source": ("adapter", "source_sha256"),
    "adapter configuration": ("adapter", "configuration"),
    "environment": ("adapter", "isolation", "environment"),
    "environment's Python": ("adapter", "isolation", "python"),
    "environment's requirements": ("adapter", "isolation", "requirements_sha256"),
    "environment's packages": ("adapter", "isolation", "packages"),
    "embedder": ("embedder", "name"),
    "embedder weights": ("embedder", "weights_sha256"),
    "embedder settings": ("embedder", "settings"),
    "k": ("k",),
    "answerer": ("assistant", "answerer"),
    "forget policy": ("assistant", "forget_policy"),
    "recalled texts": ("assistant", "recall"),
    "chat model": ("assistant", "model"),
}
"""What must be equal for a run to go on, and where the manifest has it."""
_OR_NONE = (str, None)
_CONFIG = {"config": str, "content_hash": str, "n": int, "parameters": dict}
_SHAPE = {
    "schema_version": int,
    "run": str,
    "task": tuple(transcripts.SHAPES),
    "dataset": ({"path": str, **_CONFIG}, {"url": str, **_CONFIG}, {"repo": str, "revision": str, **_CONFIG}),
    "adapter": {
        "name": str,
        "class": str,
        "distribution": _OR_NONE,
        "version": _OR_NONE,
        "told_the_case": bool,
        "operations": {str: {"kind": str, "chooser": str}},
    },
    "embedder": ({"name": _OR_NONE, "weights_sha256?": _OR_NONE}, None),
    "k": int,
    "played?": {"engine": str, "workers": int},
    "seeds?": {"bootstrap?": int},
}
"""What anybody reads of a manifest."""
_ASSISTANT = {
    "answerer": str,
    "forget_policy?": str,
    "recall?": {"default": int, "target": int},
    "model?": {"name": str},
}
"""What a run of MemBehave has more."""


def describe(folder: Path, dataset: Dataset, memory: object, embedder: object | None, k: int) -> Manifest:
    """The manifest of a run that is about to begin in `folder`.

    Secrets are redacted where there is free text: the system's configuration and the embedder's settings. Everything
    else is what a run is found and compared by, and stays as it is.

    Args:
        folder: of the run.
        dataset: opened and checked.
        memory: the system under test; what it declares of itself is taken over.
        embedder: the one that it was given, None if it takes none.
        k: how many texts a query may recall.

    Raises:
        UserError: the system declares what is none; the message names it.
    """
    adapter = adapters.describe(memory)
    adapter["configuration"] = redact(adapter["configuration"])
    return {
        "schema_version": SCHEMA_VERSION,
        "run": folder.resolve().name,
        "task": dataset.task,
        "dataset": _dataset(folder, dataset),
        "adapter": adapter,
        "embedder": _embedder(embedder),
        "k": k,
        "seeds": {"dataset": dataset.parameters.get("seed")},
        "started": datetime.now(UTC).isoformat(timespec="microseconds"),
        "packages": _versions(adapter["distribution"]),
        "git": _git(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": {"system": platform.platform(), "machine": platform.machine(), "cpus": os.cpu_count()},
    }


@contextmanager
def opened(folder: Path, manifest: Manifest, force: bool = False) -> Iterator[Writer]:
    """Begins a run, or goes on with one that has the same parameters; no other process can while the block runs.

    A finished run needs no disk that can be written. Once the block has ended well, all shards are merged, and go.

    Args:
        folder: of the run.
        manifest: as `describe` makes it.
        force: whether a run that is there is removed first.

    Yields:
        The transcripts, to be appended to.

    Raises:
        UserError: another process runs there; the folder holds a run with other parameters, or something else.
        EnvironmentFault: the disk refuses.
    """
    make_folder(folder, "a run")
    with locks.held(folder, "a run"):
        _begin(folder, manifest, force)
        with Writer(folder / TRANSCRIPTS, transcripts.SHAPES[manifest["task"]]) as writer:
            yield writer
        with _emptying(folder):
            _remove(folder / SHARDS)


def differences(one: Manifest, other: Manifest) -> dict[str, tuple[Any, Any]]:
    """In which parameters two runs differ: what is asked of whom, by which version, with what settings.

    Returns:
        The two values by the parameter's name; of two mappings the entries alone that differ.
    """
    pairs = {name: _differing(parameter(one, name), parameter(other, name)) for name in _IDENTITY}
    return {name: (a, b) for name, (a, b) in pairs.items() if a != b}


def parameter(manifest: Manifest, name: str) -> Any:
    """A parameter of a run by the name that `differences` has for it; None if the run has none."""
    found: Any = manifest
    for key in _IDENTITY[name]:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def read(folder: Path) -> Manifest:
    """The manifest of a run.

    Raises:
        UserError: there is none, it is of a newer version, or not as a run writes it; the message names the field.
    """
    path = folder / MANIFEST
    try:
        manifest = read_json(path, dict, "The run cannot be used: make it again in another folder.")
    except (FileNotFoundError, NotADirectoryError):
        told = f"{folder} is no run: it has no {MANIFEST}"
        if found := inside(folder):
            raise UserError(f"{told}, but holds runs. Name one of them: {', '.join(map(str, found))}") from None
        raise UserError(f"{told}. `forget-eval run` or `bench` makes one.") from None
    if "adapter" not in manifest:
        raise UserError(f"{path}: not the manifest of a run. A run is the folder that `forget-eval run --out` names.")
    manifest = _migrated(path, manifest)
    if what := misfit(manifest, {**_SHAPE, "assistant": _ASSISTANT} if manifest.get("task") == "membehave" else _SHAPE):
        raise UserError(f"{path}: {what}. The run cannot be used: make it again in another folder.")
    return manifest


def repeat_folders(folder: Path, n: int) -> list[Path]:
    """Where the runs of a system go: the folder itself for one, else n folders in it.

    Raises:
        UserError: the folder holds a run where repeats should go, or repeats where a run should.
    """
    if n > 1 and (folder / MANIFEST).exists():
        raise UserError(f"{folder} holds a run, and repeats go into folders of their own. Name another --out.")
    if n == 1 and repeats_in(folder):
        raise UserError(f"{folder} holds repeats. Name another --out, or ask for --repeats again.")
    return [folder] if n == 1 else [folder / f"{REPEAT}{number}" for number in range(1, n + 1)]


def inside(folder: Path) -> list[Path]:
    """The runs, and folders of repeats, that lie in folders of their own inside a folder, by name."""
    found = {path.parent for path in folder.glob(f"*/{TRANSCRIPTS}") if (path.parent / MANIFEST).exists()}
    found |= {path.parent.parent for path in folder.glob(f"*/{REPEAT}*/{MANIFEST}")}
    return sorted(found)


def is_shared(folder: Path) -> bool:
    """Whether the runs of several systems go into folders of their own inside a folder; repeats are of one system."""
    return any(not found.name.startswith(REPEAT) for found in inside(folder))


def repeats_in(folder: Path) -> list[Path]:
    """The runs of a folder of repeats in their order; none if it is something else."""
    if (folder / MANIFEST).exists():
        return []
    found = [path for path in folder.glob(f"{REPEAT}*") if path.name.removeprefix(REPEAT).isdecimal()]
    return sorted(found, key=lambda path: int(path.name.removeprefix(REPEAT)))


def dataset_of(folder: Path, manifest: Manifest) -> tuple[str, str | None]:
    """Where the dataset of a run is: a folder, a URL or a repository, and the revision.

    A path leads from the run's folder to the dataset's, both without symbolic links; `describe` writes it so.
    """
    dataset = manifest["dataset"]
    if "path" in dataset:
        return os.path.normpath(folder.resolve() / dataset["path"]), None
    return (dataset["url"], None) if "url" in dataset else (dataset["repo"], dataset["revision"])


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Writes JSON that appears whole or not at all."""
    write_whole(path, (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace"))


def _begin(folder: Path, manifest: Manifest, force: bool) -> None:
    if force and os.path.exists(folder / MANIFEST):
        _start_over(folder)
    if os.path.exists(folder / MANIFEST):
        _require_same(folder, read(folder), manifest)
        return
    if os.path.exists(folder / TRANSCRIPTS):
        raise UserError(
            f"{folder} holds transcripts without a {MANIFEST}, so nobody knows what they are of. Remove it."
        )
    write_json(folder / MANIFEST, manifest)


def make_folder(folder: Path, use: str) -> None:
    """Makes a folder and those above it, if need be.

    Args:
        folder: may be there.
        use: what needs it, as "a run".

    Raises:
        UserError: there is a file in its place.
        EnvironmentFault: the disk refuses.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UserError(f"{folder} is a file; {use} needs a folder. Name another --out.") from error
    except OSError as error:
        raise EnvironmentFault(f"cannot make {folder}: {error.strerror or error}") from error


def _migrated(path: Path, manifest: Manifest) -> Manifest:
    """A manifest as this version writes it. One whose version is no number is left for the reader to refuse."""
    found = manifest.get("schema_version")
    if not isinstance(found, int) or isinstance(found, bool):
        return manifest
    if found > SCHEMA_VERSION:
        raise UserError(
            f"{path}: written by a newer version of forget-datasets (schema {found}; {__version__}, which is installed,"
            f" reads up to {SCHEMA_VERSION}). Upgrade it: pip install --upgrade forget-datasets"
        )
    for version_of in range(found, SCHEMA_VERSION):
        if version_of not in MIGRATIONS:
            raise UserError(f"{path}: schema {found} is none that was ever written. Make the run again elsewhere.")
        manifest = {**MIGRATIONS[version_of](manifest), "schema_version": version_of + 1}
    return manifest


def _start_over(folder: Path) -> None:
    """Removes what a run has written in `folder`, and nothing else; the manifest, which makes it a run, goes last.

    Raises EnvironmentFault if the disk refuses.
    """
    read(folder)
    with _emptying(folder):
        for name in ("scores", SHARDS):
            _remove(folder / name)
        for name in (TRANSCRIPTS, "scores.parquet", "summary.json", "residue.json", "SHA256SUMS", MANIFEST):
            (folder / name).unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


@contextmanager
def _emptying(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(f"cannot empty {folder}: {error.strerror or error}") from error


def _require_same(folder: Path, there: Manifest, here: Manifest) -> None:
    if found := differences(there, here):
        words = "; ".join(f"{name} was {old}, is {new}" for name, (old, new) in found.items())
        raise UserError(
            f"{folder} holds a run with other parameters: {words}. Name another --out, or start it over with --force."
        )


def _differing(old: Any, new: Any) -> tuple[Any, Any]:
    """Two values; of two mappings the entries alone that differ."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return old, new
    differ = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return tuple({name: each[name] for name in differ if name in each} for each in (old, new))  # type: ignore[return-value]


def _dataset(folder: Path, dataset: Dataset) -> dict[str, Any]:
    """A folder is named relative to the run, so that both can move together; `dataset_of` finds it again."""
    place: dict[str, Any] = {"repo": dataset.source, "revision": dataset.revision}
    if is_url(dataset.source):
        place = {"url": redact(dataset.source)}
    elif dataset.revision is None:
        place = {"path": os.path.relpath(dataset.folder.resolve(), folder.resolve())}
    return {
        **place,
        "config": dataset.config,
        "content_hash": dataset.content_hash,
        "n": dataset.n,
        "parameters": dict(dataset.parameters),
    }


def _embedder(embedder: object | None) -> dict[str, Any] | None:
    if embedder is None:
        return None
    fields = ("name", "weights_sha256", "settings", "dim")
    described = {field: getattr(embedder, field, None) for field in fields}
    return {**described, "settings": redact(described["settings"])}


def _versions(distribution: str | None) -> dict[str, str]:
    names = [*_PACKAGES, *([distribution] if distribution else [])]
    return {name: found for name in names if (found := version(name))}


def _git() -> dict[str, Any] | None:
    """Commit of the current folder, and whether tracked files differ from it; None outside of a repository."""
    try:
        commit = _ask_git("rev-parse", "HEAD").strip()
        return {"commit": commit, "dirty": bool(_ask_git("status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.SubprocessError):
        return None


def _ask_git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout
