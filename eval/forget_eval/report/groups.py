"""Scored runs by dataset, whichever task they are of: what a whole report is made from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forget_eval import runs
from forget_eval.report import membehave, results
from forget_eval.report.results import Scored


@dataclass(frozen=True)
class Group:
    """The scored runs of one dataset, controls last.

    Attributes:
        task: "forgeteval" or "membehave".
        results: at least one; their labels are unique, and hold nothing that a page or a picture could not show.
    """

    task: str
    results: tuple[Scored, ...]

    @property
    def dataset(self) -> runs.Manifest:
        """What the manifests say of the dataset: config, content_hash, n, parameters, and where it was."""
        found: runs.Manifest = self.results[0].manifest["dataset"]
        return found


def load(folders: Iterable[Path]) -> list[Group]:
    """The runs of each dataset together, ForgetEval first, each task's in the order given.

    Raises:
        UserError: a folder is no run, has not been scored since its transcripts changed, or holds something damaged.
    """
    by_task: dict[str, list[Path]] = {"forgeteval": [], "membehave": []}
    for folder in dict.fromkeys(map(Path, folders)):
        by_task[runs.read(folder)["task"]].append(folder)
    loaded: list[tuple[str, Sequence[Scored]]] = []
    loaded += [("forgeteval", group) for group in results.load(by_task["forgeteval"])]
    loaded += [("membehave", group) for group in membehave.load(by_task["membehave"])]
    return [Group(task, tuple(group)) for task, group in loaded]
