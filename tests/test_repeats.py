"""Repeats of a system: components of variance worked out by hand, and the summary over real runs."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.errors import UserError
from forget_eval import bench, repeats, runs, scores
from forget_eval.bootstrap import cluster_interval
from forget_eval.data import open_dataset
from forget_eval.membehave.bench import run_system
from forget_eval.membehave.systems import Settings
from forget_eval.report.repeats import print_repeats
from forget_eval.stats import stratified_wilson

Built = tuple[Path, dict[str, Any]]


def test_components_by_hand() -> None:
    """Rows 11, 10, 00 of two repeats. Means of rows 1, 1/2, 0, of repeats 2/3, 1/3, of all 1/2.

    Rows: 2 (1/4 + 0 + 1/4) / 2 = 1/2. Repeats: 3 (1/36 + 1/36) / 1 = 1/6. The rest sums to 1/3, with 2 degrees of
    freedom: 1/6. So cases (1/2 - 1/6) / 2 = 1/6, repeats (1/6 - 1/6) / 3 = 0, noise 1/6.
    """
    found = repeats.components(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]))
    assert found.cases == pytest.approx(1 / 6)
    assert found.repeats == pytest.approx(0.0)
    assert found.noise == pytest.approx(1 / 6)


def test_whole_repeats_that_differ_are_no_noise_of_cases() -> None:
    """One repeat passes everything, one nothing: 4 (1/4 + 1/4) / 4 = 1/2 between repeats, nothing else."""
    found = repeats.components(np.array([[1.0, 0.0]] * 4))
    assert (found.cases, found.repeats, found.noise) == (0.0, 0.5, 0.0)


def test_what_sets_strata_apart_is_no_variance_between_cases() -> None:
    outcomes = np.array([[1.0, 1.0]] * 3 + [[0.0, 0.0]] * 3)
    assert repeats.components(outcomes, ["a"] * 3 + ["b"] * 3).cases == 0.0
    assert repeats.components(outcomes).cases == pytest.approx(0.3)  # 2 * 6 / 4 / 5 / 2
    assert repeats.components(outcomes, list("abcdef")).cases == pytest.approx(0.3)  # nothing is known within


@given(st.lists(st.booleans(), min_size=2, max_size=40), st.integers(2, 5))
def test_a_system_that_answers_alike_has_the_interval_of_one_run(passed: list[bool], n: int) -> None:
    strata = [str(i % 3) for i in range(len(passed))]
    found = repeats.rate(np.array([[float(p)] * n for p in passed]), strata)
    counts = [(sum(passed[i::3]), len(passed[i::3])) for i in range(3)]
    alone = stratified_wilson(counts)
    assert (found.value, found.low, found.high) == (
        pytest.approx(alone.value), pytest.approx(alone.low, abs=1e-9), pytest.approx(alone.high, abs=1e-9)
    )  # fmt: skip
    assert found.disagree == 0
    assert found.components is not None
    assert (found.components.repeats, found.components.noise) == (0.0, 0.0)


def test_noise_averages_out_and_repeats_that_differ_do_not() -> None:
    """All have the rate 1/2 over 40 cases and two repeats: of a coin that is tossed anew, or once for all cases."""
    fixed = repeats.rate(np.array([[1.0, 1.0], [0.0, 0.0]] * 20), ["a"] * 40)
    noisy = repeats.rate(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]] * 10), ["a"] * 40)
    apart = repeats.rate(np.array([[1.0, 0.0]] * 40), ["a"] * 40)
    assert noisy.high - noisy.low < fixed.high - fixed.low < apart.high - apart.low
    assert (fixed.disagree, noisy.disagree, apart.disagree) == (0, 20, 40)
    assert (apart.low, apart.high) == (0.0, 1.0)  # two repeats that say the opposite say nothing


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_intervals_over_repeats_hold_their_value_and_have_a_width(rows: list[tuple[bool, bool, bool]]) -> None:
    outcomes = np.array(rows, dtype=float)
    found = repeats.rate(outcomes, [str(i % 2) for i in range(len(rows))])
    assert found.value == pytest.approx(outcomes.mean())
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high
    assert found.each == pytest.approx(list(outcomes.mean(axis=0)))


def test_a_mean_of_items_that_are_alike_has_the_interval_of_one_run() -> None:
    values, targets = [0.5, 1.0, 0.25, 0.0], ["maya", "maya", "hugo", "niamh"]
    found = repeats.mean(np.array([[v, v, v] for v in values]), [targets])
    alone = cluster_interval(values, targets)
    assert (found.value, found.low, found.high) == (alone.value, alone.low, alone.high)


def test_folders_are_numbered_and_found_in_their_order(tmp_path: Path) -> None:
    assert runs.repeat_folders(tmp_path, 1) == [tmp_path]
    wanted = runs.repeat_folders(tmp_path, 11)
    assert wanted[0] == tmp_path / "repeat-1"
    for folder in reversed(wanted):
        folder.mkdir()
    (tmp_path / "repeat-x").mkdir()
    assert runs.repeats_in(tmp_path) == wanted
    with pytest.raises(UserError, match="holds repeats"):
        runs.repeat_folders(tmp_path, 1)
    (tmp_path / "manifest.json").write_text("{}")
    assert runs.repeats_in(tmp_path) == []
    with pytest.raises(UserError, match="holds a run"):
        runs.repeat_folders(tmp_path, 2)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, forgeteval_built: Built, membehave_built: Built) -> Path:
    """Two runs of a control on either task, and three of another control whose answers differ in one case."""
    out = tmp_path_factory.mktemp("repeats")
    cases = open_dataset(str(forgeteval_built[0]), "forgeteval", "en")
    items = open_dataset(str(membehave_built[0]), "membehave", "default")
    for folder in runs.repeat_folders(out / "fe", 3):
        bench.run_adapter(cases, "oracle", folder, None)
    for folder in runs.repeat_folders(out / "mb", 2):
        run_system(items, "redactor", folder, None, Settings())
    for folder in (*runs.repeats_in(out / "fe"), *runs.repeats_in(out / "mb")):
        scores.score(folder)
    return out


def spoilt(folder: Path, numbers: range) -> None:
    """Takes the answers of some cases away."""
    path = folder / "transcripts.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for number in numbers:
        lines[number] |= {"final": [], "probes": [[] for _ in lines[number]["probes"]]}
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


@pytest.mark.parametrize("name", ["fe", "mb"])
def test_a_deterministic_system_never_disagrees_with_itself(played: Path, name: str) -> None:
    summary = repeats.summarise(played / name)
    assert summary["repeats"] == (3 if name == "fe" else 2)
    assert not any(summary["disagree"].values())
    one = json.loads((played / name / "repeat-1/summary.json").read_text())
    part = "rates" if name == "fe" else "metrics"
    for metric, places in summary[part].items():
        for place, found in places.items():
            assert found["disagree"] == 0
            alone = one[part][metric][place]
            assert (found["value"], found["n"]) == (alone["value"], alone["n"])
            if found["value"] is not None and metric != "resurfaced":
                assert (found["low"], found["high"]) == (pytest.approx(alone["low"]), pytest.approx(alone["high"]))


def test_cases_that_disagree_with_themselves_are_named(played: Path, tmp_path: Path) -> None:
    """Two of 50 cases pass in two of three repeats, so that the rate is 1 - 2 / 150."""
    shutil.copytree(played / "fe", tmp_path / "fe")
    data = json.loads((played / "fe/repeat-1/manifest.json").read_text())["dataset"]["path"]
    source = str((played / "fe/repeat-1" / data).resolve())
    spoilt(tmp_path / "fe/repeat-2", range(2))
    scores.score(tmp_path / "fe/repeat-2", source)
    summary = repeats.summarise(tmp_path / "fe")
    strict = summary["rates"]["strict"]["overall"]
    assert strict["value"] == pytest.approx(1 - 2 / 150)
    assert strict["each"] == pytest.approx([1.0, 0.96, 1.0])
    assert (strict["disagree"], len(summary["disagree"]["strict"])) == (2, 2)
    assert strict["components"]["noise"] > 0
    first = (tmp_path / "fe" / repeats.FILE).read_bytes()
    repeats.summarise(tmp_path / "fe")
    assert (tmp_path / "fe" / repeats.FILE).read_bytes() == first


@pytest.mark.parametrize("name", ["fe", "mb"])
def test_the_table_over_repeats_fits_the_terminal(played: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_repeats(repeats.summarise(played / name))
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text
    assert "3 repeats" in text or "2 repeats" in text


def test_one_repeat_or_several_systems_have_no_summary(played: Path, tmp_path: Path) -> None:
    shutil.copytree(played / "fe/repeat-1", tmp_path / "repeat-1")
    with pytest.raises(UserError, match="holds 1 repeats"):
        repeats.summarise(tmp_path)
    shutil.copytree(played / "mb/repeat-1", tmp_path / "repeat-2")
    with pytest.raises(UserError, match="are no repeats: task forgeteval and membehave"):
        repeats.summarise(tmp_path)


def test_runs_under_other_parameters_are_no_repeats(played: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        shutil.copytree(played / "mb/repeat-1", tmp_path / f"repeat-{number}")
    path = tmp_path / "repeat-2/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["assistant"]["forget_policy"] = "other"
    path.write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="are no repeats: forget policy None and other"):
        repeats.summarise(tmp_path)
