"""Runs of one dataset against each other, paired on its rows: of either task, from the scores in their folders."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forget_datasets.errors import UserError
from forget_eval import runs, scores
from forget_eval.bootstrap import REPLICATES, SEED
from forget_eval.comparison import forgeteval, membehave
from forget_eval.comparison.pairs import Pair
from forget_eval.report import labels
from forget_eval.report.results import printable

_OF_THE_DATASET = ("task", "dataset config", "dataset content hash")
_OF_THE_SYSTEM = ("adapter", "environment")  # with all that begins so
"""Of what makes a run, what is no condition under which a system was run, where several are compared."""


@dataclass(frozen=True)
class Compared:
    """One of the runs that are compared.

    Attributes:
        label: the adapter's name, made unique as `labels.unique` does.
        statuses: how many rows ended how, by metric for ForgetEval.
        conditions: the parameters in which the runs differ, beside the system itself.
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
        pairs: without `all_pairs` each run against the first.
    """

    task: str
    dataset: dict[str, Any]
    runs: tuple[Compared, ...]
    method: tuple[str, ...]
    pairs: tuple[Pair[forgeteval.Cell], ...] | tuple[Pair[membehave.Cell], ...]


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
    manifests = {folder: _manifest(folder) for folder in folders}
    if len(folders) < 2:
        raise UserError("a comparison needs two runs: forget-eval compare BASELINE RUN")
    _require_one_dataset(manifests)
    task = manifests[folders[0]]["task"]
    summaries = {folder: scores.read_summary(folder) for folder in folders}
    names = _labels(manifests)
    conditions = _conditions(list(manifests.values()))
    compared = tuple(
        Compared(
            names[folder],
            str(folder),
            manifest["adapter"]["told_the_case"],
            summaries[folder]["statuses"],
            own,
        )
        for (folder, manifest), own in zip(manifests.items(), conditions, strict=True)
    )
    named = [(names[folder], folder) for folder in folders]
    dataset = {key: manifests[folders[0]]["dataset"][key] for key in ("config", "content_hash", "n")}
    if task == "forgeteval":
        return Comparison(task, dataset, compared, _method(task), forgeteval.pairs(named, all_pairs))
    bounds = summaries[folders[0]]["bounds"]
    return Comparison(task, dataset, compared, _method(task), membehave.pairs(named, all_pairs, bounds))


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


def _conditions(manifests: Sequence[runs.Manifest]) -> list[dict[str, Any]]:
    """The parameters that differ from run to run, and each run's values; those of a system only where there is one."""
    first, several = manifests[0], len({m["adapter"]["class"] for m in manifests}) > 1
    names = dict.fromkeys(name for manifest in manifests for name in runs.differences(first, manifest))
    left_out = (*_OF_THE_DATASET, *(_OF_THE_SYSTEM if several else ()))
    asked = [name for name in names if not name.startswith(left_out)]
    return [{name: runs.parameter(manifest, name) for name in asked} for manifest in manifests]


def _labels(manifests: Mapping[Path, runs.Manifest]) -> dict[Path, str]:
    named = [
        labels.Named(printable(m["adapter"]["name"]), printable(m["run"]), labels.run_id(folder))
        for folder, m in manifests.items()
    ]
    return dict(zip(manifests, labels.unique(named), strict=True))
