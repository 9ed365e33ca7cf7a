"""The card of MemBehave: every figure in it is the manifest's, every field is described, and access is an option."""

import copy
from pathlib import Path
from typing import Any

import jinja2
import pytest
from huggingface_hub import DatasetCard

from forget_datasets import card, schema
from forget_datasets.rows import LEVELS

Built = tuple[Path, dict[str, Any]]


@pytest.fixture
def built(membehave_built: Built) -> Built:
    return membehave_built


@pytest.fixture
def text(built: Built) -> str:
    return (built[0] / "README.md").read_text(encoding="utf-8")


def test_the_yaml_describes_the_folder(built: Built) -> None:
    data = DatasetCard.load(built[0] / "README.md").data
    assert (data.language, data.license, data.pretty_name) == (["en"], "mit", "MemBehave: Forgetting")
    assert data["configs"] == [
        {
            "config_name": "default",
            "default": True,
            "data_files": [{"split": s, "path": f"data/default/{s}-*"} for s in LEVELS],
        },
        {"config_name": "extended", "data_files": [{"split": s, "path": f"data/extended/{s}-*"} for s in LEVELS]},
    ]
    for info in data["dataset_info"]:
        assert [(split["name"], split["num_examples"]) for split in info["splits"]] == [(s, 3) for s in LEVELS]
        assert [feature["name"] for feature in info["features"]] == schema.MEMBEHAVE.names


def test_counts_read_back(text: str) -> None:
    assert card.counts(text) == {name: dict.fromkeys(LEVELS, 3) for name in ("default", "extended")}


def test_the_level_table_is_the_manifests(built: Built, text: str) -> None:
    for name, level in built[1]["configs"]["default"]["levels"].items():
        assert f"| `{name}` | 3 | {level['mean_shared']:.2f} | {level['degree']['smallest']}" in text
        assert f"| {level['ripple_probes']} | {level['same_message']} | 20.0 |" in text


def test_every_field_is_there_with_its_type(text: str) -> None:
    for field in schema.MEMBEHAVE:
        parts = list(field.type.value_type) if field.name in ("neighbors", "evidence", "probes", "sessions") else []
        assert f"| `{field.name}` | `{'list<struct>' if parts else schema.type_name(field.type)}` | " in text
        for part in parts:
            assert f"| `{part.name}` | `{schema.type_name(part.type)}` | " in text


def test_the_controls_are_in_the_card(text: str) -> None:
    assert "| metric | null | keep-all | wipe-all | redactor | oracle |" in text
    assert "| `attributed_coverage` | – | 1.00 | 0.00 | 0.00 | 0.00 |" in text
    assert "| `baseline_recall_target` | 0.00 | 1.00 | 1.00 | 1.00 | 1.00 |" in text
    assert "| `control_survival` | – | 1.00 | 0.00 | 1.00 | 1.00 |" in text
    assert "| `selective_forgetting` | – | 0.00 | 0.00 |" in text


def test_screening_is_in_the_card(built: Built) -> None:
    manifest = copy.deepcopy(built[1])
    manifest["generation"]["screening"]["low"] = {
        "written": 1234, "rephrased": 5, "dropped": {"guessable": 3, "two right answers": 4},
    }  # fmt: skip
    manifest["generation"]["rejected_draws"] = {"levels or degrees apart": 6}
    text = card.render(manifest)
    assert "| `low` | 1,234 | 5 | 7 | guessable (3), two right answers (4) |" in text
    assert "before one met all constraints: levels or degrees apart (6)." in text
    manifest["generation"]["rejected_draws"] = {}
    assert "No draw had to be thrown away." in card.render(manifest)


def test_limits_say_where_the_data_differs(text: str) -> None:
    assert "**Every item has a ripple probe.**" in text
    assert "**A clean graph.**" in text
    for name, value in {"seed": "seed 7", "noise": "noise 0.0"}.items():
        assert value in text, name


def test_a_noisy_build_says_so(built: Built) -> None:
    manifest = copy.deepcopy(built[1])
    manifest["parameters"]["noise"] = 0.3
    text = card.render(manifest)
    assert "dropped from the recorded graph with probability 0.3" in text
    assert "**A clean graph.**" not in text
    assert "there is a message that states it" not in text


def test_access_is_asked_for_if_wanted(built: Built, text: str) -> None:
    assert "extra_gated" not in text
    manifest = copy.deepcopy(built[1])
    manifest["parameters"]["gated"] = True
    gated = card.render(manifest)
    data = DatasetCard(gated).data
    assert data["extra_gated_fields"]["Intended use"] == "text"
    assert {"text", "checkbox"} == set(data["extra_gated_fields"].values())
    assert "your affiliation" in data["extra_gated_prompt"]
    assert "## Access" in gated
    assert card.counts(gated) == card.counts(text)


def test_tables_are_whole(text: str) -> None:
    """Every row of a table has as many cells as its head."""
    tables: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            tables[-1].append(line)
        elif tables[-1]:
            tables.append([])
    shapes = [{line.count("|") for line in table} for table in tables if table]
    assert len(shapes) == 12
    assert all(len(shape) == 1 for shape in shapes)
    assert not any(line.endswith(" ") for line in text.splitlines())
    assert "\n\n\n" not in text


def test_what_the_manifest_lacks_is_an_error(built: Built) -> None:
    for path in (("generation", "histories", "fact_share"), ("configs", "default", "levels"), ("parameters", "noise")):
        manifest = copy.deepcopy(built[1])
        holder = manifest
        for key in path[:-1]:
            holder = holder[key]
        del holder[path[-1]]
        with pytest.raises(jinja2.UndefinedError):
            card.render(manifest)
