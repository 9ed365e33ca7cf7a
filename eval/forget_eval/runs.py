"""A run is a folder: `manifest.json` says what was run, `transcripts.jsonl` what the system answered."""

import inspect
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.rows import OPERATIONS
from forget_eval.data import Dataset
from forget_eval.packages import version
from forget_eval.redaction import redact

MANIFEST = "manifest.json"
TRANSCRIPTS = "transcripts.jsonl"
SCHEMA_VERSION = 1
"""Of manifest and transcripts; raised when either changes."""

Manifest = dict[str, Any]
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
    "embedder": ("embedder", "name"),
    "embedder weights": ("embedder", "weights_sha256"),
    "embedder settings": ("embedder", "settings"),
    "k": ("k",),
    "answerer": ("assistant", "answerer"),
    "forget policy": ("assistant", "forget_policy"),
    "chat model": ("assistant", "model"),
}
"""What must be equal for a run to go on, and where the manifest has it."""


def describe(folder: Path, dataset: Dataset, memory: object, embedder: object | None, k: int) -> Manifest:
    """The manifest of a run that is about to begin in `folder`, secrets redacted.

    Args:
        memory: the system under test; what it declares of itself is taken over.
        embedder: the one that it was given, None if it takes none.
        k: how many texts a query may recall.
    """
    adapter = _adapter(memory)
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "run": folder.resolve().name,
        "task": dataset.task,
        "dataset": _dataset(folder, dataset),
        "adapter": adapter,
        "embedder": _embedder(embedder),
        "k": k,
        "seeds": {"dataset": dataset.manifest.get("parameters", {}).get("seed")},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "packages": _versions(adapter["distribution"]),
        "git": _git(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": {"system": platform.platform(), "machine": platform.machine(), "cpus": os.cpu_count()},
    }
    redacted: Manifest = redact(manifest)
    return redacted


def begin(folder: Path, manifest: Manifest, force: bool = False) -> Manifest:
    """Makes the run folder, or finds it begun with the same parameters; returns the manifest that is there afterwards.

    With `force`, a run that is there is removed first.

    Raises:
        UserError: the folder holds a run with other parameters, or something else.
        EnvironmentFault: the disk refuses.
    """
    if force and (folder / MANIFEST).exists():
        _start_over(folder)
    if (folder / MANIFEST).exists():
        there = read(folder)
        _require_same(folder, there, manifest)
        return there
    if (folder / TRANSCRIPTS).exists():
        raise UserError(
            f"{folder} holds transcripts without a {MANIFEST}, so nobody knows what they are of. Remove it."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(f"cannot make {folder}: {error.strerror or error}") from error
    write_json(folder / MANIFEST, manifest)
    return manifest


def read(folder: Path) -> Manifest:
    """The manifest of a run. Raises UserError if there is none, or it is of a newer version."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{folder} is no run: it has no {MANIFEST}. `forget-eval run` or `bench` makes one.") from None
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}). The run cannot be used.") from error
    found = manifest.get("schema_version") if isinstance(manifest, dict) and "adapter" in manifest else None
    if not isinstance(found, int):
        raise UserError(f"{path}: not the manifest of a run. A run is the folder that `forget-eval run --out` names.")
    if found > SCHEMA_VERSION:
        raise UserError(f"{path}: written by a newer version (schema {found}). Install that one.")
    return dict(manifest)


def dataset_of(folder: Path, manifest: Manifest) -> tuple[str, str | None]:
    """Where the dataset of a run is: a folder or a repository, and the revision."""
    dataset = manifest["dataset"]
    if "path" in dataset:
        return os.path.normpath(folder / dataset["path"]), None
    return dataset["repo"], dataset["revision"]


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Writes JSON that appears whole or not at all."""
    write_whole(path, (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace"))


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that appears whole or not at all. Raises EnvironmentFault with path and reason."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise EnvironmentFault(f"cannot write {path}: {error.strerror or error}") from error


def _start_over(folder: Path) -> None:
    """Removes what a run has written in `folder`, and nothing else. Raises EnvironmentFault if the disk refuses."""
    read(folder)
    try:
        for name in (TRANSCRIPTS, "scores.parquet", "summary.json", MANIFEST):
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / "scores", ignore_errors=True)
    except OSError as error:
        raise EnvironmentFault(f"cannot empty {folder}: {error.strerror or error}") from error


def _require_same(folder: Path, there: Manifest, here: Manifest) -> None:
    pairs = {name: (_at(there, keys), _at(here, keys)) for name, keys in _IDENTITY.items()}
    differences = [f"{name} was {old}, is {new}" for name, (old, new) in pairs.items() if old != new]
    if differences:
        raise UserError(
            f"{folder} holds a run with other parameters: {'; '.join(differences)}. Name another --out, or start it "
            "over with --force."
        )


def _at(manifest: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        manifest = manifest.get(key) if isinstance(manifest, dict) else None
    return manifest


def _dataset(folder: Path, dataset: Dataset) -> dict[str, Any]:
    """A folder is named relative to the run, so that both can move together."""
    place: dict[str, Any] = {"repo": dataset.source, "revision": dataset.revision}
    if dataset.revision is None:
        place = {"path": os.path.relpath(dataset.folder.resolve(), folder.resolve())}
    return {
        **place,
        "config": dataset.config,
        "content_hash": dataset.content_hash,
        "n": dataset.n,
        "parameters": dataset.manifest.get("parameters", {}),
    }


def _adapter(memory: object) -> dict[str, Any]:
    kinds, choosers = getattr(memory, "operations", {}), getattr(memory, "choosers", {})
    distribution = getattr(memory, "distribution", None)
    kind = type(memory)
    return {
        "name": str(getattr(memory, "name", kind.__qualname__)),
        "class": f"{kind.__module__}:{kind.__qualname__}",
        "distribution": distribution or None,
        "version": version(distribution) if distribution else getattr(memory, "version", None),
        "source_sha256": _source_sha256(kind),
        "told_the_case": hasattr(memory, "_tell"),
        "operations": {
            op: {"kind": str(kinds.get(op, "undeclared")), "chooser": str(choosers.get(op, "undeclared"))}
            for op in OPERATIONS
            if hasattr(memory, op)
        },
        "score_scale": str(getattr(memory, "score_scale", "none")),
        "configuration": getattr(memory, "configuration", {}),
    }


def _source_sha256(kind: type) -> str | None:
    """The hash of the file that defines a class, so that a run does not go on with a class that was edited."""
    try:
        source = inspect.getsourcefile(kind)
        return sha256(Path(source).read_bytes()).hexdigest() if source else None
    except (TypeError, OSError):
        return None


def _embedder(embedder: object | None) -> dict[str, Any] | None:
    if embedder is None:
        return None
    fields = ("name", "weights_sha256", "settings", "dim")
    return {field: getattr(embedder, field, None) for field in fields}


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
