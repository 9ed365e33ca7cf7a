"""The graph of a MemBehave item as a matplotlib figure, for notebooks.

from forget_eval import graphs

graphs.draw(items)
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forget_datasets.rows import Item
from forget_eval.plots import ACCENT, INK, MUTED, PAPER, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OTHERS = "#D55E00"
"""The people beside the target."""


@styled
def draw(items: Sequence[Item], names: bool = True) -> "Figure":
    """What the target of an item touches, and who else: the more lines go on to the right, the more entangled it is.

    Args:
        items: of MemBehave, one panel each.
        names: whether entities and people have theirs; without, more items fit side by side.
    """
    most = max(len(item.neighbors) for item in items)
    width = 4.6 * len(items) + 2 if names else 2.2 * len(items)
    figure, axes = panels(len(items), (width, 0.6 + (0.26 if names else 0.17) * most), sharey=True)
    for axis, item in zip(axes, items, strict=True):
        _drawn(axis, item, names)
        axis.set(xlim=(-0.75, 2.4) if names else (-0.15, 1.25), ylim=(most - 0.5, -0.5))
        axis.set_axis_off()
        axis.set_title(f"{item.level}: {item.shared} of {item.degree} shared")
    return figure


def _drawn(axis: "Axes", item: Item, names: bool) -> None:
    """Draws the target on the left, its entities in the middle shared ones first, other people on the right."""
    entities = sorted(item.neighbors, key=lambda each: (-len(each.shared_with), each.entity))
    rows: dict[str, list[int]] = {}
    for y, each in enumerate(entities):
        for person in each.shared_with:
            rows.setdefault(person, []).append(y)
    people = sorted(rows, key=lambda person: (sum(rows[person]) / len(rows[person]), person))
    heights: dict[str, float] = {}
    for person in people:  # beside what they touch, and below whoever stands there
        heights[person] = max(sum(rows[person]) / len(rows[person]), max(heights.values(), default=-1.0) + 1)
    middle, across = (len(entities) - 1) / 2, 1.75 if names else 1.1
    for y, each in enumerate(entities):
        colour = ACCENT if each.shared_with else MUTED
        axis.plot([0, 0.5], [middle, y], color=colour, linewidth=0.9, alpha=0.7, zorder=1)
        axis.plot(0.5, y, "o", color=colour, markersize=4.5, markerfacecolor=colour if each.shared_with else PAPER)
        for person in each.shared_with:
            axis.plot([0.5, across], [y, heights[person]], color=ACCENT, linewidth=0.9, alpha=0.7, zorder=1)
        if names:
            text = axis.text(0.55, y, each.entity, fontsize=8, va="center", zorder=2)
            text.set_bbox({"facecolor": PAPER, "edgecolor": "none", "pad": 1})
    axis.plot(0, middle, "s", color=INK, markersize=8)
    axis.plot([across] * len(people), [heights[person] for person in people], "D", color=OTHERS, markersize=5)
    if names:
        axis.text(-0.06, middle, item.target, ha="right", va="center", fontweight="bold")
        for person in people:
            axis.text(across + 0.06, heights[person], person, va="center", fontsize=8)
