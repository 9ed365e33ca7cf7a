"""The plots of a report, for notebooks too: tidy data frames in (`forget_eval.report.frames`), matplotlib figures out.

    from pathlib import Path
    from forget_eval import plots
    from forget_eval.report import frames, groups

    [group] = groups.load(Path("runs/forgeteval-en").glob("*/"))
    plots.rates(frames.rates(group)).savefig("rates.png")

Every function raises UserError with the install line if matplotlib is not there. No plot tells by colour alone: systems
differ in marker, reasons in hatching, and heat maps hold their numbers.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from forget_datasets.rows import FAMILIES, LEVELS
from forget_datasets.verdicts import Reason
from forget_eval.packages import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame, Series

P = ParamSpec("P")

INK, MUTED, PAPER, ACCENT = "#1b1f24", "#6e7781", "#ffffff", "#0b6fb0"
"""Text and lines, what stands back, the ground, and what is measured. A page may put its own in their place."""
REASONS = {
    Reason.STALE.value: ("#D55E00", ""),
    Reason.LOST.value: ("#0072B2", "////"),
    Reason.LEAK.value: ("#E69F00", "...."),
    Reason.COLLATERAL.value: ("#56B4E9", "\\\\\\\\"),
    "n/a": ("#9a9a9a", "xxxx"),
    "error": ("#CC79A7", "++++"),
    "unscored": ("#c8c8c8", "----"),
}
"""Colour (Okabe and Ito 2008) and hatching of each way to fail, in the order in which they are stacked."""
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a system may have a dollar in its name
    "svg.hashsalt": "forget-eval",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "text.color": INK,
    "hatch.color": INK,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
}
"""The rcParams of every figure."""
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
_DARK, _LIGHT = "#000001", "#fffffe"  # on coloured cells, whatever the ground is
_WIDE = 6.6  # inches, which fit the text column of a page
_ROW = 0.3
_LEAST = 1e-3  # milliseconds; below it a logarithmic axis would tell of nothing but the clock


def styled(draw: "Callable[P, Figure]") -> "Callable[P, Figure]":
    """Draws in our style, whatever the notebook's is, and without touching it."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> "Figure":
        matplotlib = require("matplotlib", "report", "a plot")
        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


@styled
def rates(frame: "DataFrame") -> "Figure":
    """Both rates of each system with their 95% intervals, overall and by family.

    Args:
        frame: as `frames.rates` of ForgetEval: system, control, metric, place, value, low, high.
    """
    places, systems = ("overall", *FAMILIES), _systems(frame)
    figure, axes = panels(len(places), (_WIDE + 2, 1.15 + 1.3 * _ROW * len(systems)), sharex=True, sharey=True)
    for axis, place in zip(axes, places, strict=True):
        for metric, shift, filled in (("strict", -0.16, True), ("spec", 0.16, False)):
            found = _by(_only(frame, place=place, metric=metric), "system")
            for y, system in enumerate(systems):
                _spread(axis, found[system], y + shift, filled)
        axis.set(title=place, xlim=(-4, 104), xticks=[0, 50, 100])
        axis.grid(axis="x", color=MUTED, alpha=0.25, linewidth=0.6)
    axes[0].set_yticks(range(len(systems)), systems)
    axes[0].set_ylim(len(systems) - 0.5, -0.5)
    _legend_of_rates(figure)
    return figure


@styled
def leaderboard(frame: "DataFrame", name: str) -> "Figure":
    """Ranked runs with the 95% interval of what they are ranked by; after each name its rank or range of ranks.

    Args:
        frame: as `leaderboard.shown.frame` of one board: system, control, best, worst, value, low, high.
        name: what they are ranked by.
    """
    rows: list[dict[Any, Any]] = frame.to_dict("records")
    figure, (axis,) = panels(1, (_WIDE, 0.95 + _ROW * len(rows)))
    for y, row in enumerate(rows):
        _spread(axis, row, y, filled=not row["control"])
    axis.set_yticks(range(len(rows)), [_ranked(row) for row in rows])
    axis.set(xlim=(-4, 104), ylim=(len(rows) - 0.5, -0.5), xlabel=f"{name}, % (line: 95% interval)")
    if first := next((y for y, row in enumerate(rows) if row["control"]), 0):
        axis.axhline(first - 0.5, color=MUTED, linewidth=0.6, alpha=0.5)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color=MUTED, alpha=0.25, linewidth=0.6)
    return figure


@styled
def heatmap(frame: "DataFrame", metric: str = "strict") -> "Figure":
    """The rate of each system on each template, in percent.

    Args:
        frame: as `frames.rates` of ForgetEval.
        metric: strict or spec.
    """
    from forget_eval.report.frames import places

    table = frame[frame["metric"] == metric].pivot(index="place", columns="system", values="value")
    rows, systems = places(frame), _systems(frame)
    table = 100 * table.reindex(index=rows, columns=systems)
    figure, (axis,) = panels(1, (2.6 + 0.62 * len(systems), 0.9 + 0.235 * len(rows)))
    axis.pcolormesh(table.to_numpy(), cmap="cividis", vmin=0, vmax=100, edgecolors=PAPER, linewidth=1)
    axis.set_ylim(len(rows), 0)
    for (y, x), value in _cells(table):
        axis.text(x + 0.5, y + 0.5, f"{value:.0f}", ha="center", va="center", color=_DARK if value > 50 else _LIGHT)
    for y in _ends_of_families(rows):
        axis.axhline(y, color=PAPER, linewidth=5)
    axis.xaxis.tick_top()
    axis.set_xticks([x + 0.5 for x in range(len(systems))], systems, rotation=30, ha="left", rotation_mode="anchor")
    axis.set_yticks([y + 0.5 for y in range(len(rows))], [row.replace("__", " · ") for row in rows])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    return figure


@styled
def reasons(frame: "DataFrame") -> "Figure":
    """Why cases failed, stacked: a case with two reasons counts for both.

    Args:
        frame: as `frames.reasons`: system, reason, n, cases.
    """
    systems = _systems(frame)
    figure, (axis,) = panels(1, (_WIDE, 1.35 + _ROW * len(systems)))
    left = dict.fromkeys(systems, 0)
    for reason, (colour, hatch) in REASONS.items():
        found = {s: int(row["n"]) for s, row in _by(_only(frame, reason=reason), "system").items()}
        if not any(found.values()):
            continue
        widths, starts = [found[s] for s in systems], [left[s] for s in systems]
        axis.barh(systems, widths, 0.62, starts, color=colour, hatch=hatch, label=reason, edgecolor=PAPER, linewidth=0)
        left = {s: left[s] + width for s, width in zip(systems, widths, strict=True)}
    cases = int(frame["cases"].max())
    axis.axvline(cases, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    axis.annotate(f"{cases} cases", (cases, -0.6), ha="right", va="bottom", xytext=(-3, 0), textcoords="offset points")
    axis.set(xlabel="reasons", ylim=(len(systems) - 0.5, -0.9), xlim=(0, 1.04 * max(cases, *left.values())))
    axis.tick_params(axis="y", length=0)
    if any(left.values()):
        figure.legend(loc="outside upper left", ncols=7, handlelength=1.6, columnspacing=1.4)
    return figure


@styled
def latency(frame: "DataFrame") -> "Figure":
    """How long each operation takes: the median, and from the 5th to the 95th percentile, in milliseconds.

    Args:
        frame: as `frames.latency`: system, control, operation, seconds. Controls do nothing, and are left out where
            there are others.
    """
    frame = _tested(frame)
    systems, operations = _systems(frame), list(dict.fromkeys(frame["operation"]))
    figure, axes = panels(len(operations), (_WIDE + 1, 1.15 + _ROW * len(systems)), sharex=True, sharey=True)
    for axis, operation in zip(axes, operations, strict=True):
        for y, system in enumerate(systems):
            spent = 1000 * _only(frame, operation=operation, system=system)["seconds"]
            if len(spent):
                low, middle, high = (max(float(spent.quantile(q)), _LEAST) for q in (0.05, 0.5, 0.95))
                axis.plot([low, high], [y, y], color=_colour(y), linewidth=2, solid_capstyle="round", alpha=0.55)
                axis.plot(middle, y, marker=_marker(y), color=_colour(y), markersize=5.5)
        axis.set(title=operation, xscale="log")
        axis.grid(axis="x", color=MUTED, alpha=0.25, linewidth=0.6)
    axes[0].set_xlim(*_decades(1000 * frame["seconds"].clip(lower=_LEAST / 1000)))
    axes[0].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes[0].xaxis.set_minor_formatter(lambda *_: "")
    axes[0].set_yticks(range(len(systems)), systems)
    axes[0].set_ylim(len(systems) - 0.5, -0.5)
    figure.supxlabel("milliseconds", fontsize=9)
    return figure


@styled
def tradeoff(frame: "DataFrame") -> "Figure":
    """Forgetting (1 - attributed coverage) against ripple survival, with 95% intervals: the upper right is the goal.

    Args:
        frame: as `frames.rates` of MemBehave: system, control, metric, place, value, low, high.
    """
    gone, kept = (
        _by(_only(frame, metric=metric, place="all"), "system") for metric in ("attributed_coverage", "ripple_survival")
    )
    systems = [s for s in _systems(frame) if not _unknown(gone[s]) and not _unknown(kept[s])]
    figure, (axis,) = panels(1, (4.6, 4.6))
    axis.set(xlim=(-9, 109), ylim=(-9, 109), xlabel="forgotten, %", ylabel="survived of the rest, %")
    axis.set(xticks=range(0, 101, 25), yticks=range(0, 101, 25), aspect="equal")
    axis.grid(color=MUTED, alpha=0.2, linewidth=0.6)
    corners: dict[tuple[int, int], list[str]] = {}
    for i, system in enumerate(systems):
        x, y = _percent(gone[system], invert=True), _percent(kept[system])
        _cross(axis, x, y, i, bool(gone[system]["control"]))
        corners.setdefault((round(x[0]), round(y[0])), []).append(system)
    for (across, up), names in _apart(corners).items():
        end = across > 50
        axis.annotate(", ".join(names), (across, up), xytext=(-8 if end else 8, -12 if up > 50 else 7),
                      textcoords="offset points", ha="right" if end else "left")  # fmt: skip
    return figure


@styled
def levels(frame: "DataFrame", means: "DataFrame") -> "Figure":
    """The three levels of entanglement: a thin line for each triplet, and the means with 95% intervals.

    Args:
        frame: as `frames.items`: system, control, triplet, level, metric, value.
        means: as `frames.rates` of the same group.
    """
    shown = {"attributed_coverage": "still attributed", "ripple_survival": "survived"}
    frame, systems = _tested(frame), _systems(_tested(frame))
    figure, axes = panels(len(systems), (max(1.3 + 1.5 * len(systems), 3.4), 4.0), sharey=True, rows=len(shown))
    for i, (metric, name) in enumerate(shown.items()):
        for j, system in enumerate(systems):
            axis = axes[i * len(systems) + j]
            table = _only(frame, metric=metric, system=system).pivot(index="triplet", columns="level", values="value")
            _paired(axis, 100 * table.reindex(columns=list(LEVELS)), _only(means, metric=metric, system=system))
            axis.set_title(system if i == 0 else "")
        axes[i * len(systems)].set_ylabel(f"{name}, %")
    return figure


def png(figure: "Figure", dpi: int = 150) -> bytes:
    """A figure as a PNG, which on one machine is the same bytes every time."""
    import io

    import matplotlib

    sink = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(sink, format="png", dpi=dpi, metadata={"Software": None})
    return sink.getvalue()


def panels(columns: int, size: tuple[float, float], rows: int = 1, **shared: Any) -> "tuple[Figure, list[Axes]]":
    """A figure of a size in inches and its axes, row by row; further arguments are those of `Figure.subplots`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **shared)
    return figure, list(axes.flat)


def _systems(frame: "DataFrame") -> list[str]:
    return list(dict.fromkeys(frame["system"]))


def _only(frame: "DataFrame", **wanted: str) -> "DataFrame":
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return frame


def _by(frame: "DataFrame", column: str) -> dict[str, dict[Any, Any]]:
    """The rows by what stands in a column."""
    return {row[column]: row for row in frame.to_dict("records")}


def _tested(frame: "DataFrame") -> "DataFrame":
    """The systems that are no controls, if there are any."""
    tested = frame[~frame["control"].astype(bool)]
    return tested if len(tested) else frame


def _cells(table: "DataFrame") -> Iterator[tuple[tuple[int, int], float]]:
    for y, row in enumerate(table.to_numpy()):
        yield from (((y, x), value) for x, value in enumerate(row) if value == value)


def _decades(found: "Series[float]") -> tuple[float, float]:
    """The powers of ten around all values, at least one decade apart, and room for a marker."""
    low, high = math.floor(math.log10(found.min())), math.ceil(math.log10(found.max()))
    return 10.0**low / 1.6, 10.0 ** max(high, low + 1) * 1.6


def _ends_of_families(rows: Sequence[str]) -> list[int]:
    families = [row.partition("__")[0] for row in rows]
    return [y for y in range(1, len(rows)) if families[y] != families[y - 1]]


def _percent(found: Mapping[str, Any], invert: bool = False) -> tuple[float, float, float]:
    """Value, low and high in percent; of the complement if wanted."""
    value, low, high = (100 * float(found[name]) for name in ("value", "low", "high"))
    return (100 - value, 100 - high, 100 - low) if invert else (value, low, high)


def _unknown(found: Mapping[str, Any]) -> bool:
    return found["value"] is None or found["value"] != found["value"]


def _colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


def _marker(index: int) -> str:
    return _MARKERS[index % len(_MARKERS)]


def _spread(axis: "Axes", found: Mapping[str, Any], y: float, filled: bool) -> None:
    if _unknown(found):
        return
    value, low, high = _percent(found)
    colour = MUTED if found["control"] else ACCENT
    axis.plot([low, high], [y, y], color=colour, linewidth=1.4, alpha=0.8, solid_capstyle="butt")
    axis.plot(value, y, "o", color=colour, markersize=4.5, markerfacecolor=colour if filled else PAPER)


def _ranked(row: Mapping[Any, Any]) -> str:
    """The label of a run on a board, with its rank in front."""
    if row["control"] or row["best"] != row["best"] or row["best"] is None:
        return str(row["system"])
    best, worst = int(row["best"]), int(row["worst"])
    return f"{row['system']}   {best if best == worst else f'{best}–{worst}'}"


def _legend_of_rates(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    drawn: Any = {"color": ACCENT, "marker": "o", "markersize": 4.5, "linewidth": 1.4}
    handles = [Line2D([], [], **drawn, label="strict"), Line2D([], [], **drawn, markerfacecolor=PAPER, label="spec")]
    figure.legend(handles=handles, loc="outside upper left", ncols=2)
    figure.supxlabel("passed, % (line: 95% interval)", fontsize=9)


def _cross(axis: "Axes", x: Sequence[float], y: Sequence[float], index: int, control: bool) -> None:
    """A system with its intervals, or a control, which marks a place and needs none."""
    if control:
        axis.plot(x[0], y[0], "o", color=MUTED, markersize=10, markerfacecolor="none", zorder=3)
        return
    line: Any = {"color": _colour(index), "linewidth": 1.4, "alpha": 0.7}
    axis.plot(x[1:], [y[0]] * 2, **line)
    axis.plot([x[0]] * 2, y[1:], **line)
    axis.plot(x[0], y[0], _marker(index), color=_colour(index), markersize=7, zorder=4)


def _apart(corners: Mapping[tuple[int, int], list[str]]) -> dict[tuple[int, int], list[str]]:
    """Labels of points that lie within a few points of each other become one, so that none hides another."""
    joined: dict[tuple[int, int], list[str]] = {}
    for (x, y), names in sorted(corners.items()):
        near = next((at for at in joined if abs(at[0] - x) < 20 and abs(at[1] - y) < 6), None)
        joined.setdefault(near or (x, y), []).extend(names)
    return joined


def _paired(axis: "Axes", table: "DataFrame", means: "DataFrame") -> None:
    for values in table.to_numpy():
        axis.plot(range(len(LEVELS)), values, color=MUTED, alpha=0.35, linewidth=0.7)
    found = _by(means, "place")
    known = [(x, _percent(found[level])) for x, level in enumerate(LEVELS) if not _unknown(found[level])]
    for x, (_, low, high) in known:
        axis.plot([x, x], [low, high], color=ACCENT, linewidth=1.8)
    axis.plot([x for x, _ in known], [y for _, (y, *_) in known], "o-", color=ACCENT, markersize=5, linewidth=1.8)
    axis.set(ylim=(-5, 105), yticks=[0, 50, 100], xlim=(-0.3, len(LEVELS) - 0.7))
    axis.set_xticks(range(len(LEVELS)), LEVELS)
    axis.grid(axis="y", color=MUTED, alpha=0.2, linewidth=0.6)
