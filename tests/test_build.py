"""A build as a whole: the same bytes again, whole or not at all, and never over what is not ours."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forget_datasets import schema
from forget_datasets.build import Refused, build_forgeteval
from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.forgeteval import generate, handmade
from forget_datasets.rows import FAMILIES, GeneratedCase, Probe, content_hash
from forget_datasets.shards import RowHash, ShardWriter, find, read_rows
from forget_datasets.staging import Outcome, staged


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rows_of(folder: Path, config: str) -> list[dict[str, Any]]:
    return [row for shard in find(folder)[config, "test"] for row in read_rows(shard.path, schema.FORGETEVAL)]


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("builds") / "smoke"
    return out, build_forgeteval(out, ("en",), n_per_family=10, distractors=4, seed=7)


def test_the_folder_holds_data_manifest_and_card(smoke: tuple[Path, dict[str, Any]]) -> None:
    out, manifest = smoke
    assert sorted(tree(out)) == [
        "README.md",
        "data/en/test-00000-of-00001.parquet",
        "data/handmade/test-00000-of-00001.parquet",
        "manifest.json",
    ]
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8")) == manifest


def test_the_rows_are_those_of_the_generator(smoke: tuple[Path, dict[str, Any]]) -> None:
    out, manifest = smoke
    expected = {"en": generate(10, seed=7, distractors=4, lang="en"), "handmade": handmade.load()}
    for config, cases in expected.items():
        assert rows_of(out, config) == [case.to_row() for case in cases]
        assert manifest["configs"][config]["content_hash"] == content_hash(case.to_row() for case in cases)


def test_the_manifest_counts(smoke: tuple[Path, dict[str, Any]]) -> None:
    _, manifest = smoke
    assert manifest["parameters"] == {
        "langs": ["en"], "n_per_family": 10, "distractors": 4, "seed": 7, "stress": False,
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


def test_the_manifest_has_the_controls(smoke: tuple[Path, dict[str, Any]]) -> None:
    controls = smoke[1]["configs"]["en"]["controls"]
    all_pass = {"overall": 50, **dict.fromkeys(FAMILIES, 10)}
    none_pass = dict.fromkeys(all_pass, 0)
    for rate in ("strict", "strict_uncut"):
        assert controls["oracle"][rate] == all_pass
        assert [controls[name][rate] for name in ("null", "keep-all", "wipe-all")] == [none_pass] * 3
    # Of the decay templates, one_of_many alone requires something of the final answer: two of ten cases.
    assert controls["null"]["spec"] == none_pass | {"overall": 8, "decay": 8}


def test_the_parquet_is_what_the_hub_likes(smoke: tuple[Path, dict[str, Any]]) -> None:
    file = pq.ParquetFile(smoke[0] / "data/en/test-00000-of-00001.parquet")
    assert file.schema_arrow.equals(schema.FORGETEVAL)
    columns = [file.metadata.row_group(0).column(i) for i in range(file.metadata.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert all(column.has_offset_index for column in columns)


def test_another_process_writes_the_same_bytes(smoke: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from forget_datasets.build import build_forgeteval; "
        "build_forgeteval(Path(sys.argv[1]), ('en',), n_per_family=10, distractors=4, seed=7)"
    )
    environment = os.environ | {"PYTHONHASHSEED": "99", "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "again")], env=environment, check=True)
    assert tree(tmp_path / "again") == tree(smoke[0])


def test_stress_goes_to_configs_of_its_own(tmp_path: Path) -> None:
    manifest = build_forgeteval(tmp_path / "out", ("en",), n_per_family=4, distractors=50, stress=True)
    assert list(manifest["configs"]) == ["en-stress", "handmade"]
    assert manifest["configs"]["en-stress"]["n_distractors"] == {"smallest": 50, "largest": 50}


def test_the_same_parameters_again_leave_the_folder_alone(tmp_path: Path) -> None:
    outcomes: list[Outcome] = []
    for _ in range(2):
        build_forgeteval(tmp_path / "out", (), settled=outcomes.append)
    assert outcomes == [Outcome.NEW, Outcome.UNCHANGED]


def test_a_damaged_dataset_of_the_same_parameters_is_mended(tmp_path: Path) -> None:
    outcomes: list[Outcome] = []
    build_forgeteval(tmp_path / "out", ())
    whole = tree(tmp_path / "out")
    file = tmp_path / "out/data/handmade/test-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    build_forgeteval(tmp_path / "out", (), settled=outcomes.append)
    assert outcomes == [Outcome.REPLACED]
    assert tree(tmp_path / "out") == whole
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_other_parameters_need_force(tmp_path: Path) -> None:
    build_forgeteval(tmp_path / "out", (), seed=1)
    with pytest.raises(UserError, match=r"seed 1, not 2.*--force"):
        build_forgeteval(tmp_path / "out", (), seed=2)
    assert build_forgeteval(tmp_path / "out", (), seed=2, force=True)["parameters"]["seed"] == 2
    assert json.loads((tmp_path / "out/manifest.json").read_text())["parameters"]["seed"] == 2


@pytest.mark.parametrize("foreign", ["notes.txt", "data/handmade/mine.csv"])
def test_foreign_files_are_left_alone_even_with_force(foreign: str, tmp_path: Path) -> None:
    build_forgeteval(tmp_path / "out", (), seed=1)
    (tmp_path / "out" / foreign).write_text("mine")
    with pytest.raises(UserError, match=foreign):
        build_forgeteval(tmp_path / "out", (), seed=2, force=True)
    assert (tmp_path / "out" / foreign).read_text() == "mine"


def test_a_folder_without_a_manifest_of_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("my project")
    with pytest.raises(UserError, match=r"no manifest\.json"):
        build_forgeteval(tmp_path, (), force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    build_forgeteval(tmp_path / "out", ())
    assert (tmp_path / "out/manifest.json").exists()


def test_the_current_folder_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="current folder"):
        build_forgeteval(Path(), ())


def test_a_killed_build_leaves_nothing_at_its_place_and_the_next_one_sweeps(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from forget_datasets.build import build_forgeteval; "
        "build_forgeteval(Path(sys.argv[1]), (), progress=lambda config: os.kill(os.getpid(), signal.SIGKILL))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.name.startswith(".out.building-") for path in tmp_path.iterdir()] == [True]
    build_forgeteval(tmp_path / "out", ())
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_running_build_is_not_swept(tmp_path: Path) -> None:
    with staged(tmp_path / "out") as running:
        (running.folder / "half").write_text("done")
        build_forgeteval(tmp_path / "out", ())
        assert (running.folder / "half").read_text() == "done"
    assert running.outcome is Outcome.REPLACED


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="distractors"):
        build_forgeteval(tmp_path / "out", ("en",), distractors=100_000)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EnvironmentFault, match=r"file/out.*Not a directory"):
        build_forgeteval(tmp_path / "file" / "out", ())


def test_a_disk_that_takes_no_more_is_named_with_the_reason(tmp_path: Path) -> None:
    code = (
        "import resource, sys; from pathlib import Path; from forget_datasets.build import build_forgeteval; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); build_forgeteval(Path(sys.argv[1]), ())"
    )
    command = [sys.executable, "-B", "-c", code, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"EnvironmentFault: {tmp_path / 'out'}: File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


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


def _row(number: int, text: str = "x") -> Mapping[str, Any]:
    return GeneratedCase(f"decay__otp__{number:03d}", "decay", [text], [("release", "q")], "q", [], ["x"]).to_row()


@settings(deadline=None, max_examples=20)
@given(count=st.integers(0, 150), group=st.sampled_from([1, 4000, 10**9]), shard=st.sampled_from([1, 6000, 10**9]))
def test_shards_hold_the_rows_in_order(
    tmp_path_factory: pytest.TempPathFactory, count: int, group: int, shard: int
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    with ShardWriter(folder / "data/en", "test", schema.FORGETEVAL, group, shard) as writer:
        for i in range(count):
            writer.add(_row(i))
        written = writer.close()
    assert written.rows == count
    assert sorted(written.files) == sorted(path.name for path in (folder / "data/en").iterdir())
    assert rows_of(folder, "en") == [_row(i) for i in range(count)]
    assert written.content_hash == content_hash(_row(i) for i in range(count))


def test_a_shard_ends_when_it_is_full(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "test", schema.FORGETEVAL, group_bytes=1, shard_bytes=1) as writer:
        for i in range(70):  # batches of 32, 32 and 6 rows, each a row group, each group a shard
            writer.add(_row(i))
        written = writer.close()
    assert written.files == tuple(f"test-0000{i}-of-00003.parquet" for i in range(3))
    assert [pq.read_metadata(tmp_path / name).num_rows for name in written.files] == [32, 32, 6]
    assert written.file_bytes == sum((tmp_path / name).stat().st_size for name in written.files)


@given(st.lists(st.text(max_size=5)))
def test_the_hash_of_rows_one_by_one_is_that_of_all(texts: list[str]) -> None:
    fed = RowHash()
    for text in texts:
        fed.add({"id": text})
    assert fed.hexdigest() == content_hash({"id": text} for text in texts)
