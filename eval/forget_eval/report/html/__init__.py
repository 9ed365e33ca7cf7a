"""A whole report as files: a page that needs no network, its Markdown twin, and the plots as pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forget_eval.report.contents import Section

PAGE = "index.html"
TWIN = "report.md"
PLOTS = "plots"
_DPI = 200


def write(folders: Sequence[Path], out: Path, data: Sequence[str] = (), png: bool = False) -> list[Path]:
    """Writes the report of scored runs into a folder, over a report that is there.

    Args:
        folders: of the runs.
        out: folder of the report, made if need be.
        data: datasets, folders or repositories, where they are no longer where the runs had them. A dataset that cannot
            be found leaves its failure explorer empty, which the page says.
        png: whether the plots are written as pictures too, which the Markdown then shows.

    Returns:
        The files, the page first.

    Raises:
        UserError: a folder is no scored run, a dataset was named in vain, or matplotlib is missing.
        EnvironmentFault: the disk refuses.
    """
    from forget_eval import runs
    from forget_eval.packages import require
    from forget_eval.report import contents, groups, markdown
    from forget_eval.report.html import explorer, page
    from forget_eval.report.html.source import Sources

    require("matplotlib", "report", "a report with --out")
    found, sources = groups.load(folders), Sources(data)
    datasets = [sources.of(group) for group in found]
    sources.require_all_used()
    runs.make_folder(out, "a report")
    titled = [(contents.title(group), contents.sections(group)) for group in found]
    pictures = _pictures(out, titled) if png else {}
    parts = [
        page.Part(title, sections, explorer.data(group, dataset) if dataset else "", missing)
        for group, (title, sections), (dataset, missing) in zip(found, titled, datasets, strict=True)
    ]
    written = {out / PAGE: page.render(parts), out / TWIN: markdown.twin(titled, pictures)}
    for path, text in written.items():
        runs.write_whole(path, text.encode("utf-8", "backslashreplace"))
    return [*written, *(out / path for path in pictures.values())]


def _pictures(out: Path, titled: "Sequence[tuple[str, Sequence[Section]]]") -> dict[tuple[int, str], str]:
    """Writes every plot; the paths, relative to the report, by the number of its group and its name."""
    from forget_eval import plots, runs

    runs.make_folder(out / PLOTS, "a report")
    paths = {}
    for number, (_, sections) in enumerate(titled):
        for plot in (plot for section in sections for plot in section.plots):
            name = f"{PLOTS}/{number + 1}-{plot.name}.png"
            runs.write_whole(out / name, plots.png(plot.figure, _DPI))
            paths[number, plot.name] = name
    return paths
