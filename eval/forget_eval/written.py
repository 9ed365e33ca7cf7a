"""Whether a written report says what its runs say: its Markdown and its page against those made anew.

The Markdown is compared cell by cell and line by line, by the names of the rows and columns of its tables, so that the
order of the runs does not matter. The page is made anew in the order of its twin, and must be the same to the byte;
where it is not, the texts that differ are named.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from forget_datasets.errors import UserError
from forget_datasets.shapes import unreadable
from forget_eval.verify import NOTHING, Finding

_TWIN, _PAGE = "report.md", "index.html"
_TASKS = ("forgeteval", "membehave")


def differences(report: Path, folders: Sequence[Path], data: Sequence[str] = ()) -> Iterator[Finding]:
    """What a report states and its runs do not, or the other way round.

    Args:
        report: a Markdown file, or a folder with one as `report --out` writes it.
        folders: of the runs, scored; all of those that the report is of.
        data: the datasets of the runs, whose cases a page shows.

    Raises:
        UserError: there is no such report.
    """
    path = report / _TWIN if report.is_dir() else report
    text = _read(path)
    ordered = _in_order(text, folders)
    yield from _in_twin(path, text, ordered)
    if report.is_dir():
        yield from _in_page(report / _PAGE, ordered, data)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(path, error, "Name the report's folder or its Markdown file.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a Markdown file ({error}). Name the report's folder or its report.md.") from error


def _in_twin(path: Path, text: str, folders: Sequence[Path]) -> Iterator[Finding]:
    stated_cells, stated_lines = _parsed(text)
    cells, lines = _parsed(_made_anew(text, folders))
    for key in dict.fromkeys((*cells, *stated_cells)):
        stated, found = stated_cells.get(key, NOTHING), cells.get(key, NOTHING)
        if stated != found:
            yield Finding(str(path), key, stated, found)
    yield from _unlike(path, stated_lines, lines)


def _in_page(path: Path, folders: Sequence[Path], data: Sequence[str]) -> Iterator[Finding]:
    from forget_eval.report import html

    with TemporaryDirectory(prefix="forget-eval-") as aside:
        page, *_ = html.write(folders, Path(aside), data)
        anew = page.read_bytes()
    try:
        stated = path.read_bytes()
    except FileNotFoundError:
        yield Finding(str(path), "", NOTHING, "a page: forget-eval report --out writes it")
        return
    except OSError as error:
        raise unreadable(path, error) from error
    if stated == anew:
        return
    found = list(_unlike(path, _texts(stated), _texts(anew)))
    yield from found or [Finding(str(path), "", "drawings or cases", "others: write the report anew")]


def _texts(page: bytes) -> Counter[str]:
    """The texts that a page shows."""
    parser = _Texts()
    parser.feed(page.decode("utf-8", "replace"))
    parser.close()
    return parser.found


class _Texts(HTMLParser):
    """Counts the texts of a page, without those of scripts, styles and drawings."""

    _SILENT = ("script", "style", "svg")

    def __init__(self) -> None:
        super().__init__()
        self.found = Counter[str]()
        self._inside = 0

    def handle_starttag(self, tag: str, _: Sequence[tuple[str, str | None]]) -> None:
        self._inside += tag in self._SILENT

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag in self._SILENT

    def handle_data(self, data: str) -> None:
        if not self._inside and data.strip():
            self.found[data.strip()] += 1


def _unlike(path: Path, stated_lines: Counter[str], lines: Counter[str]) -> Iterator[Finding]:
    unlike, missing = list((stated_lines - lines).elements()), list((lines - stated_lines).elements())
    for line in unlike:
        close = get_close_matches(line, missing, n=1, cutoff=0.0)
        missing = [other for other in missing if other not in close]
        yield Finding(str(path), "text", f"“{line}”", f"“{close[0]}”" if close else NOTHING)
    yield from (Finding(str(path), "text", NOTHING, f"“{line}”") for line in missing)


def _in_order(text: str, folders: Sequence[Path]) -> list[Path]:
    """The folders of runs as the report has them: its sentences name them in that order."""
    from forget_eval.report import groups

    given = [result for group in groups.load(folders) for result in group.results]
    plain = text.replace("\\", "").replace("&lt;", "<")
    rows = {result.folder: plain.find(f"\n| {result.label} |") for result in given}
    return sorted(rows, key=lambda folder: rows[folder])


def _made_anew(text: str, folders: Sequence[Path]) -> str:
    """The report of scored runs in the form that `text` has: the twin of a page, or the tables alone."""
    from forget_eval.report import contents, groups, markdown, membehave, membehave_text, results

    found = groups.load(folders)
    if text.startswith("# "):
        return markdown.twin([(contents.title(group), contents.sections(group)) for group in found], {})
    of_task = {task: [r.folder for g in found if g.task == task for r in g.results] for task in _TASKS}
    parts = []
    if of_task["forgeteval"]:
        parts.append(markdown.render(results.load(of_task["forgeteval"])))
    if of_task["membehave"]:
        parts.append(membehave_text.render_markdown(membehave.load(of_task["membehave"])))
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
    """A table's cells. A row without a name goes on with the one above; rows of one name are told apart by numbers."""
    columns, _, *rows = table
    yield f"{place}, first column", columns[0]
    name, numbers = "", Counter[str]()
    for row in rows:
        name = row[0] or name
        numbers[name] += 1
        for number, (column, cell) in enumerate(zip_longest(columns[1:], row[1:]), 2):
            yield f"{place}, {name} {numbers[name]}, {column or f'column {number}'}", NOTHING if cell is None else cell
