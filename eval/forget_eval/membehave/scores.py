"""From the transcripts of a MemBehave run to its summary and tidy rows, by either judge."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from forget_datasets.errors import UserError
from forget_datasets.rows import Item
from forget_eval import runs, transcripts
from forget_eval.bootstrap import SEED
from forget_eval.data import Dataset
from forget_eval.membehave.agreement import agreement
from forget_eval.membehave.bench import items
from forget_eval.membehave.judges import ChatJudge, Judged, Judgement
from forget_eval.scoring import membehave
from forget_eval.transcripts import Transcript

SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("item", pa.string()),
        ("triplet", pa.string()),
        ("level", pa.string()),
        ("target", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("status", pa.string()),
        ("label", pa.string()),
    ]
)


@dataclass(frozen=True)
class Scored:
    """What scoring a run gives: the summary, the rows of `scores.parquet`, and a chat judge's judgements."""

    summary: dict[str, Any]
    rows: list[dict[str, Any]]
    judgements: list[dict[str, Any]]


def score(folder: Path, manifest: runs.Manifest, dataset: Dataset, judge: ChatJudge | None = None) -> Scored:
    """Scores all items of a dataset, run or not.

    Args:
        folder: of the run.
        manifest: of the run.
        dataset: the one that was run.
        judge: None for the deterministic judge. With a chat judge the summary has a further part, `judge`: the model
            and its agreement with the deterministic one.

    Raises:
        UserError: a transcript is of no item of this dataset, or answers other probes.
        EndpointError: the judge is down; its replies so far are kept, and the same call goes on from there.
    """
    answers = _Answers(transcripts.read(folder / runs.TRANSCRIPTS, transcripts.SHAPES["membehave"]))
    scores: list[membehave.ItemScore] = []
    judgements: list[Judgement] = []
    for item in items(dataset):
        transcript = answers.of(item.item_id)
        judged = _judge(judge, item, transcript)
        judgements += judged.judgements if judged else []
        scores.append(membehave.score(item, transcript, judged))
    if foreign := answers.left():
        raise UserError(f"{folder / runs.TRANSCRIPTS}: the dataset has no item '{foreign}'.")
    seed = manifest.get("seeds", {}).get("bootstrap", SEED)
    summary = membehave.summarise(manifest["adapter"]["name"], scores, seed)
    rows = [judgement.to_row() for judgement in judgements]
    if judge is not None:
        summary["judge"] = {"model": judge.model, **agreement(rows)}
    return Scored(summary, membehave.tidy(manifest["run"], scores), rows)


def scorer_name(model: str) -> str:
    """The name of a chat judge's files: no two models share it, and none is too long for a file system."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", model).strip("-.")[:80]
    mark = "" if plain == model else f"-{sha256(model.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"
    return f"chat-{plain or 'model'}{mark}"


class _Answers:
    """Transcripts by item. They come in the order of the items, so few are in memory at a time."""

    def __init__(self, found: Iterator[Transcript]) -> None:
        self._found = found
        self._passed: dict[str, Transcript] = {}

    def of(self, item: str) -> Transcript | None:
        """The transcript of an item, asked for once; None if there is none."""
        while item not in self._passed:
            transcript = next(self._found, None)
            if transcript is None:
                return None
            self._passed[transcript["id"]] = transcript
        return self._passed.pop(item)

    def left(self) -> str | None:
        """The id of a transcript that nobody asked for."""
        return next(iter(self._passed), None) or next((t["id"] for t in self._found), None)


def _judge(judge: ChatJudge | None, item: Item, transcript: Transcript | None) -> Judged | None:
    """The judged answers; None where nobody needs to judge, since nothing was answered."""
    if judge is None or transcript is None:
        return None
    before, after = membehave.answers(item, transcript)
    return None if before is None else judge(item, before, after, membehave.in_sentences(transcript))
