"""Scored runs as rows of two tables, `summaries` and `scores`: what a results dataset holds.

A run is known by `run_id`, the SHA-256 of its manifest, which is written once as the run begins. What a machine calls
its folders is in no row.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa

from forget_datasets.errors import UserError
from forget_eval import runs, scores
from forget_eval.report import frames, groups, labels
from forget_eval.report.results import Scored, printable

Row = dict[str, Any]

_TEXT, _NUMBER = pa.string(), pa.float64()
_RATE = [
    ("metric", _TEXT),
    ("place", _TEXT),
    ("value", _NUMBER),
    ("low", _NUMBER),
    ("high", _NUMBER),
    ("n", pa.int32()),
]
_OPERATION = [("operation", _TEXT), ("kind", _TEXT), ("chooser", _TEXT)]

HEADLINE = {"forgeteval": ("strict", "overall"), "membehave": ("selective_forgetting", "all")}
"""What runs of a task are ranked by: metric and place."""

SUMMARIES = pa.schema(
    [
        *((name, _TEXT) for name in ("run_id", "run", "task", "system", "package", "version")),
        *((name, _TEXT) for name in ("adapter_class", "adapter_sha256")),
        ("operations", pa.list_(pa.struct(_OPERATION))),
        ("told_the_case", pa.bool_()),
        *((name, _TEXT) for name in ("embedder", "embedder_sha256", "dataset_repo", "dataset_revision")),
        *((name, _TEXT) for name in ("dataset_config", "dataset_hash")),
        ("dataset_rows", pa.int32()),
        ("dataset_parameters", _TEXT),
        ("seed", pa.int64()),
        ("bootstrap_seed", pa.int64()),
        ("k", pa.int32()),
        ("k_target", pa.int32()),
        *((name, _TEXT) for name in ("policy", "answerer", "model", "started", "forget_datasets", "python")),
        ("transcripts_sha256", _TEXT),
        ("metric", _TEXT),
        *((name, _NUMBER) for name in ("value", "low", "high")),
        *((name, pa.int32()) for name in ("n", "not_applicable", "errors")),
        ("rates", pa.list_(pa.struct(_RATE))),
    ]
)
"""One row a run. `value`, `low` and `high` are of the headline metric, and `rates` has every other too."""

SCORES = pa.schema(
    [
        *((name, _TEXT) for name in ("run_id", "run", "task", "system", "dataset_config", "dataset_hash", "row")),
        *((name, _TEXT) for name in ("family", "template", "level", "triplet", "target", "metric")),
        ("value", _NUMBER),
        ("status", _TEXT),
        ("reasons", pa.list_(_TEXT)),
        ("label", _TEXT),
    ]
)
"""One row a run, metric and row of the dataset: the rows of `scores.parquet` of either task."""

TABLES: Mapping[str, pa.Schema] = {"summaries": SUMMARIES, "scores": SCORES}
"""The schema of each table by its name."""


@dataclass(frozen=True)
class Results:
    """The rows of both tables, in their order."""

    summaries: list[Row] = field(default_factory=list)
    scores: list[Row] = field(default_factory=list)

    def table(self, name: str) -> list[Row]:
        """The rows of a table."""
        return self.summaries if name == "summaries" else self.scores


def of_runs(folders: Iterable[Path], with_scores: bool = True) -> Results:
    """The rows of scored runs.

    Args:
        folders: of the runs.
        with_scores: whether the rows of `scores` are wanted as well.

    Raises:
        UserError: a folder is no run, is not scored, or has cases that were not run yet.
    """
    found = Results()
    for group in groups.load(folders):
        rates = frames.rates(group).astype({"value": object})
        for result in group.results:
            _require_finished(result)
            own: list[dict[Any, Any]] = rates[rates["system"] == result.label].to_dict("records")
            summary = _summary(group.task, result, own)
            found.summaries.append(summary)
            if with_scores:
                found.scores.extend(_scores(result.folder, summary))
    return _ordered(found)


def merge(new: Results, there: Results) -> Results:
    """Both together; of a run that is in both, the new rows."""
    replaced = {row["run_id"] for row in new.summaries}
    tables = {
        name: [*new.table(name), *(r for r in there.table(name) if r["run_id"] not in replaced)] for name in TABLES
    }
    return _ordered(Results(**tables))


def _ordered(found: Results) -> Results:
    """Rows in an order of their own, so that the same results are the same bytes. A run's scores stay in theirs."""
    summaries = sorted(found.summaries, key=lambda r: (r["task"], r["dataset_config"], r["system"], r["run_id"]))
    place = {row["run_id"]: i for i, row in enumerate(summaries)}
    return Results(summaries, sorted(found.scores, key=lambda row: place.get(row["run_id"], len(place))))


def _require_finished(result: Scored) -> None:
    statuses = result.summary["statuses"]
    if unscored := statuses.get("strict", statuses)["unscored"]:
        raise UserError(f"{result.folder} is not finished: {unscored} rows have not been run. Run it to its end first.")


def _summary(task: str, result: Scored, rates: Sequence[Mapping[str, Any]]) -> Row:
    statuses = result.summary["statuses"]
    statuses = statuses.get("strict", statuses)
    metric, place = HEADLINE[task]
    headline = next(rate for rate in rates if (rate["metric"], rate["place"]) == (metric, place))
    row = {
        "run_id": labels.run_id(result.folder),
        "task": task,
        **_made(result.manifest),
        **_dataset(result.manifest),
        "transcripts_sha256": result.summary[scores.STATE]["sha256"],
        "metric": metric,
        **{name: _number(headline[name]) for name in ("value", "low", "high")},
        "n": int(headline["n"]),
        "not_applicable": statuses["n/a"],
        "errors": statuses["error"],
        "rates": [_rate(rate) for rate in rates],
    }
    return {name: _plain(row[name]) for name in SUMMARIES.names}


def _made(manifest: runs.Manifest) -> Row:
    """The system, and how it was run."""
    adapter, embedder = manifest["adapter"], manifest["embedder"] or {}
    assistant, seeds = manifest.get("assistant", {}), manifest.get("seeds", {})
    recall = assistant.get("recall", {})
    return {
        "run": manifest["run"],
        "system": adapter["name"],
        "package": adapter["distribution"],
        "version": adapter["version"],
        "adapter_class": adapter["class"],
        "adapter_sha256": adapter.get("source_sha256"),
        "operations": [{"operation": op, **_how(how)} for op, how in adapter["operations"].items()],
        "told_the_case": adapter["told_the_case"],
        "embedder": _name(embedder.get("name")),
        "embedder_sha256": embedder.get("weights_sha256"),
        "seed": _whole(seeds.get("dataset")),
        "bootstrap_seed": _whole(seeds.get("bootstrap")),
        "k": recall.get("default", manifest["k"]),
        "k_target": recall.get("target"),
        "policy": assistant.get("forget_policy"),
        "answerer": assistant.get("answerer"),
        "model": _name(assistant.get("model", {}).get("name")),
        "started": _text(manifest.get("started")),
        "forget_datasets": _text(manifest.get("packages", {}).get("forget-datasets")),
        "python": _text(manifest.get("python")),
    }


def _dataset(manifest: runs.Manifest) -> Row:
    dataset = manifest["dataset"]
    return {
        "dataset_repo": dataset.get("repo"),
        "dataset_revision": dataset.get("revision"),
        "dataset_config": dataset["config"],
        "dataset_hash": dataset["content_hash"],
        "dataset_rows": dataset["n"],
        "dataset_parameters": json.dumps(dataset["parameters"], ensure_ascii=False, sort_keys=True),
    }


def _scores(folder: Path, summary: Row) -> Iterator[Row]:
    from forget_eval.membehave.scores import SCHEMA

    schema, answered = (scores.SCHEMA, ()) if summary["task"] == "forgeteval" else (SCHEMA, ("answer_after",))
    shared = {name: summary[name] for name in ("run_id", "run", "task", "system", "dataset_config", "dataset_hash")}
    for metric in dict.fromkeys((*(rate["metric"] for rate in summary["rates"]), *answered)):
        for row in scores.read_scores(folder, schema.names, metric, schema):
            key = row.pop("case", None) or row.pop("item", None)
            yield {name: _plain({**row, **shared, "row": key}.get(name)) for name in SCORES.names}


def _how(how: Mapping[str, Any]) -> Row:
    return {"kind": how["kind"], "chooser": how["chooser"]}


def _rate(rate: Mapping[str, Any]) -> Row:
    numbers = {name: _number(rate[name]) for name in ("value", "low", "high")}
    return {"metric": rate["metric"], "place": rate["place"], **numbers, "n": int(rate["n"])}


def _number(value: Any) -> float | None:
    return None if value is None or value != value else float(value)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _name(name: Any) -> str | None:
    """A name as it is, but of a path its last part alone: where it lies on a machine is nobody's business."""
    if not isinstance(name, str):
        return None
    is_path = name.startswith(("/", ".", "~", "\\")) or name[1:3] in (":\\", ":/") or name.count("/") > 1
    return PurePath(name.replace("\\", "/")).name if is_path else name


def _plain(value: Any) -> Any:
    """A value that every writer takes: what would steer a terminal, or is in no encoding, is an escape."""
    return printable(value) if isinstance(value, str) else value
