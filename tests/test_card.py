"""The card: its test is that `load_dataset` reads the folder, and that every figure in it is the manifest's."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import pytest
from huggingface_hub import DatasetCard

from forget_datasets import card, schema
from forget_datasets.errors import UserError

Built = tuple[Path, dict[str, Any]]


@pytest.fixture
def built(forgeteval_built: Built) -> Built:
    return forgeteval_built


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


def test_load_dataset_reads_the_same_rows_streaming_or_not(
    built: Built, load_offline: Callable[[str, Path], dict[str, Any]]
) -> None:
    out, manifest = built
    found = load_offline(LOAD, out)
    for name, config in manifest["configs"].items():
        assert found[f"{name} False"] == found[f"{name} True"] == config["content_hash"]
    assert found["default"] == manifest["configs"]["en"]["content_hash"]
    assert "'n_distractors': Value('int32')" in found["features"]


def test_the_yaml_describes_the_folder(built: Built) -> None:
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
    for name, rows in {"en": 50, "zh": 50, "handmade": 15}.items():
        [split] = infos[name]["splits"]
        assert (split["name"], split["num_examples"]) == ("test", rows)
        assert infos[name]["download_size"] == (out / f"data/{name}/test-00000-of-00001.parquet").stat().st_size
        assert [feature["name"] for feature in infos[name]["features"]] == schema.FORGETEVAL.names


def test_counts_read_back(built: Built) -> None:
    text = (built[0] / "README.md").read_text(encoding="utf-8")
    assert card.counts(text) == {"en": {"test": 50}, "zh": {"test": 50}, "handmade": {"test": 15}}


@pytest.mark.parametrize("text", ["---\ndataset_info: 5\n---\n", "---\n: [\n---\n", "---\ndataset_info: [{}]\n---\n"])
def test_a_card_that_makes_no_sense_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=":"):
        card.counts(text)


def test_a_card_without_yaml_states_nothing() -> None:
    assert card.counts("# My data\n") == {}


def test_the_prose_has_the_figures(built: Built) -> None:
    text = (built[0] / "README.md").read_text(encoding="utf-8")
    assert "115 small cases" in text
    assert "| `en` | en | 50 | 10 | 10 | 10 | 10 | 10 | 4 |" in text
    assert "| `handmade` | en | 15 | 3 | 3 | 3 | 3 | 3 | 10 to 24 | 14 to 29 |" in text
    assert "job (6), theme (6), diet (4), long_form (4), handmade (3)" in text
    assert "| oracle | strict | 100.0% | 100.0% | 100.0% | 100.0% | 100.0% | 100.0% |" in text
    assert "| keep-all | strict | 0.0% | 0.0% | 0.0% | 0.0% | 0.0% | 0.0% |" in text
    for name, config in built[1]["configs"].items():
        assert f"| content hash of `{name}` | `{config['content_hash']}` |" in text
    for field in schema.FORGETEVAL:
        assert f"| `{field.name}` | `{schema.type_name(field.type)}` |" in text


def test_tables_are_whole(built: Built) -> None:
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


def test_what_the_manifest_lacks_is_an_error(built: Built) -> None:
    manifest = copy.deepcopy(built[1])
    del manifest["configs"]["zh"]["controls"]["wipe-all"]
    with pytest.raises((jinja2.UndefinedError, KeyError)):
        card.render(manifest)
    manifest = copy.deepcopy(built[1])
    del manifest["parameters"]["seed"]
    with pytest.raises(jinja2.UndefinedError, match="seed"):
        card.render(manifest)


def test_the_examples_name_the_source(built: Built) -> None:
    assert 'load_dataset("forgeteval", "en", split="test")' in card.render(built[1])
    assert 'load_dataset("acme/forgeteval", "en", split="test")' in card.render(built[1], source="acme/forgeteval")


def test_a_release_is_named_in_the_examples(built: Built) -> None:
    text = card.render(built[1], "acme/forgeteval", "1.2.0")
    assert 'load_dataset("acme/forgeteval", "en", split="test", revision="v1.2.0")' in text
    assert "--data acme/forgeteval@v1.2.0 " in text
    assert "| release | 1.2.0, see RELEASES.md |" in text
    assert "revision" not in card.render(built[1], "acme/forgeteval")


def test_who_wants_the_data_is_asked_on_request(built: Built) -> None:
    assert not card.is_gated(card.render(built[1]))
    text = card.render(built[1], gated=True)
    data = DatasetCard(text).data
    assert "tell us who you are and what you intend to use them for" in data["extra_gated_prompt"]
    assert list(data["extra_gated_fields"])[:3] == ["Name", "Affiliation", "Intended use"]
    assert "\n## Access\n" in text
    assert card.counts(text) == card.counts(card.render(built[1]))


FOREIGN = "---\nlicense: other\nviewer: false\nlink: null\nsince: 2024-01-01\n名: 值\ntags: [mine, benchmark]\n---\n"


def test_a_foreign_card_keeps_its_keys_and_its_text(built: Built) -> None:
    ours = card.render(built[1])
    merged = card.merge(ours, f"{FOREIGN}\n# Mine\n\nBy hand: é.\n")
    data = vars(DatasetCard(merged).data)
    assert (data["license"], data["viewer"], data["link"], str(data["since"])) == ("mit", False, None, "2024-01-01")
    assert data["名"] == "值"
    assert data["tags"] == [*DatasetCard(ours).data.tags, "mine"]
    assert merged.endswith(f"{card.END}\n\n# Mine\n\nBy hand: é.\n")
    assert card.merge(ours, merged) == merged


@pytest.mark.parametrize("existing", ["", "---\n\n---\n", "\n\n"])
def test_into_an_empty_card_goes_ours(built: Built, existing: str) -> None:
    ours = card.render(built[1])
    assert card.merge(ours, existing) == ours
    assert card.merge(ours, ours) == ours


def test_text_on_both_sides_of_ours_stays_when_ours_changes(built: Built) -> None:
    old, new = card.render(built[1]), card.render(built[1], "acme/forget", "2.0.0", gated=True)
    edited = old.replace(card.BEGIN, f"Above.\n\n{card.BEGIN}").replace(card.END, f"{card.END}\n\nBelow.")
    merged = card.merge(new, edited)
    assert merged.count("Above.\n\n") == merged.count("\n\nBelow.") == 1
    assert merged.replace("Above.\n\n", "").replace("\n\nBelow.", "").split("---\n")[2] == new.split("---\n")[2]
    assert card.is_gated(merged)


@pytest.mark.parametrize(
    ("existing", "message"),
    [
        ("---\na: [\n---\n", "cannot be read"),
        ("---\n- a\n---\n", "is no list of keys"),
        (f"{card.BEGIN}\n", "once each"),
        (f"{card.END}\n{card.BEGIN}\n", "once each"),
        (f"{card.BEGIN}\n{card.END}\n" * 2, "once each"),
    ],
)
def test_a_card_that_cannot_be_merged_is_said(built: Built, existing: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        card.merge(card.render(built[1]), existing)


@pytest.mark.parametrize(
    ("rows", "category"),
    [
        (0, "n<1K"),
        (999, "n<1K"),
        (1000, "1K<n<10K"),
        (99_999, "10K<n<100K"),
        (100_000, "100K<n<1M"),
        (10**6, "1M<n<10M"),
        (10**7, "10M<n<100M"),
        (10**8, "100M<n<1B"),
        (10**12 - 1, "100B<n<1T"),
        (10**12, "n>1T"),
        (10**15, "n>1T"),
    ],
)
def test_size_categories(rows: int, category: str) -> None:
    assert card.size_category(rows) == category
