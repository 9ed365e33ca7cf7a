"""Scored runs as a report needs them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forget_datasets.rows import FAMILIES
from forget_eval import runs, scores, transcripts


@dataclass(frozen=True)
class Result:
    """A scored run.

    Attributes:
        label: the adapter's name, made unique among the runs of a report.
        stores: how many texts were inscribed in each case that got so far.
        lacking: for each operation that the system lacks, the cases that ended there.
        first_error: id, step and message of the first case that broke.
    """

    folder: Path
    label: str
    manifest: runs.Manifest
    summary: dict[str, Any]
    stores: tuple[int, ...]
    lacking: dict[str, int]
    first_error: str | None

    @property
    def control(self) -> bool:
        """Whether the system was told the case."""
        return bool(self.manifest["adapter"]["told_the_case"])


def load(folders: Sequence[Path]) -> list[list[Result]]:
    """The runs of each dataset together, in the order given, controls last.

    Raises:
        UserError: a folder is no run, or has not been scored.
    """
    manifests = {folder: runs.read(folder) for folder in folders}
    names = Counter((_dataset(m), m["adapter"]["name"]) for m in manifests.values())
    groups: dict[tuple[str, str], list[Result]] = {}
    for folder, manifest in manifests.items():
        name = manifest["adapter"]["name"]
        label = name if names[_dataset(manifest), name] == 1 else f"{name} {manifest['run']}"
        groups.setdefault(_dataset(manifest), []).append(_load(folder, label, manifest))
    return [sorted(group, key=lambda result: result.control) for group in groups.values()]


def tallies(result: Result) -> dict[str, Counter[str]]:
    """How often each status and reason occurs under the strict rate: overall, by family and by family__template."""
    import pyarrow.parquet as pq

    counts: dict[str, Counter[str]] = {name: Counter() for name in ("overall", *FAMILIES)}
    columns = ["family", "template", "status", "reasons"]
    table = pq.read_table(result.folder / scores.SCORES, columns=columns, filters=[("metric", "=", "strict")])
    for row in table.to_pylist():
        for place in ("overall", row["family"], f"{row['family']}__{row['template']}"):
            counts.setdefault(place, Counter()).update([row["status"], *row["reasons"]])
    return counts


def _dataset(manifest: runs.Manifest) -> tuple[str, str]:
    return manifest["dataset"]["config"], manifest["dataset"]["content_hash"]


def _load(folder: Path, label: str, manifest: runs.Manifest) -> Result:
    stores, lacking, first_error = _read(transcripts.read(folder / runs.TRANSCRIPTS))
    return Result(folder, label, manifest, scores.read_summary(folder), stores, lacking, first_error)


def _read(answers: Iterable[transcripts.Transcript]) -> tuple[tuple[int, ...], dict[str, int], str | None]:
    stores: list[int] = []
    lacking: Counter[str] = Counter()
    first_error = None
    for answer in answers:
        if answer["operations"] or answer["final"] is not None:
            stores.append(answer["store"])
        lacking.update(operation["op"] for operation in answer["operations"] if operation["status"] == "n/a")
        if (error := answer["error"]) and first_error is None:
            first_error = f"{answer['id']}, {error['during']}: {error['kind']}: {error['message']}".split("\n")[0]
    return tuple(stores), dict(lacking), first_error
