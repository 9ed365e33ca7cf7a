"""What a build may replace: nothing that is not ours, and what is ours in whatever state once that is asked for."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forget_datasets.build import build_forgeteval
from forget_datasets.errors import UserError

FILE = "data/handmade/test-00000-of-00001.parquet"
Tree = Callable[[Path], dict[str, bytes]]


def test_other_parameters_need_force(handmade_folder: Path) -> None:
    with pytest.raises(UserError, match=r"seed 42, not 2.*--force"):
        build_forgeteval(handmade_folder, (), seed=2)
    assert build_forgeteval(handmade_folder, (), seed=2, force=True)["parameters"]["seed"] == 2
    assert json.loads((handmade_folder / "manifest.json").read_text())["parameters"]["seed"] == 2


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    build_forgeteval(tmp_path / "out", ())
    assert (tmp_path / "out/manifest.json").exists()


def _truncate_manifest(folder: Path) -> None:
    text = (folder / "manifest.json").read_text(encoding="utf-8")
    (folder / "manifest.json").write_text(text[:300], encoding="utf-8")


def _manifest(content: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "manifest.json").write_text(content, encoding="utf-8")

    return write


def _remove_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def _manifest_is_a_folder(folder: Path) -> None:
    _remove_manifest(folder)
    (folder / "manifest.json").mkdir()


def _truncate_all(folder: Path) -> None:
    _truncate_manifest(folder)
    (folder / FILE).write_bytes((folder / FILE).read_bytes()[:-100])


BROKEN = [
    _truncate_manifest,
    _truncate_all,
    _remove_manifest,
    _manifest_is_a_folder,
    _manifest("[]"),
    _manifest('{"dataset": {}}'),
    _manifest('{"dataset": "forgeteval", "schema_version": 1, "configs": 5}'),
    _manifest("[" * 100_000),
]


@pytest.mark.parametrize("harm", BROKEN)
def test_a_broken_dataset_of_ours_is_replaced_with_force_alone(
    handmade_folder: Path, harm: Callable[[Path], None], tree: Tree
) -> None:
    whole = tree(handmade_folder)
    harm(handmade_folder)
    with pytest.raises(UserError, match=r"manifest\.json.*add --force"):
        build_forgeteval(handmade_folder, ())
    build_forgeteval(handmade_folder, (), force=True)
    assert tree(handmade_folder) == whole


@pytest.mark.parametrize("harm", [lambda folder: None, *BROKEN])
@pytest.mark.parametrize(
    "foreign", ["notes.txt", "data/handmade/mine.csv", "data/test-00000-of-00001.parquet", ".git/HEAD", "data/link"]
)
def test_what_holds_a_foreign_file_is_left_alone_even_with_force(
    handmade_folder: Path, harm: Callable[[Path], None], foreign: str, tree: Tree, tmp_path: Path
) -> None:
    (handmade_folder / foreign).parent.mkdir(exist_ok=True)
    if foreign == "data/link":
        (tmp_path / "elsewhere").mkdir()
        (handmade_folder / foreign).symlink_to(tmp_path / "elsewhere")
    else:
        (handmade_folder / foreign).write_text("mine")
    harm(handmade_folder)
    before = tree(handmade_folder)
    with pytest.raises(UserError, match=f"holds '{foreign}', which is none of ours"):
        build_forgeteval(handmade_folder, (), seed=2, force=True)
    assert tree(handmade_folder) == before
    assert os.path.lexists(handmade_folder / foreign)


def test_parquet_of_other_columns_is_foreign_whatever_its_name(handmade_folder: Path) -> None:
    mine = handmade_folder / "data/mine/test-00000-of-00001.parquet"
    mine.parent.mkdir()
    pq.write_table(pa.table({"id": ["a"], "family": ["b"]}), mine)
    for harm in (lambda: None, lambda: _remove_manifest(handmade_folder)):
        harm()
        with pytest.raises(UserError, match=r"holds 'data/mine/test-.*, which is none of ours"):
            build_forgeteval(handmade_folder, (), force=True)


def _only_a_card(folder: Path) -> None:
    shutil.rmtree(folder / "data")
    _remove_manifest(folder)


def _manifest_of_another_program(folder: Path) -> None:
    shutil.rmtree(folder / "data")
    _manifest('{"name": "my extension", "dataset": "mine"}')(folder)


def _cut_without_a_name(folder: Path) -> None:
    _truncate_all(folder)
    _remove_manifest(folder)


@pytest.mark.parametrize("harm", [_only_a_card, _manifest_of_another_program, _cut_without_a_name])
def test_what_nothing_names_as_ours_is_left_alone_even_with_force(
    handmade_folder: Path, harm: Callable[[Path], Any], tree: Tree
) -> None:
    harm(handmade_folder)
    before = tree(handmade_folder)
    with pytest.raises(UserError, match=r"manifest\.json"):
        build_forgeteval(handmade_folder, (), force=True)
    assert tree(handmade_folder) == before
