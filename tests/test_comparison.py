"""Runs against each other: tests and intervals worked out by hand, and the command over real runs."""

import csv
import io
import json
import math
import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from forget_datasets.errors import UserError
from forget_eval import bench, scores
from forget_eval.compare_commands import compare as command
from forget_eval.comparison import compare, forgeteval, membehave
from forget_eval.data import open_dataset
from forget_eval.membehave.bench import run_system
from forget_eval.membehave.systems import Settings
from forget_eval.paired import holm, mcnemar, paired_difference, smallest_difference

Built = tuple[Path, dict[str, Any]]
Z2 = 3.841458820694124

STRATA = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)).map(lambda t: (t[0], t[1], sum(t))), max_size=25
)


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [
        (0, 0, 1.0),
        (5, 5, 1.0),
        (6, 0, 0.03125),  # 2 / 2^6
        (2, 10, 0.03857421875),  # 2 (1 + 12 + 66) / 2^12
        (1, 0, 1.0),
    ],
)
def test_mcnemar_by_hand(gained: int, lost: int, p: float) -> None:
    assert mcnemar(gained, lost) == mcnemar(lost, gained) == pytest.approx(p)


def test_holm_by_hand() -> None:
    """0.01 * 3, then 0.03 * 2, then 0.04 * 1, which may not be below the one before."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_a_value_and_keeps_the_order(values: list[float]) -> None:
    found = holm(values)
    assert all(p - 1e-12 <= adjusted <= 1 for p, adjusted in zip(values, found, strict=True))
    ranked = [adjusted for _, adjusted in sorted(zip(values, found, strict=True))]
    assert ranked == sorted(ranked)


def test_where_no_case_differs_the_interval_has_a_width() -> None:
    """With q = -d lost pairs the score reaches z where n d² = z² d (1 - d), so at z² / (n + z²)."""
    found = paired_difference([(0, 0, 42)])
    assert (found.value, found.gained, found.lost) == (0.0, 0, 0)
    assert found.high == -found.low == pytest.approx(Z2 / (42 + Z2))


def test_where_all_cases_differ_the_interval_ends_at_one() -> None:
    found = paired_difference([(42, 0, 42)])
    assert found.high == 1.0
    assert found.low == pytest.approx(1 - 2 * Z2 / (42 + Z2))


def test_the_interval_ends_where_the_score_is_z() -> None:
    """9 gained and 5 lost of 44. At an end d, q maximises 9 log(q + d) + 5 log q + 30 log(1 - 2q - d): by a grid."""
    found = paired_difference([(9, 5, 44)])
    for end in (found.low, found.high):
        steps = [max(0.0, -end) + i / 200_000 * ((1 - abs(end)) / 2) for i in range(1, 200_000)]
        q = max(steps, key=lambda q: 9 * math.log(q + end) + 5 * math.log(q) + 30 * math.log(1 - 2 * q - end))
        score = (4 - 44 * end) / math.sqrt(44 * (2 * q + end - end**2))
        assert abs(score) == pytest.approx(math.sqrt(Z2), abs=1e-3)


def test_alike_strata_are_one_sample_and_unlike_ones_are_surer() -> None:
    assert paired_difference([(2, 1, 10)] * 4).low == pytest.approx(paired_difference([(8, 4, 40)]).low, abs=1e-9)
    unlike, pooled = paired_difference([(10, 0, 10), (0, 0, 10)]), paired_difference([(10, 0, 20)])
    assert unlike.value == pooled.value == 0.5
    assert unlike.high - unlike.low < 0.8 * (pooled.high - pooled.low)


@given(STRATA)
def test_intervals_of_paired_differences(strata: list[tuple[int, int, int]]) -> None:
    found = paired_difference(strata)
    mirrored = paired_difference([(lost, gained, n) for gained, lost, n in strata])
    assert -1 <= found.low < found.high <= 1
    assert (mirrored.low, mirrored.high) == (pytest.approx(-found.high, abs=1e-9), pytest.approx(-found.low, abs=1e-9))
    if found.value is None:
        assert found.n == 0
    else:
        assert found.low <= found.value <= found.high
        assert found.value == pytest.approx((found.gained - found.lost) / found.n)


@pytest.mark.parametrize("strata", [[(2, 2, 3)], [(-1, 0, 3)]])
def test_more_flips_than_cases_are_an_error(strata: list[tuple[int, int, int]]) -> None:
    with pytest.raises(ValueError, match="are no pairs"):
        paired_difference(strata)


def test_the_smallest_difference_by_hand() -> None:
    """Six cases show a difference only if all six differ one way (2 / 2^6 = 0.031): d^6 = 0.8. Five never do."""
    assert smallest_difference(6, 0.0) == pytest.approx(0.8 ** (1 / 6), abs=1e-5)
    assert smallest_difference(5, 0.0) is None
    assert smallest_difference(0, 0.0) is None


def test_more_cases_and_fewer_that_differ_show_smaller_differences() -> None:
    sizes = [smallest_difference(n, 0.2) or 1.0 for n in (20, 50, 250, 1000)]
    shares = [smallest_difference(250, share) or 1.0 for share in (0.0, 0.05, 0.2, 0.5)]
    assert sizes == sorted(sizes, reverse=True)
    assert shares == sorted(shares)


def outcomes(*passed: str) -> dict[str, forgeteval.Outcome]:
    """Six cases of two templates of purge and two of one of drift."""
    cases = {f"p{i}": ("purge", "gdpr" if i < 3 else "phi") for i in range(6)} | {
        f"d{i}": ("drift", "color") for i in (0, 1)
    }
    return {name: (*of, name in passed) for name, of in cases.items()}


def test_a_comparison_counts_flips_each_way() -> None:
    cells = forgeteval.compare(outcomes("p0", "p1", "d0"), outcomes("p1", "p2", "p3", "p4"))
    overall, purge, drift = cells["overall"], cells["purge"], cells["drift"]
    assert (overall.n, overall.first, overall.second, overall.difference) == (8, 0.375, 0.5, 0.125)
    assert (overall.gained, overall.lost, overall.p) == (("p2", "p3", "p4"), ("p0", "d0"), 1.0)
    assert (purge.first, purge.second, purge.gained, purge.lost) == (
        pytest.approx(1 / 3), pytest.approx(2 / 3), ("p2", "p3", "p4"), ("p0",)
    )  # fmt: skip
    assert (purge.p, purge.p_holm, drift.p_holm) == (0.625, 1.0, 1.0)  # 2 (1 + 4) / 2^4, times the two families
    assert (cells["decay"].n, cells["decay"].difference, cells["decay"].p) == (0, None, None)


def item(value: float | None, number: int) -> membehave.Value:
    return membehave.Value("low" if number < 2 else "high", f"target {number % 3}", f"triplet {number}", value)


def test_items_count_where_both_runs_have_a_value() -> None:
    first = {f"i{n}": item(v, n) for n, v in enumerate((0.5, 1.0, None, 0.25))}
    second = {f"i{n}": item(v, n) for n, v in enumerate((1.0, 0.5, 0.5, 1.0))}
    cells = membehave.compare(first, second)
    assert (cells["all"].n, cells["all"].excluded) == (3, 1)
    assert cells["all"].difference == pytest.approx((0.5 - 0.5 + 0.75) / 3)
    assert (cells["all"].higher, cells["all"].lower) == (("i0", "i3"), ("i1",))
    assert (cells["high"].n, cells["high"].first, cells["high"].second, cells["high"].excluded) == (1, 0.25, 1.0, 1)
    assert cells["med"].difference is None


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, forgeteval_built: Built, membehave_built: Built) -> Path:
    """Runs of both tasks by controls: fe/null, fe/wipe-all, fe/oracle, mb/redactor, mb/keep-all, mb/null."""
    out = tmp_path_factory.mktemp("compared")
    cases = open_dataset(str(forgeteval_built[0]), "forgeteval", "en")
    for name in ("null", "wipe-all", "oracle"):
        bench.run_adapter(cases, name, out / "fe" / name, None)
        scores.score(out / "fe" / name)
    items = open_dataset(str(membehave_built[0]), "membehave", "default")
    for name in ("redactor", "keep-all", "null"):
        run_system(items, name, out / "mb" / name, None, Settings())
        scores.score(out / "mb" / name)
    return out


def said(*arguments: object) -> str:
    found = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert found.exit_code == 0, (found.output, found.exception)
    return found.stdout


def test_controls_are_as_far_apart_as_they_are_built_to_be(played: Path) -> None:
    """Strictly the oracle passes everything and wipe-all nothing, so all 50 cases flip one way: p = 2 / 2^50."""
    found = compare([played / "fe/wipe-all", played / "fe/oracle", played / "fe/null"])
    assert [(pair.first, pair.second) for pair in found.pairs] == [("wipe-all", "oracle"), ("wipe-all", "null")]
    overall, nothing = (pair.metrics["strict"]["overall"] for pair in found.pairs)
    assert isinstance(overall, forgeteval.Cell)
    assert isinstance(nothing, forgeteval.Cell)
    assert (overall.first, overall.second, overall.difference, len(overall.gained)) == (0.0, 1.0, 1.0, 50)
    assert overall.p == pytest.approx(0.0, abs=1e-12)
    assert (nothing.difference, nothing.p, nothing.p_holm) == (0.0, 1.0, 1.0)
    assert nothing.low < 0 < nothing.high


def test_every_pair_can_be_compared(played: Path) -> None:
    found = compare([played / "fe" / name for name in ("null", "oracle", "wipe-all")], all_pairs=True)
    assert [(p.first, p.second) for p in found.pairs] == [
        ("null", "oracle"), ("null", "wipe-all"), ("oracle", "wipe-all")
    ]  # fmt: skip


def test_a_case_that_broke_has_not_passed_and_is_counted(played: Path, tmp_path: Path) -> None:
    folder = tmp_path / "oracle"
    folder.mkdir()
    manifest = json.loads((played / "fe/oracle/manifest.json").read_text())
    manifest["dataset"]["path"] = str((played / "fe/oracle" / manifest["dataset"]["path"]).resolve())
    (folder / "manifest.json").write_text(json.dumps(manifest))
    lines = [json.loads(line) for line in (played / "fe/oracle/transcripts.jsonl").read_text().splitlines()]
    error = {"kind": "ValueError", "message": "x", "during": "recall", "traceback": ""}
    lines[0] |= {"status": "error", "error": error}
    lines[1] |= {"status": "n/a"}
    (folder / "transcripts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:-1]))
    scores.score(folder)
    found = compare([played / "fe/oracle", folder])
    cell = found.pairs[0].metrics["strict"]["overall"]
    assert isinstance(cell, forgeteval.Cell)
    assert (cell.n, cell.gained, set(cell.lost)) == (50, (), {lines[0]["id"], lines[1]["id"], lines[-1]["id"]})
    runs = (played / "fe/oracle", folder)
    first, second = (f"oracle {sha256((run / 'manifest.json').read_bytes()).hexdigest()[:8]}" for run in runs)
    shown = " ".join(said(*runs).split())  # both runs are called oracle, as their folders are
    assert f"{second} (second) against {first} (first)" in shown
    assert f"{second}: 1 n/a, 1 error, 1 unscored" in shown


def test_items_are_compared_by_the_bootstrap(played: Path) -> None:
    """The redactor leaves nothing that is tied to the target, and keep-all everything."""
    found = compare([played / "mb/redactor", played / "mb/keep-all"])
    cells = found.pairs[0].metrics["attributed_coverage"]
    assert isinstance(cells["all"], membehave.Cell)
    assert (cells["all"].first, cells["all"].second, cells["all"].n) == (0.0, 1.0, 9)
    assert cells["all"].low < 1.0 == cells["all"].high
    assert len(cells["all"].higher) == 9
    assert "seed 20261130" in " ".join(found.method)


def test_what_one_run_never_knew_is_left_out(played: Path) -> None:
    found = compare([played / "mb/redactor", played / "mb/null"])
    cell = found.pairs[0].metrics["attributed_coverage"]["all"]
    assert isinstance(cell, membehave.Cell)
    assert (cell.n, cell.excluded, cell.difference) == (0, 9, None)


def test_a_count_of_entities_is_as_unsure_as_it_can_be_large(played: Path) -> None:
    """No item differs, in a count of up to 13 entities as in a share of at most 1."""
    (pair,) = compare([played / "mb/redactor", played / "mb/keep-all"]).pairs
    count, share = (pair.metrics[metric]["all"] for metric in ("resurfaced", "baseline_recall_ripple"))
    most = json.loads((played / "mb/redactor/summary.json").read_text())["bounds"]["resurfaced"]
    assert 11 <= most <= 13
    assert isinstance(count, membehave.Cell)
    assert isinstance(share, membehave.Cell)
    assert (count.n, count.difference, share.n, share.difference) == (9, 0.0, 9, 0.0)
    assert count.high == pytest.approx(most * share.high)


@pytest.mark.parametrize("names", [("fe/wipe-all", "fe/oracle", "fe/null"), ("mb/redactor", "mb/keep-all")])
def test_the_table_fits_the_terminal_and_is_whole(played: Path, names: tuple[str, ...]) -> None:
    text = said(*(played / name for name in names))
    assert all(cell_len(line) <= 100 for line in text.splitlines())
    assert "…" not in text
    assert text == said(*(played / name for name in names))


def test_flips_are_listed_as_far_as_wanted(played: Path) -> None:
    pair = played / "fe/wipe-all", played / "fe/oracle"
    assert "50 (supersession__job__001, " in said(*pair, "--flips", 2)
    assert "and 48 more" in said(*pair, "--flips", 2)
    assert "Pass in oracle alone, strict rate: 50\n" in said(*pair, "--flips", 0)


def test_machines_get_every_case_that_flipped(played: Path) -> None:
    pair = played / "fe/wipe-all", played / "fe/oracle"
    data = json.loads(said(*pair, "--json"))
    assert len(data["pairs"][0]["metrics"]["strict"]["overall"]["gained"]) == 50
    rows = list(csv.DictReader(io.StringIO(said(*pair, "--csv"))))
    assert len(rows) == 12  # two rates, overall and five families
    strict = next(row for row in rows if (row["metric"], row["place"]) == ("strict", "overall"))
    assert (float(strict["difference"]), len(strict["gained"].split(" "))) == (1.0, 50)
    assert "| overall | 50 | 0.0 | 100.0 | +100.0 [" in said(*pair, "--markdown")


def test_runs_of_other_data_are_refused_with_both_hashes(played: Path) -> None:
    with pytest.raises(UserError) as refusal:
        compare([played / "fe/null", played / "mb/null"])
    for name in ("fe/null", "mb/null"):
        content_hash = json.loads((played / name / "manifest.json").read_text())["dataset"]["content_hash"]
        assert content_hash in str(refusal.value)


@pytest.mark.parametrize(
    ("names", "rows", "key"),
    [(("fe/null", "fe/oracle"), "cases", "case"), (("mb/null", "mb/redactor"), "items", "item")],
)
def test_scores_of_unlike_rows_are_refused(
    played: Path, tmp_path: Path, names: tuple[str, str], rows: str, key: str
) -> None:
    first, second = played / names[0], Path(shutil.copytree(played / names[1], tmp_path / "run"))
    table = pq.read_table(second / "scores.parquet")
    odd = min(table[key].to_pylist())
    pq.write_table(table.filter(pc.not_equal(table[key], odd)), second / "scores.parquet")
    with pytest.raises(UserError, match=f"not of the same {rows}: one lacks '{re.escape(odd)}'. Score both again"):
        compare([first, second])


def test_one_run_is_no_comparison(played: Path) -> None:
    with pytest.raises(UserError, match="needs two runs"):
        compare([played / "fe/null", played / "fe/null"])


def test_one_form_at_a_time(played: Path) -> None:
    found = CliRunner().invoke(command, [str(played / "fe/null"), str(played / "fe/oracle"), "--json", "--csv"])
    assert isinstance(found.exception, UserError)
    assert "choose one" in str(found.exception)
