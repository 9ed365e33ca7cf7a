"""MemBehave as a folder: the generator's rows in two configs of three levels, with figures that the rows bear out."""

import inspect
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

import forget_datasets.build
from forget_datasets import schema
from forget_datasets.build import Refused, build_membehave
from forget_datasets.cli import build as build_commands
from forget_datasets.errors import UserError
from forget_datasets.membehave import Triplet, generate
from forget_datasets.rows import LEVELS, content_hash
from forget_datasets.shards import find, read_rows
from forget_datasets.staging import Outcome
from forget_datasets.validate import validate
from forget_eval.data import open_dataset

Built = tuple[Path, dict[str, Any]]
Rows = list[dict[str, Any]]
Tree = Callable[[Path], dict[str, bytes]]
Run = Callable[..., subprocess.CompletedProcess[str]]
Command = Callable[..., tuple[int, str, str]]
TRIPLETS, SEED = 3, 7  # of the shared build


@pytest.fixture
def built(membehave_built: Built) -> Built:
    return membehave_built


@pytest.fixture(scope="module")
def triplets() -> list[Triplet]:
    return list(generate(TRIPLETS, seed=SEED))


def rows_of(folder: Path, config: str, level: str) -> Rows:
    return [row for shard in find(folder)[config, level] for row in read_rows(shard.path, schema.MEMBEHAVE)]


def test_the_folder_holds_two_configs_of_three_levels(built: Built, tree: Tree) -> None:
    out, manifest = built
    assert sorted(tree(out)) == [
        "README.md",
        "croissant.json",
        *sorted(f"data/{c}/{s}-00000-of-00001.parquet" for c in ("default", "extended") for s in LEVELS),
        "manifest.json",
    ]
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8")) == manifest


def test_levels_are_found_from_low_to_high(built: Built) -> None:
    assert list(find(built[0])) == [(config, level) for config in ("default", "extended") for level in LEVELS]


def test_the_rows_are_those_of_the_generator(built: Built, triplets: list[Triplet]) -> None:
    out, manifest = built
    for config in ("default", "extended"):
        expected = {level: [getattr(t, config)[i].to_row() for t in triplets] for i, level in enumerate(LEVELS)}
        figures = manifest["configs"][config]
        for level in LEVELS:
            assert rows_of(out, config, level) == expected[level]
            assert figures["splits"][level]["content_hash"] == content_hash(expected[level])
        assert figures["content_hash"] == content_hash(row for rows in expected.values() for row in rows)


def test_extended_has_the_same_items_and_asks_more(built: Built) -> None:
    for level in LEVELS:
        for row, further in zip(*(rows_of(built[0], c, level) for c in ("default", "extended")), strict=True):
            n = len(row["probes"])
            assert {**further, "probes": further["probes"][:n]} == row
            assert {p["family"] for p in row["probes"]} == {"target", "ripple"}
            assert {p["family"] for p in further["probes"][n:]} == {"control", "confirm", "alias"}


def test_a_smaller_build_is_the_beginning_of_a_larger_one(built: Built, tmp_path: Path) -> None:
    build_membehave(tmp_path / "out", 1, seed=SEED)
    for level in LEVELS:
        assert rows_of(tmp_path / "out", "extended", level) == rows_of(built[0], "extended", level)[:1]


def test_the_manifest_has_the_parameters(built: Built) -> None:
    assert built[1]["parameters"] == {
        "triplets": 3, "triplets_per_user": 1, "sessions_per_user": 80, "same_message": 0.25, "noise": 0.0,
        "seed": 7, "gated": False,
    }  # fmt: skip
    assert (built[1]["dataset"], built[1]["schema_version"]) == ("membehave", 1)
    assert sorted(built[1]["versions"]) == ["forget-datasets", "pyarrow", "python"]


def test_the_level_table_counts_the_rows(built: Built) -> None:
    out, manifest = built
    for config in ("default", "extended"):
        figures = manifest["configs"][config]
        assert (figures["rows"], figures["users"], figures["triplets"]) == (9, 3, 3)
        for level in LEVELS:
            rows = rows_of(out, config, level)
            found = figures["levels"][level]
            shared = [sum(bool(n["shared_with"]) for n in row["neighbors"]) for row in rows]
            degrees = [len(row["neighbors"]) for row in rows]
            assert found["items"] == 3
            assert found["mean_shared"] == pytest.approx(sum(shared) / 3, abs=1e-4)
            assert found["degree"] == {"smallest": min(degrees), "largest": max(degrees)}
            ratios = [s / d for s, d in zip(shared, degrees, strict=True)]
            assert found["mean_ratio"] == pytest.approx(sum(ratios) / 3, abs=1e-4)
            assert found["ripple_probes"] == sum(p["family"] == "ripple" for row in rows for p in row["probes"])
            assert found["same_message"] == sum(len(same_message(row)) for row in rows)
        assert figures["sessions"] == {"smallest": 80, "largest": 80}
        assert figures["days"]["smallest"] >= 365


def same_message(row: dict[str, Any]) -> set[str]:
    """The entities of which the target's quote is somebody else's as well."""
    quotes = {e["entity"]: e["quote"] for e in row["evidence"] if e["person"] == row["target"]}
    return {e["entity"] for e in row["evidence"] if e["person"] != row["target"] and e["quote"] == quotes[e["entity"]]}


def test_screening_adds_up(built: Built) -> None:
    out, manifest = built
    for level in LEVELS:
        asked = [p for row in rows_of(out, "extended", level) for p in row["probes"]]
        screened = manifest["generation"]["screening"][level]
        kept = sum(p["family"] in ("ripple", "control") for p in asked)
        assert screened["written"] - sum(screened["dropped"].values()) == kept
    histories = manifest["generation"]["histories"]
    assert 0 < histories["phrase_share"]["largest"] <= 0.02
    assert histories["fact_share"]["mean"] <= histories["fact_share"]["largest"] <= 1 / 3
    assert histories["people_share"]["largest"] <= 1 / 3


def test_a_history_of_several_triplets_counts_once(tmp_path: Path) -> None:
    told = [t.figures for t in generate(3, triplets_per_user=3, seed=1)]
    manifest = build_membehave(tmp_path / "out", 3, triplets_per_user=3, seed=1)
    assert [manifest["configs"]["default"][name] for name in ("users", "triplets")] == [1, 3]
    assert manifest["parameters"]["sessions_per_user"] == 120
    assert manifest["generation"]["rejected_draws"] == dict(sorted(told[0].rejected.items()))
    assert {row["triplet_id"] for row in rows_of(tmp_path / "out", "default", "low")} == {
        "user-0001#0", "user-0001#1", "user-0001#2",
    }  # fmt: skip
    assert validate(tmp_path / "out").problems == []


def test_controls_land_where_they_must(built: Built) -> None:
    out, manifest = built
    controls = manifest["configs"]["extended"]["controls"]
    assert sorted(controls) == ["keep-all", "null", "oracle", "redactor", "wipe-all"]
    landed = {
        name: {metric: {rate["value"] for rate in levels.values()} for metric, levels in found.items()}
        for name, found in controls.items()
    }
    forgetting = ("target_coverage", "attributed_coverage", "confirm_leak", "alias_coverage")
    surviving = ("ripple_survival", "control_survival")
    assert all(landed["null"][m] == {None} for m in (*forgetting, *surviving, "selective_forgetting", "resurfaced"))
    assert controls["null"]["ripple_survival"]["low"]["excluded"] == 3
    assert all(landed["keep-all"][m] == {1.0} for m in (*forgetting, *surviving))
    assert all(landed["wipe-all"][m] == {0.0} for m in (*forgetting, *surviving))
    assert all(landed["redactor"][m] == {0.0} for m in forgetting)
    assert all(landed["oracle"][m] == {0.0} for m in forgetting)
    assert all(landed["oracle"][m] == {1.0} for m in (*surviving, "selective_forgetting"))
    assert landed["keep-all"]["selective_forgetting"] == landed["wipe-all"]["selective_forgetting"] == {0.0}
    for level in LEVELS:
        rates = []
        for row in rows_of(out, "default", level):
            asked = [p["entity"] for p in row["probes"] if p["family"] == "ripple"]
            rates.append(sum(entity not in same_message(row) for entity in asked) / len(asked))
        survived = controls["redactor"]["ripple_survival"][level]
        assert survived == {"value": pytest.approx(sum(rates) / 3, abs=1e-4), "excluded": 0}
    assert "control_survival" not in manifest["configs"]["default"]["controls"]["oracle"]


LOAD = """
import json, sys
from datasets import load_dataset
from forget_datasets.rows import content_hash
found = {}
for streaming in (False, True):
    for config in ("default", "extended"):
        for level in ("low", "med", "high"):
            rows = load_dataset(sys.argv[1], config, split=level, streaming=streaming)
            found[f"{config} {level} {streaming}"] = content_hash(rows)
low = load_dataset(sys.argv[1], split="low", streaming=True)
found["default"] = content_hash(low)
by_triplet = {}
for rows in load_dataset(sys.argv[1]).values():
    for row in rows:
        by_triplet.setdefault(row["triplet_id"], []).append((row["level"], content_hash(row["sessions"])))
found["joined"] = {k: [[level for level, _ in v], len({h for _, h in v})] for k, v in by_triplet.items()}
found["features"] = str(low.features)
print(json.dumps(found))
"""


def test_load_dataset_reads_the_levels_and_triplets_join(
    built: Built, load_offline: Callable[[str, Path], dict[str, Any]]
) -> None:
    out, manifest = built
    found = load_offline(LOAD, out)
    for config, figures in manifest["configs"].items():
        for level in LEVELS:
            for streaming in (False, True):
                assert found[f"{config} {level} {streaming}"] == figures["splits"][level]["content_hash"]
    assert found["default"] == manifest["configs"]["default"]["splits"]["low"]["content_hash"]
    assert found["joined"] == {f"user-000{i}#0": [["low", "med", "high"], 1] for i in (1, 2, 3)}
    assert "'shared': Value('int32')" in found["features"]
    assert "'entanglement_ratio': Value('float64')" in found["features"]


def test_the_evaluation_opens_what_was_built(built: Built) -> None:
    out, manifest = built
    for config in ("default", "extended"):
        found = open_dataset(str(out), "membehave", config)
        assert (found.n, found.content_hash) == (9, manifest["configs"][config]["content_hash"])


def test_another_process_writes_the_same_bytes(
    built: Built, tree: Tree, in_another_process: Run, tmp_path: Path
) -> None:
    code = (
        "import sys; from pathlib import Path; from forget_datasets.build import build_membehave; "
        "build_membehave(Path(sys.argv[1]), 3, seed=7)"
    )
    done = in_another_process(code, tmp_path / "again", PYTHONHASHSEED="99", TZ="Asia/Tokyo")
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "again") == tree(built[0])


def test_the_same_parameters_again_leave_the_folder_alone(tmp_path: Path) -> None:
    outcomes: list[Outcome] = []
    for sessions, noise in ((None, 0), (80, 0.0)):
        build_membehave(tmp_path / "out", 1, sessions_per_user=sessions, noise=noise, settled=outcomes.append)
    assert outcomes == [Outcome.NEW, Outcome.UNCHANGED]
    with pytest.raises(UserError, match=r"noise 0\.0, not 0\.1.*--force"):
        build_membehave(tmp_path / "out", 1, noise=0.1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"triplets": 0}, "cannot build 0 triplets"),
        ({"triplets_per_user": 4}, "a history holds 1 to 3 triplets"),
        ({"sessions_per_user": 10}, "must be 60 to 120"),
        ({"same_message": 1.5}, "same_message is 1.5"),
        ({"noise": -0.1}, r"noise is -0\.1"),
    ],
)
def test_an_argument_out_of_bounds_is_said(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_membehave(tmp_path / "out", **wrong)
    assert list(tmp_path.iterdir()) == []


def test_an_item_that_contradicts_itself_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tampered(*arguments: Any, **options: Any) -> Iterator[Triplet]:
        for triplet in generate(*arguments, **options):
            low, *others = triplet.default
            yield replace(triplet, default=(replace(low, shared=4), *others))

    monkeypatch.setattr(forget_datasets.build, "generate", tampered)
    with pytest.raises(Refused, match=r"user-0001#.*: level: 'low' contradicts shared 4 \(med\)"):
        build_membehave(tmp_path / "out", 1)
    assert list(tmp_path.iterdir()) == []


def test_half_a_triplet_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tampered(*arguments: Any, **options: Any) -> Iterator[Triplet]:
        for triplet in generate(*arguments, **options):
            yield replace(triplet, default=triplet.default[:2], extended=triplet.extended[:2])

    monkeypatch.setattr(forget_datasets.build, "generate", tampered)
    with pytest.raises(Refused, match="has low, med where low, med and high should be once each"):
        build_membehave(tmp_path / "out", 1)


def test_noise_is_stated_and_valid(tmp_path: Path) -> None:
    manifest = build_membehave(tmp_path / "out", 2, noise=0.2, same_message=0.5)
    assert (manifest["parameters"]["noise"], manifest["parameters"]["same_message"]) == (0.2, 0.5)
    assert validate(tmp_path / "out").problems == []
    manifest["parameters"]["noise"] = 0
    (tmp_path / "out/manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    found = validate(tmp_path / "out").problems
    assert any("does not name" in p.message and p.column == "evidence" for p in found)
    assert any("is evidence of nobody there" in p.message for p in found)


def test_the_command_builds_and_validates(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "mb"
    shape = ("--triplets", 1, "--seed", 7, "--same-message", 0.5, "--sessions-per-user", 90, "--gated")
    code, stdout, stderr = command("build", "membehave", "--out", out, *shape)
    assert (code, stderr) == (0, "")
    assert stdout == (
        f"{out}: built, 6 rows in 2 configs (default, extended). "
        f'Load with datasets.load_dataset("{out}", "default", split="low")\n'
    )
    parameters = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["parameters"]
    assert parameters == {
        "triplets": 1, "triplets_per_user": 1, "sessions_per_user": 90, "same_message": 0.5, "noise": 0.0,
        "seed": 7, "gated": True,
    }  # fmt: skip
    assert command("validate", out) == (0, f"{out}: membehave, 6 rows in 2 configs: valid\n", "")


def test_the_command_says_what_is_out_of_bounds(command: Command, tmp_path: Path) -> None:
    code, stdout, stderr = command("build", "membehave", "--out", tmp_path / "mb", "--noise", "2")
    assert (code, stdout) == (2, "")
    assert stderr == "forget-datasets: noise is 2.0: give a share from 0 to 1.\n"


def test_the_options_default_as_the_function_does() -> None:
    function = inspect.signature(build_membehave).parameters
    assert isinstance(build_commands, click.Group)
    given = build_commands.commands["membehave"].make_context("membehave", ["--out", "x"]).params
    assert set(given) == set(function) - {"progress", "settled"}
    assert {name: given[name] for name in set(given) - {"out"}} == {
        name: function[name].default for name in set(given) - {"out"}
    }
