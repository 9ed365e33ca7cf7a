"""A plot as a part of the page: its text is text, its ground transparent, its ink that of the page."""

import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from forget_eval import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NS = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_CLASSES = {plots.INK: "ink", plots.MUTED: "muted", plots.PAPER: "paper", plots.ACCENT: "accent"}
"""Colours that the page replaces by its own, in light and in dark."""
_FONT = re.compile(r"(?:(?P<weight>bold|\d{3}) )?(?P<size>[\d.]+)px .*")
_LINK = re.compile(r"url\(#(.+?)\)")


def inline(figure: "Figure", name: str, label: str) -> str:
    """A figure as an `svg` element that needs no style attributes, which a strict policy refuses.

    Args:
        figure: to be drawn; the same figure gives the same text.
        name: unique on the page; ids inside begin with it.
        label: what a screen reader says.
    """
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context(plots.STYLE):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    ET.register_namespace("", _NS)
    root = ET.fromstring(file.getvalue())
    for parent, child in list(_pairs(root)):
        if child.tag in (f"{{{_NS}}}metadata", f"{{{_NS}}}style"):
            parent.remove(child)
    for element in root.iter():
        _plain(element, name)
    width = float(root.attrib.pop("width").removesuffix("pt"))
    root.attrib.pop("height")
    root.attrib |= {"role": "img", "aria-label": label, "class": "plot", "width": f"{width * 4 / 3:.0f}"}
    text = ET.tostring(root, encoding="unicode")
    return re.sub(r">\s+<", "><", text)


def _pairs(root: ET.Element) -> Iterator[tuple[ET.Element, ET.Element]]:
    for parent in root.iter():
        for child in parent:
            yield parent, child


def _plain(element: ET.Element, name: str) -> None:
    """Turns a style attribute into attributes, colours of ours into classes, and ids into ids of this figure."""
    rules = [rule.partition(":") for rule in element.attrib.pop("style", "").split(";") if rule]
    style = {key.strip(): value.strip() for key, _, value in rules}
    if font := _FONT.fullmatch(style.pop("font", "")):
        element.set("font-size", font["size"])
        if font["weight"]:
            element.set("font-weight", font["weight"])
    classes = []
    for key, value in style.items():
        if key in ("fill", "stroke") and (owner := _CLASSES.get(value.lower())):
            classes.append(f"{key}-{owner}")
        else:
            element.set(key, _LINK.sub(rf"url(#{name}-\1)", value))
    if element.tag == f"{{{_NS}}}text" and "fill" not in style:
        classes.append("fill-ink")
    if classes:
        element.set("class", " ".join(classes))
    if "id" in element.attrib:
        element.set("id", f"{name}-{element.get('id')}")
    if link := element.attrib.pop(_XLINK, None):
        element.set("href", f"#{name}-{link.removeprefix('#')}")
    if clip := element.get("clip-path"):
        element.set("clip-path", re.sub(rf"url\(#(?!{name}-)(.+?)\)", rf"url(#{name}-\1)", clip))
