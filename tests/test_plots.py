"""The plots: what is drawn, from frames whose numbers are known."""

import pandas as pd

from forget_eval import plots

RATES = pd.DataFrame(
    [
        {"system": s, "control": s == "oracle", "metric": m, "place": p, "value": v, "low": v - 0.1, "high": v, "n": 10}
        for m in ("strict", "spec")
        for s, v in (("mine", 0.25), ("oracle", 1.0))
        for p in ("overall", "supersession", "decay", "amnesia", "purge", "drift", "decay__otp", "drift__jobs")
    ]
)


def test_a_heat_map_holds_its_numbers() -> None:
    [axis] = plots.heatmap(RATES).axes
    assert sorted(text.get_text() for text in axis.texts) == ["100", "100", "25", "25"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["decay · otp", "drift · jobs"]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["mine", "oracle"]


def test_rates_are_drawn_with_their_intervals() -> None:
    axes = plots.rates(RATES).axes
    assert [axis.get_title() for axis in axes] == ["overall", "supersession", "decay", "amnesia", "purge", "drift"]
    spans = [line.get_xdata() for line in axes[0].lines if len(line.get_xdata()) == 2]
    assert [sorted(map(float, span)) for span in spans] == [[15.0, 25.0], [90.0, 100.0]] * 2


def test_reasons_are_stacked_and_told_apart_by_hatching() -> None:
    counts = {"stale": 3, "lost": 0, "leak": 4, "collateral": 0, "n/a": 2, "error": 0, "unscored": 0}
    frame = pd.DataFrame([{"system": "mine", "reason": r, "n": n, "cases": 8} for r, n in counts.items()])
    [axis] = plots.reasons(frame).axes
    assert [(bar.get_x(), bar.get_width()) for bar in axis.patches] == [(0, 3), (3, 4), (7, 2)]
    assert len({bar.get_hatch() for bar in axis.patches}) == 3


def test_latency_shows_the_systems_that_do_something() -> None:
    spent = [(system, seconds) for system in ("mine", "null") for seconds in (0.001, 0.002, 0.009)]
    frame = pd.DataFrame(
        [{"system": s, "control": s == "null", "operation": "purge", "seconds": seconds} for s, seconds in spent]
    )
    [axis] = plots.latency(frame).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["mine"]
    assert [list(line.get_xdata()) for line in axis.lines if len(line.get_xdata()) == 1] == [[2.0]]


def test_the_trade_off_puts_forgetting_against_survival() -> None:
    known = {"keep-all": (1.0, 1.0), "mine": (0.2, 0.75), "null": (float("nan"), float("nan"))}
    frame = pd.DataFrame(
        [
            {"system": s, "control": s != "mine", "metric": m, "place": "all", "value": v, "low": v, "high": v}
            for s, pair in known.items()
            for m, v in zip(("attributed_coverage", "ripple_survival"), pair, strict=True)
        ]
    )
    [axis] = plots.tradeoff(frame).axes
    points = {(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in axis.lines}
    assert points == {(0.0, 100.0), (80.0, 75.0)}  # what is covered is not forgotten; null knows nothing
    assert {text.get_text() for text in axis.texts} == {"keep-all", "mine"}


def test_levels_have_a_line_for_each_triplet_and_the_mean() -> None:
    values = {"t1": (1.0, 0.5, 0.25), "t2": (1.0, 1.0, None)}
    levels = ("low", "med", "high")
    metrics = ("attributed_coverage", "ripple_survival")
    items = [
        {"system": "mine", "control": False, "triplet": t, "level": level, "metric": m, "value": v}
        for m in metrics
        for t, found in values.items()
        for level, v in zip(levels, found, strict=True)
    ]
    means = [
        {"system": "mine", "control": False, "metric": m, "place": level, "value": v, "low": 0.1, "high": 1.0}
        for m in metrics
        for level, v in zip(levels, (1.0, 0.75, 0.25), strict=True)
    ]
    axes = plots.levels(pd.DataFrame(items), pd.DataFrame(means)).axes
    drawn = [list(map(float, line.get_ydata())) for line in axes[1].lines]
    assert drawn[0] == [100.0, 50.0, 25.0]
    assert drawn[1][:2] == [100.0, 100.0]
    assert drawn[2:5] == [[10.0, 100.0]] * 3
    assert drawn[5] == [100.0, 75.0, 25.0]


def test_plots_leave_the_notebook_s_style_alone() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    plots.rates(RATES)
    assert dict(matplotlib.rcParams) == before
