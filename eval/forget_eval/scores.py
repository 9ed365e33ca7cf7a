"""The scores of a run: `scores.parquet` (tidy rows) and `summary.json`, from dataset and transcripts alone."""

import io
import json
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from forget_datasets.errors import UserError
from forget_datasets.rows import FAMILIES, LEVELS
from forget_datasets.schema import mismatches
from forget_datasets.shapes import Shape, read_json
from forget_datasets.verdicts import Reason
from forget_eval import runs, seals, transcripts
from forget_eval.data import Dataset, open_dataset
from forget_eval.protocols import Status
from forget_eval.scoring import forgeteval

if TYPE_CHECKING:
    from forget_eval.membehave.judges import ChatJudge

SCORES = "scores.parquet"
SUMMARY = "summary.json"
SCORERS = "scores"
"""The folder of the files of other scorers."""
STATE = "transcripts"
"""The field of a summary that says what it was computed from (`transcripts.state`)."""
SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("case", pa.string()),
        ("family", pa.string()),
        ("template", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("status", pa.string()),
        ("reasons", pa.list_(pa.string())),
    ]
)
_STATE = {"n": int, "sha256": str}
_INTERVAL = {"value": (float, None), "low": float, "high": float, "n": int}
_RATE = {**_INTERVAL, "passed": int}
_JUDGE = {"model": str, "kappa": (float, None), "agreed": int, "n": int, "undecided": int}


def score(folder: Path, data: str | None = None, judge: "ChatJudge | None" = None) -> dict[str, Any]:
    """Scores a run, finished or not, and returns its summary. The same run gives the same bytes.

    Args:
        folder: the run.
        data: the dataset, if it is no longer where the manifest says.
        judge: a chat judge for a run of MemBehave; its files go to `scores/`, beside those of the deterministic judge.

    Raises:
        UserError: no run, or the dataset is another one than was run.
        EnvironmentFault: the disk refuses.
    """
    manifest = runs.read(folder)
    state = _state(folder, manifest)
    source, revision = (data, None) if data else runs.dataset_of(folder, manifest)
    ran = manifest["dataset"]
    dataset = open_dataset(source, manifest["task"], ran["config"], revision, checked=ran["content_hash"])
    _require_hash(folder, manifest, dataset)
    if manifest["task"] == "membehave":
        summary = _score_membehave(folder, manifest, dataset, judge, state)
        seals.write(folder)
        return summary
    if judge is not None:
        raise UserError(f"{folder} is a run of ForgetEval, which no model judges: leave out --judge.")
    scored = _score_all(folder, dataset)
    summary = {**forgeteval.summarise(manifest["adapter"]["name"], scored), STATE: state}
    _write_table(folder / SCORES, forgeteval.tidy(manifest["run"], scored), SCHEMA)
    runs.write_json(folder / SUMMARY, summary)
    seals.write(folder)
    return summary


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of a scored run.

    Raises:
        UserError: it has not been scored, or not since its transcripts changed, or the summary is not as `score`
            writes it.
    """
    manifest = runs.read(folder)
    again = f"Score it again: forget-eval score {folder}"
    try:
        summary = read_json(folder / SUMMARY, _summary_shape(manifest["task"]), again)
    except FileNotFoundError:
        raise UserError(f"{folder} has not been scored yet. Do so with: forget-eval score {folder}") from None
    scored, there = summary[STATE], _state(folder, manifest)
    if scored != there:
        grown = f", when it had {scored['n']} transcripts; it has {there['n']}" if scored["n"] != there["n"] else ""
        raise UserError(f"{folder} was scored before its transcripts changed{grown}. {again}")
    return summary


def read_judged(folder: Path) -> list[dict[str, Any]]:
    """The summaries by other judges of a scored run; one of older transcripts is warned of and left out.

    Raises:
        UserError: a summary is not as `score` writes it.
    """
    manifest = runs.read(folder)
    state, found = _state(folder, manifest), []
    for path in sorted((folder / SCORERS).glob("*.json")):
        remedy = f"Remove it, or score again: forget-eval score {folder} --judge chat …"
        summary = read_json(path, {**_summary_shape(manifest["task"]), "judge": _JUDGE}, remedy)
        if summary[STATE] == state:
            found.append(summary)
        else:
            warnings.warn(f"{path} was judged before the transcripts changed, and is left out.", stacklevel=2)
    return found


def read_scores(folder: Path, columns: Sequence[str], metric: str, schema: pa.Schema = SCHEMA) -> list[dict[str, Any]]:
    """The rows of `scores.parquet` of one metric.

    Args:
        folder: of the run.
        columns: which to read.
        metric: whose rows to read.
        schema: of the file.

    Raises:
        UserError: it has not been scored, or the file is not as `score` writes it.
    """
    path = folder / SCORES
    again = f"Score it again: forget-eval score {folder}"
    try:
        if problems := mismatches(pq.read_schema(path), schema):
            raise UserError(f"{path}: column '{problems[0][0]}' {problems[0][1]}. {again}")
        table = pq.read_table(path, columns=list(columns), filters=[("metric", "=", metric)])
        return list(table.to_pylist())
    except FileNotFoundError:
        raise UserError(f"{folder} has no {SCORES}. {again}") from None
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a whole Parquet file ({error}). {again}") from error


def _state(folder: Path, manifest: runs.Manifest) -> dict[str, Any]:
    return transcripts.state(folder / runs.TRANSCRIPTS, transcripts.SHAPES[manifest["task"]])


def _summary_shape(task: str) -> Shape:
    if task == "forgeteval":
        return {
            "statuses": _each(forgeteval.METRICS, _each(Status, int)),
            "rates": _each(forgeteval.METRICS, _each(("overall", *FAMILIES), _RATE)),
            "templates": _each(forgeteval.METRICS, {str: _RATE}),
            "reasons": _each(Reason, int),
            STATE: _STATE,
        }
    from forget_eval.scoring import membehave

    return {
        "statuses": _each(membehave.STATUSES, int),
        "excluded": _each(membehave.METRICS, int),
        "metrics": _each(membehave.METRICS, _each(("all", *LEVELS), _INTERVAL)),
        "paired": _each((f"{more}-{less}" for more, less in membehave.PAIRS), _each(membehave.METRICS, _INTERVAL)),
        "bounds": _each(membehave.METRICS, float),
        STATE: _STATE,
    }


def _each(names: Iterable[str], shape: Shape) -> Shape:
    return {str(name): shape for name in names}


def _score_membehave(
    folder: Path, manifest: runs.Manifest, dataset: Dataset, judge: "ChatJudge | None", state: dict[str, Any]
) -> dict[str, Any]:
    from forget_eval.membehave import scores as membehave

    scored = membehave.score(folder, manifest, dataset)
    summary = {**scored.summary, STATE: state}
    _write_table(folder / SCORES, scored.rows, membehave.SCHEMA)
    runs.write_json(folder / SUMMARY, summary)
    if judge is None:
        return summary
    judged = membehave.score(folder, manifest, dataset, judge)
    summary = {**judged.summary, STATE: state}
    (folder / SCORERS).mkdir(exist_ok=True)
    place = folder / SCORERS / membehave.scorer_name(judge.model)
    _write_table(place.with_name(f"{place.name}.parquet"), judged.rows, membehave.SCHEMA)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in judged.judgements]
    runs.write_whole(
        place.with_name(f"{place.name}.judgements.jsonl"), "".join(lines).encode("utf-8", "backslashreplace")
    )
    runs.write_json(place.with_name(f"{place.name}.json"), summary)
    return summary


def _write_table(path: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    rows = [{name: _encodable(value) for name, value in row.items()} for row in rows]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, compression="zstd")
    runs.write_whole(path, sink.getvalue())


def _encodable(value: Any) -> Any:
    """A text as UTF-8 can hold it: the name of a folder may be in no encoding at all."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _score_all(folder: Path, dataset: Dataset) -> list[forgeteval.Score]:
    answers = {t["id"]: t for t in transcripts.read(folder / runs.TRANSCRIPTS)}
    scored = [s for case in dataset.cases() for s in forgeteval.score(case, answers.pop(case.id, None))]
    if answers:
        raise UserError(f"{folder / runs.TRANSCRIPTS}: the dataset has no case '{next(iter(answers))}'.")
    return scored


def _require_hash(folder: Path, manifest: runs.Manifest, dataset: Dataset) -> None:
    ran = manifest["dataset"]["content_hash"]
    if dataset.content_hash != ran:
        raise UserError(
            f"{dataset.source}, config '{dataset.config}', is not the dataset of {folder}: content hash"
            f" {dataset.content_hash[:12]}, and the run had {ran[:12]}. Name the right one with --data."
        )
