"""The page: one file that holds all it shows, and a policy that lets it ask nobody for anything."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from forget_eval import __version__
from forget_eval.report.contents import Section
from forget_eval.report.html.svg import inline

_SCRIPTS = ("texts.js", "details.js", "explorer.js")


@dataclass(frozen=True)
class Part:
    """What the page says of one dataset.

    Attributes:
        data: of the failure explorer, as `explorer.data` makes it; empty if there is none, and `missing` says why.
    """

    title: str
    sections: Sequence[Section]
    data: str
    missing: str = ""


def render(parts: Sequence[Part]) -> str:
    """The page as HTML. The same parts give the same text."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    css, script = _read("page.css"), "\n".join(map(_read, _SCRIPTS))
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_read("page.html.j2"))
    groups = [_group(number, part) for number, part in enumerate(parts)]
    return template.render(
        groups=groups, css=Markup(css), script=Markup(script), policy=_policy(css, script), version=__version__
    )


def _policy(css: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(css)}'; base-uri 'none';"
        " form-action 'none'"
    )


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


def _group(number: int, part: Part) -> dict[str, Any]:
    from markupsafe import Markup

    name = f"dataset{number + 1}"
    return {
        "name": name,
        "title": part.title,
        "sections": [_section(name, section) for section in part.sections],
        "data": Markup(part.data),
        "missing": part.missing,
    }


def _section(group: str, section: Section) -> dict[str, Any]:
    from markupsafe import Markup

    drawn = [
        {"caption": plot.caption, "svg": Markup(inline(plot.figure, f"{group}-{plot.name}", plot.caption))}
        for plot in section.plots
    ]
    return {**vars(section), "plots": drawn}


def _read(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
