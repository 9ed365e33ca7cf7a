"""Makes the golden runs of the schema version of now in tests/golden/versions, with the small datasets they are of.

Those of a version that was published are never made again: they stand for the runs that people have.
"""

import json
import shutil
import sys
from collections import defaultdict
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

from forget_datasets.build import build_forgeteval, build_membehave
from forget_datasets.manifest import MANIFEST
from forget_datasets.membehave.screening import FEWEST_MESSAGES
from forget_datasets.rows import content_hash
from forget_datasets.schema import SCHEMAS, to_batch
from forget_datasets.shards import find, read_rows
from forget_eval import bench, runs, scores
from forget_eval.data import open_dataset
from forget_eval.membehave.bench import run_system
from forget_eval.membehave.systems import Settings

ROOT = Path(__file__).parent.parent.resolve()
GOLDEN = ROOT / "tests" / "golden" / "versions"
SYSTEM = "keyword_memory:Keyword"
CONFIGS = {"forgeteval": "handmade", "membehave": "default"}


@click.command(help=__doc__)
@click.option("--force", is_flag=True, help="Make them again: only as long as the version is unpublished.")
def main(force: bool) -> None:
    place = GOLDEN / f"v{runs.SCHEMA_VERSION}"
    if place.exists() and not force:
        raise click.ClickException(f"{place} is there. With --force it is made again, if its version is unpublished.")
    shutil.rmtree(place, ignore_errors=True)
    sys.path.insert(0, str(GOLDEN))
    with TemporaryDirectory() as built:
        build_forgeteval(Path(built, "forgeteval"), ())
        build_membehave(Path(built, "membehave"), 1, seed=42)
        for task, config in CONFIGS.items():
            _shrink(Path(built, task), place / task / "data", task, config)
    for task in CONFIGS:
        _run(task, place / task)


def _run(task: str, folder: Path) -> None:
    dataset = open_dataset(str(folder / "data"), task)
    if task == "forgeteval":
        bench.run_adapter(dataset, SYSTEM, folder / "run", None)
    else:
        run_system(dataset, SYSTEM, folder / "run", None, Settings())
    path = folder / "run" / runs.MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest |= {"git": None, "platform": {"system": "Linux", "machine": "x86_64", "cpus": 2}}  # nobody's machine
    runs.write_json(path, manifest)
    transcripts = folder / "run" / runs.TRANSCRIPTS
    transcripts.write_bytes(transcripts.read_bytes().replace(f"{ROOT}/".encode(), b""))  # tracebacks name files
    scores.score(folder / "run")


def _shrink(source: Path, out: Path, task: str, config: str) -> None:
    """A dataset of one config; of a history little but what is evidence of something."""
    found = {split: shards for (name, split), shards in find(source).items() if name == config}
    rows = {split: [row for s in shards for row in read_rows(s.path, SCHEMAS[task])] for split, shards in found.items()}
    if task == "membehave":
        _shorten([row for split in rows.values() for row in split])
    splits = {split: _write(out, f"data/{config}/{split}-00000-of-00001.parquet", rows[split], task) for split in rows}
    everything = [row for split in rows.values() for row in split]
    figures = {"rows": len(everything), "content_hash": content_hash(everything), "splits": splits}
    manifest = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
    kept = {name: manifest[name] for name in ("dataset", "schema_version", "parameters")}
    (out / MANIFEST).write_text(json.dumps({**kept, "configs": {config: figures}}, indent=1) + "\n", encoding="utf-8")


def _write(out: Path, file: str, rows: list[dict[str, Any]], task: str) -> dict[str, Any]:
    """Writes a split, smaller than a release is written; returns what the manifest says of it."""
    (out / file).parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_batches([to_batch(rows, SCHEMAS[task])])
    pq.write_table(table, out / file, compression="zstd", compression_level=19, write_statistics=False)
    return {"rows": len(rows), "content_hash": content_hash(rows), "files": [file]}


def _shorten(rows: list[dict[str, Any]]) -> None:
    """Leaves of the history that some rows share the messages that are evidence in one of them, and few others."""
    told: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        for evidence in row["evidence"]:
            told[evidence["session_id"]] |= {evidence["message_index"], evidence["message_index"] + 1}
    for place in told.values():
        place.update(next(i for i in count() if i not in place) for _ in range(FEWEST_MESSAGES - len(place)))
    for row in rows:
        row["sessions"] = [session for session in row["sessions"] if session["session_id"] in told]
        for session in row["sessions"]:
            kept = sorted(told[session["session_id"]])
            session["messages"] = [session["messages"][i] for i in kept]
        for evidence in row["evidence"]:
            evidence["message_index"] = sorted(told[evidence["session_id"]]).index(evidence["message_index"])


if __name__ == "__main__":
    main()
