"""Scored runs as reports need them: of either task what both tables show, and of ForgetEval the rest."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from forget_datasets.rows import FAMILIES
from forget_eval import runs, scores, transcripts
from forget_eval.report import labels

Answers = Iterable[transcripts.Transcript]


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A scored run of either task.

    Attributes:
        label: the adapter's name, made unique among the runs of its dataset, and printable.
        first_error: id, step and message of the first case that broke, in one line.
    """

    folder: Path
    label: str
    manifest: runs.Manifest
    summary: dict[str, Any]
    first_error: str | None

    @property
    def control(self) -> bool:
        """Whether the system was told the case."""
        return bool(self.manifest["adapter"]["told_the_case"])


@dataclass(frozen=True, kw_only=True)
class Result(Scored):
    """A scored run of ForgetEval.

    Attributes:
        stores: how many texts were inscribed in each case that got so far.
        lacking: for each operation that the system lacks, the cases that ended there; also for their language.
    """

    stores: tuple[int, ...]
    lacking: dict[str, int]


Kind = TypeVar("Kind", bound=Scored)


def load(folders: Sequence[Path]) -> list[list[Result]]:
    """The runs of ForgetEval of each dataset together, in the order given, controls last.

    Raises:
        UserError: as `grouped`.
    """
    return grouped(folders, lambda manifest: str(manifest["adapter"]["name"]), _result)


def grouped(
    folders: Sequence[Path], name: Callable[[runs.Manifest], str], make: Callable[[Scored, Answers], Kind]
) -> list[list[Kind]]:
    """Scored runs, those of each dataset together, in the order given, controls last.

    Args:
        folders: of the runs.
        name: what a run is called, from its manifest. Those of one dataset that share it are told apart as
            `labels.unique` does.
        make: what the report wants, from what all runs have and the transcripts.

    Raises:
        UserError: a folder is no run, has not been scored since its transcripts changed, or holds something damaged.
    """
    datasets: dict[tuple[str, str], dict[Path, runs.Manifest]] = {}
    for folder in folders:
        manifest = runs.read(folder)
        datasets.setdefault(_dataset(manifest), {})[folder] = manifest
    groups = []
    for manifests in datasets.values():
        named = [
            labels.Named(printable(name(manifest)), printable(manifest["run"]), labels.run_id(folder))
            for folder, manifest in manifests.items()
        ]
        group = [
            make(*_scored(folder, label, manifest))
            for (folder, manifest), label in zip(manifests.items(), labels.unique(named), strict=True)
        ]
        groups.append(sorted(group, key=lambda result: result.control))
    return groups


def tallies(result: Result) -> dict[str, Counter[str]]:
    """How often each status and reason occurs under the strict rate: overall, by family and by family__template.

    Raises:
        UserError: as `scores.read_scores`.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("overall", *FAMILIES)}
    for row in scores.read_scores(result.folder, ("family", "template", "status", "reasons"), "strict"):
        for place in ("overall", row["family"], f"{row['family']}__{row['template']}"):
            counts.setdefault(place, Counter()).update([row["status"], *(row["reasons"] or ())])
    return counts


def _scored(folder: Path, label: str, manifest: runs.Manifest) -> tuple[Scored, list[transcripts.Transcript]]:
    summary, answers = scores.read_summary(folder), list(transcripts.read(folder / runs.TRANSCRIPTS))
    first = _first_error(answers)
    return Scored(folder=folder, label=label, manifest=manifest, summary=summary, first_error=first), answers


def _result(scored: Scored, answers: Answers) -> Result:
    stores: list[int] = []
    lacking: Counter[str] = Counter()
    for answer in answers:
        if answer["operations"] or answer["final"] is not None:
            stores.append(answer["store"])
        if answer["status"] == "n/a" and not answer["operations"]:
            lacking["the language"] += 1
        lacking.update(operation["op"] for operation in answer["operations"] if operation["status"] == "n/a")
    return Result(**vars(scored), stores=tuple(stores), lacking=dict(lacking))


def _dataset(manifest: runs.Manifest) -> tuple[str, str]:
    return manifest["dataset"]["config"], manifest["dataset"]["content_hash"]


def _first_error(answers: Answers) -> str | None:
    for answer in answers:
        if error := answer["error"]:
            return printable(f"{answer['id']}, {error['during']}: {error['kind']}: {error['message']}".split("\n")[0])
    return None


def printable(text: str) -> str:
    """A system may say anything: what would steer a terminal is shown as its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
