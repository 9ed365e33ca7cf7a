"""Whether the numbers of a run are its own: its files' hashes, and every number computed anew from dataset and answers.

A run is scored once more, in a folder aside, and what is written there is compared with what the run's folder holds.
"""

import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.shapes import read_json
from forget_eval import repeats, runs, scores, seals
from forget_eval.data import open_dataset
from forget_eval.report.results import printable

if TYPE_CHECKING:
    from forget_eval.membehave.chat import Chat

NOTHING = "nothing"
"""Stands for a number that is stated and cannot be computed, or the other way round."""
_CLOSE = 1e-9  # numbers are written with 12 places
_ROW_KEYS = ("case", "item", "metric")
_NO_REPLY = "<no reply: "


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        file: the file that states it.
        key: where in the file, such as "rates.strict.purge.low".
        stated: what stands there.
        found: what should stand there.
    """

    file: str
    key: str
    stated: str
    found: str

    def __str__(self) -> str:
        place = f"{self.file}, {self.key}" if self.key else self.file
        return printable(f"{place}: stated {self.stated}, should be {self.found}")


def verify(folders: Sequence[Path], data: str | None = None, report: Path | None = None) -> list[Finding]:
    """Checks scored runs, and a written report of them; finds nothing where all is as it should be.

    Args:
        folders: of the runs.
        data: their dataset, if it is no longer where the manifests say.
        report: a report in Markdown of exactly these runs, or the folder that `report --out` wrote, whose page is then
            checked too.

    Raises:
        UserError: a folder is no run, or the dataset or report cannot be read.
        EnvironmentFault: the disk refuses.
    """
    found: list[Finding] = []
    with TemporaryDirectory(prefix="forget-eval-") as aside:
        copies = list[Path]()
        for number, folder in enumerate(folders):
            copy = Path(aside, str(number))
            for run in (several := runs.repeats_in(folder)) or [folder]:
                copies.append(copy / run.name if several else copy)
                found += _of_run(run, copies[-1], data)
            found += _repeats(folder, copy)
        if report is not None:
            found += _report(report, copies, [data] if data else list(dict.fromkeys(_local_data(folders))))
    return found


def _local_data(folders: Sequence[Path]) -> Iterator[str]:
    """The datasets of runs, but for those of the Hub, which the copies find themselves."""
    for folder in folders:
        for run in runs.repeats_in(folder) or [folder]:
            source, revision = runs.dataset_of(run, runs.read(run))
            if not revision:
                yield source


def _report(report: Path, copies: Sequence[Path], data: Sequence[str]) -> Iterator[Finding]:
    from forget_eval.written import differences

    if all((copy / scores.SUMMARY).exists() for copy in copies):
        yield from differences(report, copies, data)
    else:
        yield Finding(str(report), "", "numbers", f"{NOTHING}: a run cannot be scored")


def _repeats(folder: Path, copy: Path) -> Iterator[Finding]:
    """What is wrong with the summary over repeats."""
    if not (folder / repeats.FILE).exists():
        return
    try:
        repeats.summarise(copy)
    except EnvironmentFault:
        raise
    except UserError as error:
        what = str(error).replace(str(copy), str(folder))
        yield Finding(str(folder / repeats.FILE), "", "a summary", f"{NOTHING}: {what}")
        return
    yield from _summary(folder, copy, repeats.FILE)


def _of_run(folder: Path, copy: Path, data: str | None) -> Iterator[Finding]:
    """What is wrong with a run; leaves a copy that was scored anew."""
    manifest = runs.read(folder)
    yield from _hashes(folder)
    source, revision = (data, None) if data else runs.dataset_of(folder, manifest)
    dataset, ran = open_dataset(source, manifest["task"], manifest["dataset"]["config"], revision), manifest["dataset"]
    if dataset.content_hash != ran["content_hash"]:
        there = f"{dataset.content_hash}, that of {source}; else name the right dataset with --data"
        yield Finding(str(folder / runs.MANIFEST), "dataset.content_hash", ran["content_hash"], there)
        return
    copy.mkdir(parents=True)
    for name in (runs.MANIFEST, runs.TRANSCRIPTS):
        if (folder / name).exists():
            shutil.copyfile(folder / name, copy / name)
    at = None if revision else source
    try:
        scores.score(copy, at)
    except EnvironmentFault:
        raise
    except UserError as error:
        what = str(error).replace(str(copy), str(folder))
        yield Finding(str(folder / runs.TRANSCRIPTS), "", "answers", f"{NOTHING}: {what}")
        return
    yield from _summary(folder, copy, scores.SUMMARY)
    yield from _table(folder, copy, scores.SCORES)
    for path in sorted((folder / scores.SCORERS).glob("*.json")):
        yield from _judged(folder, copy, at, path)


def _hashes(folder: Path) -> Iterator[Finding]:
    recorded, current = seals.read(folder), seals.current(folder)
    if not recorded:
        again = f"the hashes of its files: forget-eval score {folder} records them"
        yield Finding(str(folder / seals.FILE), "", NOTHING, again)
        return
    for name in dict.fromkeys((*recorded, *current)):
        if recorded.get(name) != current.get(name):
            stated, now = recorded.get(name, NOTHING), current.get(name, f"{NOTHING}: there is no such file")
            yield Finding(str(folder / seals.FILE), f"sha256 of {name}", stated, now)


def _summary(folder: Path, copy: Path, name: str) -> Iterator[Finding]:
    """What differs between two JSON files."""
    try:
        stated = read_json(folder / name, dict, "")
    except FileNotFoundError:
        yield Finding(str(folder / name), "", NOTHING, "a file: the run has not been scored")
    except EnvironmentFault:
        raise
    except UserError as error:
        yield Finding(str(folder / name), "", str(error), "JSON")
    else:
        computed = json.loads((copy / name).read_bytes())
        yield from (Finding(str(folder / name), *difference) for difference in _differences(stated, computed))


def _differences(stated: Any, computed: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Key, stated and computed value of every leaf that differs between plain data."""
    if isinstance(stated, dict) and isinstance(computed, dict):
        for name in dict.fromkeys((*computed, *stated)):
            inside = f"{place}.{name}" if place else str(name)
            yield from _differences(stated.get(name, _MISSING), computed.get(name, _MISSING), inside)
    elif not _equal(stated, computed):
        yield place, _shown(stated), _shown(computed)


_MISSING = object()


def _equal(stated: Any, computed: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (stated, computed))
    return math.isclose(stated, computed, rel_tol=0, abs_tol=_CLOSE) if numbers else bool(stated == computed)


def _shown(value: Any) -> str:
    return NOTHING if value is _MISSING else json.dumps(value, ensure_ascii=False)


def _table(folder: Path, copy: Path, name: str) -> Iterator[Finding]:
    """What differs between the rows of two Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        stated = pq.read_table(folder / name).to_pylist()
    except FileNotFoundError:
        yield Finding(str(folder / name), "", NOTHING, "a file: the run has not been scored")
        return
    except (pa.ArrowException, OSError) as error:
        yield Finding(str(folder / name), "", f"no table ({error})", "a Parquet file")
        return
    computed = pq.read_table(copy / name).to_pylist()
    for difference in _differences(_keyed(stated), _keyed(computed)):
        yield Finding(str(folder / name), *difference)


def _keyed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows by case or item and metric; one that comes twice has a number behind."""
    found: dict[str, Any] = {}
    for row in rows:
        key = " ".join(str(row[name]) for name in _ROW_KEYS if name in row)
        found[key if key not in found else f"{key}#{len(found)}"] = row
    return found


def _judged(folder: Path, copy: Path, data: str | None, path: Path) -> Iterator[Finding]:
    """What is wrong with the files of a chat judge, whose recorded replies are read once more."""
    from forget_eval.membehave.judges import ChatJudge

    judgements = path.with_name(f"{path.stem}.judgements.jsonl")
    try:
        model = read_json(path, {"judge": {"model": str}}, "")["judge"]["model"]
        replies = [json.loads(line)["raw"] for line in judgements.read_text(encoding="utf-8").splitlines()]
        recorded = _Recorded(str(model), replies)
        scores.score(copy, data, ChatJudge(cast("Chat", recorded)))
    except EnvironmentFault:
        raise
    except (UserError, OSError, ValueError, KeyError, TypeError, _RanOutError) as error:
        yield Finding(str(judgements), "", "replies of the judge", f"others: {type(error).__name__}: {error}")
        return
    if recorded.left:
        yield Finding(str(judgements), "", f"{len(replies)} replies", f"{len(replies) - recorded.left}")
    name = f"{scores.SCORERS}/{path.name}"
    if not (copy / name).exists():
        yield Finding(str(path), "judge.model", _shown(model), "another model: the file is named for one")
        return
    yield from _summary(folder, copy, name)
    yield from _table(folder, copy, f"{scores.SCORERS}/{path.stem}.parquet")
    if judgements.read_bytes() != (copy / scores.SCORERS / judgements.name).read_bytes():
        yield Finding(str(judgements), "", "verdicts", "others: the recorded replies read otherwise")


class _RanOutError(Exception):
    """More was asked than was recorded."""

    def __str__(self) -> str:
        return "more replies are needed than are recorded"


class _Recorded:
    """Stands in for a chat model: says what it said before, in the same order."""

    def __init__(self, model: str, replies: Sequence[str]) -> None:
        self.model = model
        self._replies = iter(replies)
        self.left = len(replies)

    def say(self, _: Sequence[Mapping[str, str]]) -> str:
        """The next reply; raises ReplyError where there was none, as the model's client did."""
        from forget_eval.membehave.chat import ReplyError

        reply = next(self._replies, None)
        if reply is None:
            raise _RanOutError
        self.left -= 1
        if reply.startswith(_NO_REPLY):
            raise ReplyError(reply.removeprefix(_NO_REPLY).removesuffix(">"))
        return reply
