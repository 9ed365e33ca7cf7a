"""Scores worked out by hand: statuses, reasons, rates, and the files they are written to."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.errors import UserError
from forget_datasets.rows import GeneratedCase, Probe
from forget_eval import adapters, bench, scores
from forget_eval.data import open_dataset
from forget_eval.forgeteval import replay
from forget_eval.protocols import Status
from forget_eval.scoring.forgeteval import Score, score, summarise, tidy

SURVIVOR, LEAK = "Bob ordered tea.", "Alice ordered soup."


def case(number: int = 1, family: str = "purge", template: str = "gdpr") -> GeneratedCase:
    return GeneratedCase(
        id=f"{family}__{template}__{number:03d}",
        family=family,
        template=template,
        setup_facts=[LEAK, SURVIVOR],
        mutations=[("purge", "Alice")],
        final_query="Who ordered what?",
        must_contain=["tea"],
        must_not_contain=["Alice"],
        probes=[Probe("survivor", "What did Bob order?", ["tea"], []), Probe("leak", "Alice", [], ["Alice"])],
    )


def answered(**changes: Any) -> dict[str, Any]:
    good = {"status": "ok", "final": [SURVIVOR], "probes": [[SURVIVOR], []], "again": [[]], "error": None}
    good |= {"operations": [], "store": 2}
    return {"id": "purge__gdpr__001", **good, **changes}


def outcome(transcript: dict[str, Any] | None) -> list[tuple[str, Status, list[str]]]:
    return [(s.metric, s.status, [str(r) for r in s.reasons]) for s in score(case(), transcript)]


@pytest.mark.parametrize(
    ("transcript", "spec", "strict"),
    [
        (answered(), [], []),
        (answered(final=["BOB ORDERED TEA."]), [], []),
        (answered(final=[]), ["lost"], ["lost"]),
        (answered(final=[LEAK, SURVIVOR]), ["stale"], ["stale"]),
        (answered(final=[LEAK]), ["stale", "lost"], ["stale", "lost"]),
        (answered(probes=[[SURVIVOR], [LEAK]]), [], ["leak"]),
        (answered(again=[[LEAK]]), [], ["leak"]),
        (answered(probes=[[], []]), [], ["collateral"]),
        (answered(final=[], probes=[[], [LEAK]]), ["lost"], ["lost", "leak", "collateral"]),
        (answered(probes=[[SURVIVOR, LEAK], []]), [], []),  # a survivor probe forbids nothing
    ],
)
def test_verdicts_by_hand(transcript: dict[str, Any], spec: list[str], strict: list[str]) -> None:
    assert outcome(transcript) == [
        ("spec", Status.FAIL if spec else Status.PASS, spec),
        ("strict", Status.FAIL if strict else Status.PASS, strict),
    ]


def test_what_was_not_run_is_unscored() -> None:
    assert outcome(None) == [("spec", Status.UNSCORED, []), ("strict", Status.UNSCORED, [])]
    assert [s.value for s in score(case(), None)] == [None, None]


@pytest.mark.parametrize(("status", "expected"), [("n/a", Status.NA), ("error", Status.ERROR)])
def test_what_ended_before_the_final_query_passes_nothing(status: str, expected: Status) -> None:
    cut = answered(status=status, final=None, probes=[], again=[])
    assert outcome(cut) == [("spec", expected, []), ("strict", expected, [])]


def test_what_broke_on_a_probe_passes_under_neither_metric() -> None:
    cut = answered(status="error", probes=[[SURVIVOR]], again=[])
    assert outcome(cut) == [("spec", Status.ERROR, []), ("strict", Status.ERROR, [])]


def test_answers_to_other_probes_are_refused() -> None:
    with pytest.raises(UserError, match="purge__gdpr__001"):
        score(case(), answered(probes=[[SURVIVOR]]))


def test_a_summary_by_hand() -> None:
    rows = [
        (case(1), answered()),
        (case(2), answered(probes=[[SURVIVOR], [LEAK]])),
        (case(1, "purge", "phi"), answered(final=[], probes=[[], [LEAK]])),
        (case(2, "purge", "phi"), answered(status="n/a", final=None, probes=[], again=[])),
        (case(1, "decay", "otp"), answered(status="error", probes=[], again=[])),
        (case(2, "decay", "otp"), None),
    ]
    summary = summarise("plain", [s for row, transcript in rows for s in score(row, transcript)])
    assert list(summary) == ["task", "adapter", "n", "statuses", "rates", "templates", "reasons"]
    assert (summary["task"], summary["adapter"], summary["n"]) == ("forgeteval", "plain", 6)
    assert summary["statuses"] == {
        "spec": {"pass": 2, "fail": 1, "n/a": 1, "error": 1, "unscored": 1},
        "strict": {"pass": 1, "fail": 2, "n/a": 1, "error": 1, "unscored": 1},
    }
    assert summary["reasons"] == {"stale": 0, "lost": 1, "leak": 2, "collateral": 1}
    spec = summary["rates"]["spec"]
    assert list(spec) == ["overall", "supersession", "decay", "amnesia", "purge", "drift"]
    counts = {name: (rate["passed"], rate["n"]) for name, rate in spec.items()}
    assert counts == {
        "overall": (2, 6), "supersession": (0, 0), "decay": (0, 2), "amnesia": (0, 0), "purge": (2, 4), "drift": (0, 0),
    }  # fmt: skip
    assert spec["overall"]["value"] == pytest.approx(1 / 3)
    assert spec["drift"] == {"value": None, "low": 0.0, "high": 1.0, "n": 0, "passed": 0}
    templates = summary["templates"]["spec"]
    assert list(templates) == ["purge__gdpr", "purge__phi", "decay__otp"]
    assert templates["purge__gdpr"]["passed"] == 2
    assert templates["purge__gdpr"]["low"] == pytest.approx(2 / (2 + 1.959964**2), abs=1e-6)
    assert templates["decay__otp"]["high"] == pytest.approx(1.959964**2 / (2 + 1.959964**2), abs=1e-6)


def test_what_wiping_everything_earns_by_hand() -> None:
    moved = ("supersede", "what Alice ordered", "Alice now wants rice.")
    again = ("supersede", "what Alice ordered", "Alice now wants figs.")
    cases = [
        replace(case(1, "supersession", "job"), mutations=[moved], must_contain=["rice"], must_not_contain=["soup"]),
        replace(case(2, "supersession", "job"), mutations=[moved], must_contain=["rice", "tea"]),  # lost: the tea
        replace(case(1, "drift", "jobs"), mutations=[moved, again], must_contain=["figs"], must_not_contain=["rice"]),
        replace(case(2, "drift", "jobs"), mutations=[again, moved], must_contain=["figs"]),  # lost: the figs
        replace(case(1, "decay", "otp"), mutations=[("release", "Alice")], must_contain=[]),
        case(1, "purge", "gdpr"),  # lost: the tea
        case(2, "purge", "gdpr"),  # lost: the tea
    ]
    cases = [replace(row, probes=[row.probes[0]]) for row in cases]
    wiper = adapters.load("wipe-all")
    summary = summarise("wipe-all", [s for row in cases for s in score(row, replay(row, wiper))])
    spec, strict = summary["rates"]["spec"], summary["rates"]["strict"]
    assert {name: (rate["passed"], rate["n"]) for name, rate in spec.items()} == {
        "overall": (3, 7), "supersession": (1, 2), "decay": (1, 1), "amnesia": (0, 0), "purge": (0, 2), "drift": (1, 2),
    }  # fmt: skip
    assert spec["overall"]["value"] == pytest.approx(3 / 7)
    assert strict["overall"]["passed"] == 0  # Bob's tea is gone from every store


STATUSES = st.sampled_from(list(Status))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), STATUSES, STATUSES), max_size=60))
def test_statuses_sum_to_the_cases_and_rates_count_all_of_them(drawn: list[tuple[int, int, Status, Status]]) -> None:
    families = ("supersession", "decay", "amnesia", "purge", "drift")
    drawn_scores = [
        Score(f"{i}", families[family], f"t{template}", metric, None, status, ())
        for i, (family, template, spec, strict) in enumerate(drawn)
        for metric, status in (("spec", spec), ("strict", strict))
    ]
    summary = summarise("x", drawn_scores)
    for metric in ("spec", "strict"):
        assert sum(summary["statuses"][metric].values()) == len(drawn)
        overall = summary["rates"][metric]["overall"]
        assert overall["n"] == len(drawn)
        assert overall["passed"] == summary["statuses"][metric]["pass"]
        assert sum(rate["n"] for rate in summary["templates"][metric].values()) == len(drawn)
        assert sum(summary["rates"][metric][family]["passed"] for family in families) == overall["passed"]


def test_tidy_rows_hold_plain_values() -> None:
    rows = tidy("lethe-1", score(case(), answered(final=[LEAK])))
    assert rows[0] == {
        "run": "lethe-1",
        "case": "purge__gdpr__001",
        "family": "purge",
        "template": "gdpr",
        "metric": "spec",
        "value": 0.0,
        "status": "fail",
        "reasons": ["stale", "lost"],
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the hand-made cases by the control wipe-all, with its dataset beside it."""
    root = tmp_path_factory.mktemp("finished")
    bench.build_data(root / "data", bench.Shape())
    bench.run_adapter(open_dataset(str(root / "data"), "forgeteval", "handmade"), "wipe-all", root / "run", None)
    return root


def test_scoring_twice_gives_the_same_bytes(finished: Path) -> None:
    run = finished / "run"
    summary = scores.score(run)
    first = [(run / name).read_bytes() for name in (scores.SCORES, scores.SUMMARY)]
    assert json.loads(first[1]) == summary
    scores.score(run, str(finished / "data"))
    assert [(run / name).read_bytes() for name in (scores.SCORES, scores.SUMMARY)] == first


def test_scores_are_tidy_rows_of_every_case_and_metric(finished: Path) -> None:
    scores.score(finished / "run")
    table = pq.read_table(finished / "run" / scores.SCORES)
    assert table.schema.equals(scores.SCHEMA)
    rows = table.to_pylist()
    assert len({(row["case"], row["metric"]) for row in rows}) == len(rows) == 30
    assert {row["run"] for row in rows} == {"run"}
    assert {row["status"] for row in rows if row["metric"] == "strict"} == {"fail"}


def test_a_run_that_was_cut_off_is_scored_with_the_rest_unscored(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished / "run", run)
    lines = (run / "transcripts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "transcripts.jsonl").write_bytes(b"".join(lines[:4]) + lines[4][:30])
    summary = scores.score(run, str(finished / "data"))
    assert summary["n"] == 15
    assert summary["statuses"]["strict"]["unscored"] == 11
    assert summary["rates"]["strict"]["overall"]["n"] == 15


def test_a_run_is_scored_with_no_other_dataset_than_its_own(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished / "run", run)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["dataset"]["content_hash"] = "0" * 64
    (run / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=r"is not the dataset of .*000000000000"):
        scores.score(run, str(finished / "data"))


def test_a_case_that_the_dataset_lacks_is_named(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished / "run", run)
    with open(run / "transcripts.jsonl", "ab") as file:
        file.write(json.dumps({**answered(), "id": "purge__gdpr__999"}).encode() + b"\n")
    with pytest.raises(UserError, match="purge__gdpr__999"):
        scores.score(run, str(finished / "data"))
