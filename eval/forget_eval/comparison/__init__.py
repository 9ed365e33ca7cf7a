"""Runs of one dataset against each other, paired on its rows: of either task, from the scores in their folders."""

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forget_datasets.errors import UserError
from forget_eval import runs, scores
from forget_eval.bootstrap import REPLICATES, SEED
from forget_eval.comparison import forgeteval, membehave

_CONDITIONS: Mapping[str, Callable[[runs.Manifest], Any]] = {
    "k": lambda manifest: manifest["k"],
    "embedder": lambda manifest: (manifest["embedder"] or {}).get("name"),
    "forget policy": lambda manifest: manifest.get("assistant", {}).get("forget_policy"),
    "answerer": lambda manifest: manifest.get("assistant", {}).get("answerer"),
    "version": lambda manifest: manifest["adapter"]["version"],  # looked at where all runs are of one adapter
    "model": lambda manifest: manifest.get("assistant", {}).get("model", {}).get("name"),
}
"""Under which conditions a run was made, beside the system itself."""


@dataclass(frozen=True)
class Compared:
    """One of the runs that are compared.

    Attributes:
        label: the adapter's name; with that of the folder, or its path, where another run has the same.
        statuses: how many rows ended how, by metric for ForgetEval.
        conditions: those of `_CONDITIONS` in which the runs differ.
    """

    label: str
    folder: str
    told_the_case: bool
    statuses: dict[str, Any]
    conditions: dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Runs of one dataset, pair by pair.

    Attributes:
        task: "forgeteval" or "membehave".
        dataset: what the manifests say of it: config, content_hash and n.
        runs: in the order given.
        method: how the figures are made, one line each, seed included.
        pairs: as `forgeteval.Pair` or `membehave.Pair`; without `all_pairs` each run against the first.
    """

    task: str
    dataset: dict[str, Any]
    runs: tuple[Compared, ...]
    method: tuple[str, ...]
    pairs: tuple[forgeteval.Pair, ...] | tuple[membehave.Pair, ...]


def compare(folders: Sequence[Path], all_pairs: bool = False) -> Comparison:
    """Compares scored runs of one dataset.

    Args:
        folders: two runs or more; the first is the baseline.
        all_pairs: whether every run is compared with every other one, and not with the first alone.

    Raises:
        UserError: fewer than two runs, a folder that is no run or has not been scored since its transcripts changed,
            or runs of different datasets; the message names the content hashes.
    """
    folders = list(dict.fromkeys(folders))
    if len(folders) < 2:
        raise UserError("a comparison needs two runs: forget-eval compare BASELINE RUN")
    manifests = {folder: _manifest(folder) for folder in folders}
    _require_one_dataset(manifests)
    task = manifests[folders[0]]["task"]
    summaries = {folder: scores.read_summary(folder) for folder in folders}
    labels = _labels(manifests)
    differing = _differing(list(manifests.values()))
    compared = tuple(
        Compared(
            labels[folder],
            str(folder),
            manifest["adapter"]["told_the_case"],
            summaries[folder]["statuses"],
            {name: _CONDITIONS[name](manifest) for name in differing},
        )
        for folder, manifest in manifests.items()
    )
    named = [(labels[folder], folder) for folder in folders]
    dataset = {key: manifests[folders[0]]["dataset"][key] for key in ("config", "content_hash", "n")}
    if task == "forgeteval":
        return Comparison(task, dataset, compared, _method(task), forgeteval.pairs(named, all_pairs))
    return Comparison(task, dataset, compared, _method(task), membehave.pairs(named, all_pairs))


def _method(task: str) -> tuple[str, ...]:
    lines = tomllib.loads(Path(__file__).with_name("methods.toml").read_text(encoding="utf-8"))[task]
    return tuple(line.format(replicates=REPLICATES, seed=SEED) for line in lines)


def _manifest(folder: Path) -> runs.Manifest:
    if found := runs.repeats_in(folder):
        raise UserError(f"{folder} holds repeats, each a run: name one of them, such as {found[0]}.")
    return runs.read(folder)


def _require_one_dataset(manifests: Mapping[Path, runs.Manifest]) -> None:
    found = {(m["task"], m["dataset"]["config"], m["dataset"]["content_hash"]) for m in manifests.values()}
    if len(found) > 1:
        each = "\n".join(
            f"    {folder}: {m['task']}, config {m['dataset']['config']}, content hash {m['dataset']['content_hash']}"
            for folder, m in manifests.items()
        )
        raise UserError(f"these runs are of different datasets, and only runs of one can be paired:\n{each}")


def _differing(manifests: Sequence[runs.Manifest]) -> list[str]:
    several = len({m["adapter"]["class"] for m in manifests}) > 1
    asked = [name for name in _CONDITIONS if not (several and name == "version")]
    return [name for name in asked if len({repr(_CONDITIONS[name](m)) for m in manifests}) > 1]


def _labels(manifests: Mapping[Path, runs.Manifest]) -> dict[Path, str]:
    """The shortest names that tell all runs apart: of the adapter, with that of its folder, or the folder's path."""
    forms = (
        {folder: str(m["adapter"]["name"]) for folder, m in manifests.items()},
        {folder: f"{m['adapter']['name']} {folder.resolve().name}" for folder, m in manifests.items()},
    )
    labels = {folder: str(folder) for folder in manifests}
    for form in reversed(forms):
        counts = Counter(form.values())
        labels |= {folder: name for folder, name in form.items() if counts[name] == 1}
    return labels
