"""A manifest's parameters are held against the rows, as far as rows can tell them."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from forget_datasets import claims
from forget_datasets.validate import Problem, validate

Built = tuple[Path, dict[str, Any]]


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("langs", ["en"], "parameters.langs and parameters.stress make the configs en, but there are en, zh"),
        ("langs", [], "parameters.langs and parameters.stress make the configs none, but there are en, zh"),
        (
            "stress",
            True,
            "parameters.langs and parameters.stress make the configs en-stress, zh-stress, but there are en, zh",
        ),
        ("n_per_family", 11, "parameters.n_per_family is 11, but there are 10 cases a family in config 'en'"),
        ("distractors", 50, "parameters.distractors is 50, but there are 4 distractors a case in config 'en'"),
    ],
)
def test_forgeteval(forgeteval_built: Built, parameter: str, value: Any, message: str) -> None:
    manifest = forgeteval_built[1]
    assert list(claims.of_forgeteval(manifest["parameters"], manifest["configs"])) == []
    assert list(claims.of_forgeteval({}, manifest["configs"])) == []
    stated = {**manifest["parameters"], parameter: value}
    assert next(claims.of_forgeteval(stated, manifest["configs"])) == message


def test_a_config_in_another_language(forgeteval_built: Built) -> None:
    manifest = copy.deepcopy(forgeteval_built[1])
    manifest["configs"]["zh"]["languages"] = ["en", "zh"]
    assert list(claims.of_forgeteval(manifest["parameters"], manifest["configs"])) == [
        "parameters.langs has 'zh', but config 'zh' is in ['en', 'zh']"
    ]


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("triplets", 4, "parameters.triplets is 4, but there are 3 in config 'default'"),
        ("triplets_per_user", 2, "parameters.sessions_per_user is 80: with 2 triplets a user it must be 90 to 120"),
        ("sessions_per_user", 90, "parameters.sessions_per_user is 90, but there are 80 sessions a user in config"),
        ("sessions_per_user", 5, "parameters.sessions_per_user is 5: with 1 triplets a user it must be 60 to 120"),
        ("same_message", 0.9, "parameters.same_message is 0.9, but of"),
        ("noise", 5.0, "parameters.noise is 5.0: give a share from 0 to 1."),
    ],
)  # fmt: skip
def test_membehave(membehave_built: Built, parameter: str, value: Any, message: str) -> None:
    manifest = membehave_built[1]
    assert list(claims.of_membehave(manifest["parameters"], manifest["configs"])) == []
    assert list(claims.of_membehave({}, manifest["configs"])) == []
    stated = {**manifest["parameters"], parameter: value}
    assert next(claims.of_membehave(stated, manifest["configs"])).startswith(message)


def test_triplets_that_are_not_told_together(membehave_built: Built) -> None:
    assert list(
        claims.of_membehave({"triplets_per_user": 2}, {"default": membehave_built[1]["configs"]["default"]})
    ) == ["parameters.triplets_per_user is 2, but config 'default' has 3 triplets of 3 users"]


def test_validation_says_them(membehave_built: Built, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(membehave_built[0], tmp_path / "out"))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["parameters"] |= {"triplets": 2, "gated": True}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert validate(folder).problems == [
        Problem("manifest.json", "parameters.triplets is 2, but there are 3 in config 'default'"),
        Problem("manifest.json", "parameters.triplets is 2, but there are 3 in config 'extended'"),
        Problem("README.md", "does not ask who wants the data, but parameters.gated is True"),
    ]
