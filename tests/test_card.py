"""The card: its test is that `load_dataset` reads the folder, and that every figure in it is the manifest's."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jinja2
import pytest
from huggingface_hub import DatasetCard

from forget_datasets import card, schema
from forget_datasets.build import build_forgeteval


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("builds") / "forgeteval"
    return out, build_forgeteval(out, ("en", "zh"), n_per_family=4)


LOAD = """
import json, sys
from datasets import load_dataset
from forget_datasets.rows import content_hash
found = {}
for config in ("en", "zh", "handmade"):
    for streaming in (False, True):
        rows = load_dataset(sys.argv[1], config, split="test", streaming=streaming)
        found[f"{config} {streaming}"] = content_hash(rows)
found["features"] = str(rows.features)
found["default"] = content_hash(load_dataset(sys.argv[1], split="test"))
print(json.dumps(found))
"""


def test_load_dataset_reads_the_same_rows_streaming_or_not(built: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    out, manifest = built
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_CACHE": str(tmp_path),
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    }
    command = [sys.executable, "-c", LOAD, str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, config in manifest["configs"].items():
        assert found[f"{name} False"] == found[f"{name} True"] == config["content_hash"]
    assert found["default"] == manifest["configs"]["en"]["content_hash"]
    assert "'n_distractors': Value('int32')" in found["features"]


def test_the_yaml_describes_the_folder(built: tuple[Path, dict[str, Any]]) -> None:
    out, _ = built
    data = DatasetCard.load(out / "README.md").data
    assert (data.language, data.license, data.pretty_name) == (["en", "zh"], "mit", "ForgetEval")
    assert data.size_categories == ["n<1K"]
    assert "text-retrieval" in data.task_categories
    assert "agent-memory" in data.tags
    assert data["configs"] == [
        {"config_name": "en", "default": True, "data_files": [{"split": "test", "path": "data/en/test-*"}]},
        {"config_name": "zh", "data_files": [{"split": "test", "path": "data/zh/test-*"}]},
        {"config_name": "handmade", "data_files": [{"split": "test", "path": "data/handmade/test-*"}]},
    ]
    infos = {info["config_name"]: info for info in data["dataset_info"]}
    for name, rows in {"en": 20, "zh": 20, "handmade": 15}.items():
        [split] = infos[name]["splits"]
        assert (split["name"], split["num_examples"]) == ("test", rows)
        assert infos[name]["download_size"] == (out / f"data/{name}/test-00000-of-00001.parquet").stat().st_size
        assert [feature["name"] for feature in infos[name]["features"]] == schema.FORGETEVAL.names


def test_counts_read_back(built: tuple[Path, dict[str, Any]]) -> None:
    text = (built[0] / "README.md").read_text(encoding="utf-8")
    assert card.counts(text) == {"en": {"test": 20}, "zh": {"test": 20}, "handmade": {"test": 15}}


@pytest.mark.parametrize("text", ["---\ndataset_info: 5\n---\n", "---\n: [\n---\n", "---\ndataset_info: [{}]\n---\n"])
def test_a_card_that_makes_no_sense_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=":"):
        card.counts(text)


def test_a_card_without_yaml_states_nothing() -> None:
    assert card.counts("# My data\n") == {}


def test_the_prose_has_the_figures(built: tuple[Path, dict[str, Any]]) -> None:
    text = (built[0] / "README.md").read_text(encoding="utf-8")
    assert "55 small cases" in text
    assert "| `en` | en | 20 | 4 | 4 | 4 | 4 | 4 | 4 |" in text
    assert "| `handmade` | en | 15 | 3 | 3 | 3 | 3 | 3 | 10 to 24 | 14 to 29 |" in text
    assert "job (2), theme (2), diet (2), long_form (2), handmade (3)" in text
    assert "| oracle | strict | 100.0% | 100.0% | 100.0% | 100.0% | 100.0% | 100.0% |" in text
    assert "| keep-all | strict | 0.0% | 0.0% | 0.0% | 0.0% | 0.0% | 0.0% |" in text
    for name, config in built[1]["configs"].items():
        assert f"| content hash of `{name}` | `{config['content_hash']}` |" in text
    for field in schema.FORGETEVAL:
        assert f"| `{field.name}` | `{schema.type_name(field.type)}` |" in text


def test_tables_are_whole(built: tuple[Path, dict[str, Any]]) -> None:
    """Every row of a table has as many cells as its head; code spans hold no bar."""
    lines = (built[0] / "README.md").read_text(encoding="utf-8").splitlines()
    tables: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("|"):
            tables[-1].append(line)
        elif tables[-1]:
            tables.append([])
    shapes = [{line.count("|") for line in table} for table in tables if table]
    assert len(shapes) == 7
    assert all(len(shape) == 1 for shape in shapes)
    assert not any(line.endswith(" ") for line in lines)


def test_what_the_manifest_lacks_is_an_error(built: tuple[Path, dict[str, Any]]) -> None:
    manifest = copy.deepcopy(built[1])
    del manifest["configs"]["zh"]["controls"]["wipe-all"]
    with pytest.raises((jinja2.UndefinedError, KeyError)):
        card.render(manifest)
    manifest = copy.deepcopy(built[1])
    del manifest["parameters"]["seed"]
    with pytest.raises(jinja2.UndefinedError, match="seed"):
        card.render(manifest)


def test_the_examples_name_the_source(built: tuple[Path, dict[str, Any]]) -> None:
    assert 'load_dataset("forgeteval", "en", split="test")' in card.render(built[1])
    assert 'load_dataset("acme/forgeteval", "en", split="test")' in card.render(built[1], source="acme/forgeteval")


@pytest.mark.parametrize(
    ("rows", "category"),
    [(999, "n<1K"), (1000, "1K<n<10K"), (99_999, "10K<n<100K"), (100_000, "100K<n<1M"), (10**6, "n>1M")],
)
def test_size_categories(rows: int, category: str) -> None:
    assert card.size_category(rows) == category
