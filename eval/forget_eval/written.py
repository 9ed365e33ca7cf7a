"""Whether a written report says what its runs say: its Markdown, cell by cell and line by line, against one made anew.

Tables are compared by the names of their rows and columns, so that the order of the runs does not matter.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from forget_datasets.errors import UserError
from forget_datasets.shapes import unreadable
from forget_eval.verify import NOTHING, Finding

_TWIN = "report.md"
_TASKS = ("forgeteval", "membehave")


def differences(report: Path, folders: Sequence[Path]) -> Iterator[Finding]:
    """What a report states and its runs do not, or the other way round.

    Args:
        report: a Markdown file, or a folder with one as `report --out` writes it.
        folders: of the runs, scored; all of those that the report is of.

    Raises:
        UserError: there is no such report.
    """
    path = report / _TWIN if report.is_dir() else report
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(path, error, "Name the report's folder or its Markdown file.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a Markdown file ({error}). Name the report's folder or its report.md.") from error
    stated_cells, stated_lines = _parsed(text)
    cells, lines = _parsed(_made_anew(text, folders))
    for key in dict.fromkeys((*cells, *stated_cells)):
        stated, found = stated_cells.get(key, NOTHING), cells.get(key, NOTHING)
        if stated != found:
            yield Finding(str(path), key, stated, found)
    unlike, missing = list((stated_lines - lines).elements()), list((lines - stated_lines).elements())
    for line in unlike:
        close = get_close_matches(line, missing, n=1, cutoff=0.0)
        missing = [other for other in missing if other not in close]
        yield Finding(str(path), "text", f"“{line}”", f"“{close[0]}”" if close else NOTHING)
    yield from (Finding(str(path), "text", NOTHING, f"“{line}”") for line in missing)


def _made_anew(text: str, folders: Sequence[Path]) -> str:
    """The report of scored runs in the form that `text` has: the twin of a page, or the tables alone."""
    from forget_eval.report import contents, groups, markdown, membehave, results

    given = [result for group in groups.load(folders) for result in group.results]
    plain = text.replace("\\", "").replace("&lt;", "<")
    rows = {result.folder: plain.find(f"\n| {result.label} |") for result in given}
    found = groups.load(sorted(rows, key=lambda folder: rows[folder]))  # sentences name the runs in their order there
    if text.startswith("# "):
        return markdown.twin([(contents.title(group), contents.sections(group)) for group in found], {})
    of_task = {task: [r.folder for g in found if g.task == task for r in g.results] for task in _TASKS}
    parts = []
    if of_task["forgeteval"]:
        parts.append(markdown.render(results.load(of_task["forgeteval"])))
    if of_task["membehave"]:
        parts.append(membehave.render_markdown(membehave.load(of_task["membehave"])))
    return "\n".join(parts)


def _parsed(text: str) -> tuple[dict[str, str], Counter[str]]:
    """The cells of all tables by section, row and column, and the other lines; pictures are left out."""
    cells: dict[str, str] = {}
    lines, tables = Counter[str](), Counter[str]()
    section, heading, table = "", "", list[list[str]]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip().strip("|").split(" | ")])
            continue
        if table:
            place = f"{section}{heading}"
            tables[place] += 1
            cells.update(_cells(f"{place}, table {tables[place]}", table))
            table = []
        if line.startswith("## "):
            section, heading = f"{line[3:]}, ", ""
        elif line.startswith("###"):
            heading = line[4:]
        elif line.startswith("**"):
            heading = line[2:].partition("**")[0]
        if line.strip() and not line.startswith("!["):
            lines[line.strip()] += 1
    return cells, lines


def _cells(place: str, table: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """A table's cells. A row without a name goes on with the one above, and is told apart by its number there."""
    columns, _, *rows = table
    name, number = "", 0
    for row in rows:
        name, number = (row[0], 1) if row[0] else (name, number + 1)
        for column, cell in zip(columns[1:], row[1:], strict=False):
            yield f"{place}, {name} {number}, {column}", cell
