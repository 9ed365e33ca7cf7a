"""The scores of a run: `scores.parquet` (tidy rows) and `summary.json`, from dataset and transcripts alone."""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from forget_datasets.errors import UserError
from forget_eval import runs, transcripts
from forget_eval.data import Dataset, open_dataset
from forget_eval.scoring import forgeteval

if TYPE_CHECKING:
    from forget_eval.membehave.judges import ChatJudge

SCORES = "scores.parquet"
SUMMARY = "summary.json"
SCORERS = "scores"
"""The folder of the files of other scorers."""
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
    source, revision = (data, None) if data else runs.dataset_of(folder, manifest)
    dataset = open_dataset(source, manifest["task"], manifest["dataset"]["config"], revision)
    _require_hash(folder, manifest, dataset)
    if manifest["task"] == "membehave":
        return _score_membehave(folder, manifest, dataset, judge)
    if judge is not None:
        raise UserError(f"{folder} is a run of ForgetEval, which no model judges: leave out --judge.")
    scored = _score_all(folder, dataset)
    summary = forgeteval.summarise(manifest["adapter"]["name"], scored)
    _write_table(folder / SCORES, forgeteval.tidy(manifest["run"], scored), SCHEMA)
    runs.write_json(folder / SUMMARY, summary)
    return summary


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of a scored run. Raises UserError if it has not been scored."""
    try:
        summary: dict[str, Any] = json.loads((folder / SUMMARY).read_bytes())
        return summary
    except FileNotFoundError:
        raise UserError(f"{folder} has not been scored yet. Do so with: forget-eval score {folder}") from None
    except ValueError as error:
        raise UserError(f"{folder / SUMMARY}: not JSON ({error}). Make it again: forget-eval score {folder}") from error


def _score_membehave(
    folder: Path, manifest: runs.Manifest, dataset: Dataset, judge: "ChatJudge | None"
) -> dict[str, Any]:
    from forget_eval.membehave import scores as membehave

    scored = membehave.score(folder, manifest, dataset)
    _write_table(folder / SCORES, scored.rows, membehave.SCHEMA)
    runs.write_json(folder / SUMMARY, scored.summary)
    if judge is None:
        return scored.summary
    judged = membehave.score(folder, manifest, dataset, judge)
    (folder / SCORERS).mkdir(exist_ok=True)
    place = folder / SCORERS / membehave.scorer_name(judge.model)
    _write_table(place.with_name(f"{place.name}.parquet"), judged.rows, membehave.SCHEMA)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in judged.judgements]
    runs.write_whole(
        place.with_name(f"{place.name}.judgements.jsonl"), "".join(lines).encode("utf-8", "backslashreplace")
    )
    runs.write_json(place.with_name(f"{place.name}.json"), judged.summary)
    return judged.summary


def _write_table(path: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, compression="zstd")
    runs.write_whole(path, sink.getvalue())


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
