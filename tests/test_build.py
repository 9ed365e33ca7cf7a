"""A build as a whole: the rows of the generator, figures that they bear out, and the same bytes again."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from forget_datasets import schema
from forget_datasets.build import Refused, build_forgeteval
from forget_datasets.errors import UserError
from forget_datasets.forgeteval import generate, handmade, languages
from forget_datasets.rows import FAMILIES, GeneratedCase, Probe, content_hash
from forget_datasets.shards import find, read_rows
from forget_datasets.staging import Outcome

Built = tuple[Path, dict[str, Any]]
Tree = Callable[[Path], dict[str, bytes]]
Run = Callable[..., subprocess.CompletedProcess[str]]


def rows_of(folder: Path, config: str) -> list[dict[str, Any]]:
    return [row for shard in find(folder)[config, "test"] for row in read_rows(shard.path, schema.FORGETEVAL)]


def test_the_folder_holds_data_manifest_card_and_croissant(forgeteval_built: Built, tree: Tree) -> None:
    out, manifest = forgeteval_built
    assert sorted(tree(out)) == [
        "README.md",
        "croissant.json",
        "data/en/test-00000-of-00001.parquet",
        "data/handmade/test-00000-of-00001.parquet",
        "data/zh/test-00000-of-00001.parquet",
        "manifest.json",
    ]
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8")) == manifest


def test_the_rows_are_those_of_the_generator(forgeteval_built: Built) -> None:
    out, manifest = forgeteval_built
    expected = {tag: generate(10, seed=7, distractors=4, lang=tag) for tag in ("en", "zh")} | {
        "handmade": handmade.load()
    }
    for config, cases in expected.items():
        assert rows_of(out, config) == [case.to_row() for case in cases]
        assert manifest["configs"][config]["content_hash"] == content_hash(case.to_row() for case in cases)


def test_the_manifest_counts(forgeteval_built: Built) -> None:
    _, manifest = forgeteval_built
    assert manifest["parameters"] == {
        "langs": ["en", "zh"], "n_per_family": 10, "distractors": 4, "seed": 7, "stress": False,
    }  # fmt: skip
    assert manifest["schema_version"] == 1
    english = manifest["configs"]["en"]
    assert english["rows"] == 50
    assert english["families"] == dict.fromkeys(FAMILIES, 10)
    assert english["templates"]["supersession"] == {"job": 3, "theme": 3, "diet": 2, "long_form": 2}
    assert english["n_distractors"] == {"smallest": 4, "largest": 4}
    assert english["screening"]["proven"] == 50
    assert english["screening"]["distractors"] >= 200
    assert min(n for family in english["capacities"].values() for n in family.values()) >= 50_000
    assert manifest["configs"]["handmade"]["families"] == dict.fromkeys(FAMILIES, 3)


def test_the_manifest_has_the_controls(forgeteval_built: Built) -> None:
    controls = forgeteval_built[1]["configs"]["en"]["controls"]
    all_pass = {"overall": 50, **dict.fromkeys(FAMILIES, 10)}
    none_pass = dict.fromkeys(all_pass, 0)
    for rate in ("strict", "strict_uncut"):
        assert controls["oracle"][rate] == all_pass
        assert [controls[name][rate] for name in ("null", "keep-all", "wipe-all")] == [none_pass] * 3
    # Of the decay templates, one_of_many alone requires something of the final answer: two of ten cases.
    assert controls["null"]["spec"] == none_pass | {"overall": 8, "decay": 8}


def test_the_parquet_is_what_the_hub_likes(forgeteval_built: Built) -> None:
    file = pq.ParquetFile(forgeteval_built[0] / "data/en/test-00000-of-00001.parquet")
    assert file.schema_arrow.equals(schema.FORGETEVAL)
    columns = [file.metadata.row_group(0).column(i) for i in range(file.metadata.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert all(column.has_offset_index for column in columns)


def test_another_process_writes_the_same_bytes(
    forgeteval_built: Built, tree: Tree, in_another_process: Run, tmp_path: Path
) -> None:
    code = (
        "import sys; from pathlib import Path; from forget_datasets.build import build_forgeteval; "
        "build_forgeteval(Path(sys.argv[1]), ('en', 'zh'), n_per_family=10, distractors=4, seed=7)"
    )
    done = in_another_process(code, tmp_path / "again", PYTHONHASHSEED="99", TZ="Asia/Tokyo")
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "again") == tree(forgeteval_built[0])


def test_stress_goes_to_configs_of_its_own(tmp_path: Path) -> None:
    manifest = build_forgeteval(tmp_path / "out", ("en",), n_per_family=4, distractors=50, stress=True)
    assert list(manifest["configs"]) == ["en-stress", "handmade"]
    assert manifest["configs"]["en-stress"]["n_distractors"] == {"smallest": 50, "largest": 50}


def test_the_same_parameters_again_leave_the_folder_alone(tmp_path: Path) -> None:
    outcomes: list[Outcome] = []
    for _ in range(2):
        build_forgeteval(tmp_path / "out", (), settled=outcomes.append)
    assert outcomes == [Outcome.NEW, Outcome.UNCHANGED]


def test_a_damaged_dataset_of_the_same_parameters_is_mended(tree: Tree, tmp_path: Path) -> None:
    outcomes: list[Outcome] = []
    build_forgeteval(tmp_path / "out", ())
    whole = tree(tmp_path / "out")
    file = tmp_path / "out/data/handmade/test-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    build_forgeteval(tmp_path / "out", (), settled=outcomes.append)
    assert outcomes == [Outcome.REPLACED]
    assert tree(tmp_path / "out") == whole
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_cases_that_a_control_games_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = GeneratedCase(
        id="decay__handmade__001",
        family="decay",
        setup_facts=["The code is 4711.", "The gate is green."],
        mutations=[("release", "the code")],
        final_query="What is the code?",
        must_contain=[],
        must_not_contain=["4711"],
        template="handmade",
        probes=[Probe("leak", "4711", [], ["4711"])],
        n_distractors=1,
    )
    monkeypatch.setattr(handmade, "load", lambda: [case])
    with pytest.raises(Refused) as error:
        build_forgeteval(tmp_path / "out", ())
    # Nothing is required, so silence and destruction win: the point of the refusal.
    assert "decay__handmade__001: row: control 'null' passes it (strict)" in str(error.value)
    assert "decay__handmade__001: row: control 'wipe-all' passes it (strict)" in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tag", languages.available())
def test_more_cases_than_a_language_can_make_are_refused_at_once(tmp_path: Path, tag: str) -> None:
    language = languages.load(tag)
    groups = language.templates.values()
    # Templates take turns: the one in place p of t makes the cases p, p + t, p + 2t and so on of its family.
    limit = min(len(g) * language.capacity(t) + place for g in groups for place, t in enumerate(g.values()))
    begun: list[str] = []
    with pytest.raises(UserError, match=rf"'{tag}' makes at most {limit:,} cases a family, and {limit + 1:,} were"):
        build_forgeteval(tmp_path / "on/the/way", (tag,), n_per_family=limit + 1, progress=begun.append)
    assert begun == []
    assert list(tmp_path.iterdir()) == []


def test_what_a_later_language_cannot_make_is_refused_before_the_first_is_begun(tmp_path: Path) -> None:
    sizes = sorted((len(languages.load(tag).distractors), tag) for tag in languages.available())
    (scarce, poor), (_, rich) = sizes[0], sizes[-1]
    begun: list[str] = []
    with pytest.raises(UserError, match=f"'{poor}' has {scarce} distractors; {scarce + 1} were asked for"):
        build_forgeteval(tmp_path / "out", (rich, poor), distractors=scarce + 1, progress=begun.append)
    assert begun == []
