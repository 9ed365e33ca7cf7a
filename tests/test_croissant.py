"""Croissant metadata: valid for its library, which loads the same rows; and four descriptions of one build agree."""

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import DatasetCard

from forget_datasets import card
from forget_datasets.build import build_forgeteval
from forget_datasets.croissant import render
from forget_datasets.manifest import CARD
from forget_datasets.rows import RowHash
from forget_datasets.schema import SCHEMAS
from forget_datasets.shards import ShardWriter, find, open_shard, read_rows
from forget_datasets.validate import Problem, validate

mlcroissant = pytest.importorskip("mlcroissant")

Built = tuple[Path, dict[str, Any]]


@pytest.fixture(params=["forgeteval", "membehave"])
def built(request: pytest.FixtureRequest) -> Built:
    found: Built = request.getfixturevalue(f"{request.param}_built")
    return found


def rows_of(folder: Path, dataset: str, config: str, split: str) -> list[dict[str, Any]]:
    return [row for shard in find(folder)[config, split] for row in read_rows(shard.path, SCHEMAS[dataset])]


def plain(value: Any) -> Any:
    """A record as a row: bytes as the text they encode, names without their place."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Mapping):
        return {name.rsplit("/", 1)[-1]: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def without_messages(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what lies two lists of structs deep, which loaders of Croissant do not reach."""
    if "sessions" not in row:
        return row
    sessions = [{"session_id": s["session_id"], "start_time": s["start_time"]} for s in row["sessions"]]
    return {**row, "sessions": sessions}


def test_it_is_valid_and_its_record_sets_load_the_same_rows(built: Built, caplog: pytest.LogCaptureFixture) -> None:
    folder, manifest = built
    with caplog.at_level(logging.ERROR):
        dataset = mlcroissant.Dataset(jsonld=folder / "croissant.json")
    assert not dataset.metadata.ctx.issues.errors
    names = [f"{config}/{split}" for config, figures in manifest["configs"].items() for split in figures["splits"]]
    assert [record_set.id for record_set in dataset.metadata.record_sets] == names
    for name in names:
        expected = [without_messages(row) for row in rows_of(folder, manifest["dataset"], *name.split("/"))]
        assert [plain(record) for record in dataset.records(name)] == expected


def test_a_file_that_is_not_as_described_is_not_loaded(handmade_folder: Path) -> None:
    dataset = mlcroissant.Dataset(jsonld=handmade_folder / "croissant.json")
    path = handmade_folder / "data/handmade/test-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(mlcroissant.GenerationError):
        list(dataset.records("handmade/test"))


def test_a_split_of_several_files_is_one_record_set(tmp_path: Path, forgeteval_built: Built) -> None:
    rows = rows_of(forgeteval_built[0], "forgeteval", "en", "test")
    with ShardWriter(tmp_path / "data/en", "test", SCHEMAS["forgeteval"], group_bytes=10_000, shard_bytes=1) as writer:
        for row in rows:
            writer.add(row)
        written = writer.close()
    assert len(written.files) > 1
    part = {
        "rows": written.rows,
        "content_hash": written.content_hash,
        "files": [f"data/en/{f}" for f in written.files],
    }
    manifest = {"dataset": "forgeteval", "configs": {"en": {"languages": ["en"], "splits": {"test": part}}}}
    (tmp_path / "croissant.json").write_text(render(tmp_path, manifest), encoding="utf-8")
    dataset = mlcroissant.Dataset(jsonld=tmp_path / "croissant.json")
    assert [plain(record) for record in dataset.records("en/test")] == rows


def test_validation_compares_it(handmade_folder: Path) -> None:
    path = handmade_folder / "croissant.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    found["version"] = "1.0.0"  # whoever publishes may add such things
    path.write_text(json.dumps(found), encoding="utf-8")
    assert validate(handmade_folder).problems == []
    found["recordSet"][0]["description"] = found["recordSet"][0]["description"].replace("15 rows", "16 rows")
    found["distribution"].append({"@type": "cr:FileObject", "@id": "data/more.parquet"})
    path.write_text(json.dumps(found), encoding="utf-8")
    assert validate(handmade_folder).problems == [
        Problem("croissant.json", "distribution: there is no 'data/more.parquet'"),
        Problem("croissant.json", "recordSet: 'handmade/test' is not as the rows give it"),
    ]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"distribution": 5, "recordSet": [1]}', '{"recordSet": [{"@id": []}]}', "[" * 10_000]
)
def test_a_file_that_makes_no_sense_is_a_problem(handmade_folder: Path, content: str) -> None:
    (handmade_folder / "croissant.json").write_text(content, encoding="utf-8")
    problems = validate(handmade_folder).problems
    assert problems
    assert {problem.file for problem in problems} == {"croissant.json"}


def in_the_parquet(folder: Path, dataset: str) -> dict[str, Any]:
    """Everything that can be counted in the files themselves."""
    found: dict[str, Any] = {}
    for (config, split), shards in find(folder).items():
        digest = RowHash()
        for row in rows_of(folder, dataset, config, split):
            digest.add(row)
        found[f"{config}/{split}"] = {
            "rows": sum(open_shard(shard.path, SCHEMAS[dataset]).metadata.num_rows for shard in shards),
            "bytes": sum(shard.path.stat().st_size for shard in shards),
            "hash": digest.hexdigest(),
            "files": [shard.path.relative_to(folder).as_posix() for shard in shards],
            "columns": len(SCHEMAS[dataset]),
        }
    return found


def in_the_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{config}/{split}": {
            "rows": part["rows"], "bytes": part["file_bytes"], "hash": part["content_hash"], "files": part["files"],
        }
        for config, figures in manifest["configs"].items()
        for split, part in figures["splits"].items()
    }  # fmt: skip


def in_the_croissant(text: str) -> dict[str, Any]:
    whole = json.loads(text)
    sizes = {file["@id"]: int(file["contentSize"].removesuffix(" B")) for file in whole["distribution"]}
    found = {}
    for record_set in whole["recordSet"]:
        rows, digest = record_set["description"].split(" rows, content hash ")
        file = record_set["field"][0]["source"]["fileObject"]["@id"]
        columns = len(record_set["field"])
        found[record_set["@id"]] = {
            "rows": int(rows), "bytes": sizes[file], "hash": digest, "files": [file], "columns": columns,
        }  # fmt: skip
    return found


def test_manifest_card_croissant_and_parquet_agree_on_every_number(built: Built) -> None:
    folder, manifest = built
    text = (folder / CARD).read_text(encoding="utf-8")
    parquet = in_the_parquet(folder, manifest["dataset"])
    assert in_the_croissant((folder / "croissant.json").read_text(encoding="utf-8")) == parquet
    assert in_the_manifest(manifest) == {
        name: {key: value for key, value in figures.items() if key != "columns"} for name, figures in parquet.items()
    }
    infos = {info["config_name"]: info for info in DatasetCard(text).data["dataset_info"]}
    stated = {f"{config}/{split}": n for config, splits in card.counts(text).items() for split, n in splits.items()}
    assert stated == {name: figures["rows"] for name, figures in parquet.items()}
    for config, figures in manifest["configs"].items():
        here = [found for name, found in parquet.items() if name.startswith(f"{config}/")]
        assert figures["rows"] == sum(found["rows"] for found in here)
        assert infos[config]["download_size"] == sum(found["bytes"] for found in here)
        assert infos[config]["dataset_size"] == sum(split["arrow_bytes"] for split in figures["splits"].values())
        assert len(infos[config]["features"]) == here[0]["columns"]
        assert f"| content hash of `{config}` | `{figures['content_hash']}` |" in text
        assert any(f"| `{config}` |" in line and _has(line, figures["splits"]) for line in text.splitlines())
    category = card.size_category(sum(figures["rows"] for figures in parquet.values()))
    assert f"size_categories:\n- {category}\n" in text


def _has(line: str, splits: Mapping[str, Any]) -> bool:
    return all(str(part["rows"]) in [cell.strip() for cell in line.split("|")] for part in splits.values())


def test_the_same_build_gives_the_same_bytes(tmp_path: Path, tree: Callable[[Path], dict[str, bytes]]) -> None:
    for name in ("one", "other"):
        build_forgeteval(tmp_path / name, n_per_family=1)
    assert tree(tmp_path / "one") == tree(tmp_path / "other")
