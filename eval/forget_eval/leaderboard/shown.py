"""Boards as text: for a terminal of 100 columns, as Markdown, as plain data and as CSV."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from forget_datasets.rows import FAMILIES
from forget_eval.leaderboard.ranking import Board, Entry
from forget_eval.report import cells, console, labels
from forget_eval.report.results import printable

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "forgeteval": [("strict", "strict", "overall"), *((family, "strict", family) for family in FAMILIES)],
    "membehave": [
        ("selective forgetting", "selective_forgetting", "all"),
        ("attributed coverage", "attributed_coverage", "all"),
        ("ripple survival", "ripple_survival", "all"),
        ("recall target", "baseline_recall_target", "all"),
        ("recall ripple", "baseline_recall_ripple", "all"),
    ],
}
"""What a board of a task shows: heading, metric and place, the first of which it is ranked by."""
RANKED_BY = {"forgeteval": "strict rate", "membehave": "selective forgetting"}
"""What a board of a task is ranked by, in words."""
READING = (
    "Percent [95% interval]. A rank is a range where intervals overlap: on one's own runs `forget-eval compare` tells "
    "more, for it pairs the cases. Controls are told the answers and have no rank."
)
_RANK, _FIRST, _NEXT = 5, 13, 12  # of "10–12", "99.6 [98–100]" and "100 [93–100]"
_SHOWN = ("run_id", "run", "task", "system", "package", "version", "embedder", "dataset_repo", "dataset_revision")
_ALSO = ("dataset_config", "dataset_hash", "seed", "k", "k_target", "policy", "answerer", "model", "started")
_FIGURES = ("metric", "value", "low", "high", "n", "not_applicable", "errors")


def title(board: Board) -> str:
    """The dataset in one line."""
    n = board.entries[0].row["dataset_rows"]
    return printable(cells.heading(board.task, board.config, n, f"content hash {board.content_hash[:12]}"))


def print_boards(boards: Sequence[Board]) -> None:
    """Prints boards for a terminal, at most 100 columns wide."""
    out = console.console()
    for board in boards:
        out.print(Text(title(board), style="bold"))
        out.print(Text(READING))
        out.print(Text(""))
        out.print(_table(board))
        out.print(Text(""))
        for note in notes(board):
            out.print(Text(note))
        out.print(Text(""))


def markdown(boards: Sequence[Board]) -> str:
    """Boards as Markdown."""
    return "\n".join(f"**{cells.escaped(title(board))}.** {READING}\n\n{markdown_table(board)}" for board in boards)


def markdown_table(board: Board) -> str:
    """A board as a Markdown table, with what was run behind the figures."""
    headings = ["rank", "system", *(name for name, *_ in COLUMNS[board.task]), "version", "embedder", "k", "policy"]
    lines = [cells.markdown_row(headings), cells.markdown_row(["---:", *["---"] * (len(headings) - 1)])]
    for entry in board.entries:
        row = entry.row
        about = [_version(row), row["embedder"], _k(row), row["policy"]]
        found = [entry.rank, entry.label, *_figures(entry, board.task), *(str(each or "–") for each in about)]
        lines.append(cells.markdown_row([cells.escaped(printable(text)) or " " for text in found]))
    return "\n".join([*lines, ""])


def plain(boards: Sequence[Board]) -> list[dict[str, Any]]:
    """Boards as plain data, with every rate of every run."""
    return [
        {
            "task": board.task,
            "config": board.config,
            "content_hash": board.content_hash,
            "metric": board.metric,
            "entries": [
                {"label": entry.label, "rank": list(entry.ranks) if entry.ranks else None, "control": entry.control}
                | {name: entry.row[name] for name in (*_SHOWN, *_ALSO, *_FIGURES, "rates")}
                for entry in board.entries
            ],
        }
        for board in boards
    ]


def frame(boards: Sequence[Board]) -> "DataFrame":
    """Boards as a tidy frame, a row a run: label, control, best and worst rank, what was run, and the headline."""
    from pandas import DataFrame

    rows = [
        {
            "system": entry.label,
            "control": entry.control,
            "best": entry.ranks[0] if entry.ranks else None,
            "worst": entry.ranks[1] if entry.ranks else None,
            **{"adapter" if name == "system" else name: entry.row[name] for name in (*_SHOWN, *_ALSO, *_FIGURES)},
        }
        for board in boards
        for entry in board.entries
    ]
    return DataFrame(rows).astype(dict.fromkeys(("best", "worst", "seed", "k", "k_target"), "Int64"))


def csv(boards: Sequence[Board]) -> str:
    """Boards as CSV, a row a run."""
    return str(frame(boards).to_csv(index=False, lineterminator="\n"))


def notes(board: Board) -> Iterator[str]:
    """What was run, a line for each system that is no control, and what the figures leave open."""
    for entry in board.entries:
        if entry.control:
            continue
        row = entry.row
        about = [_version(row), *_setting(row), f"run {row['run_id'][:12]}"]
        yield printable(f"{entry.label}: {'; '.join(filter(None, about))}.")
        if row["not_applicable"] or row["errors"]:
            yield printable(f"{entry.label}: {row['not_applicable']} not applicable, {row['errors']} broke.")
    if not all(labels.is_usual(entry.row["policy"]) for entry in board.entries):
        yield labels.POLICY_NOTE


def _table(board: Board) -> Table:
    table = console.table()
    columns = COLUMNS[board.task]
    rest = console.WIDTH - _RANK - _FIRST - _NEXT * (len(columns) - 1) - len(columns) - 1  # a blank between all of them
    table.add_column("rank", width=_RANK, no_wrap=True)
    console.add_names(table, "system", min(rest, 24))
    for i, (name, *_) in enumerate(columns):
        table.add_column(name, width=_NEXT if i else _FIRST)
    for i, entry in enumerate(board.entries):
        following = board.entries[i + 1].control if i + 1 < len(board.entries) else False
        cells_of = [entry.rank, entry.label, *_figures(entry, board.task)]
        table.add_row(*cells_of, end_section=following and not entry.control)
    return table


def _figures(entry: Entry, task: str) -> list[str]:
    return [
        _figure(entry.rates.get((metric, place)), int(i == 0)) for i, (_, metric, place) in enumerate(COLUMNS[task])
    ]


def _figure(rate: Mapping[str, Any] | None, places: int) -> str:
    if rate is None or any(rate[name] is None for name in ("value", "low", "high")):
        return cells.NOTHING
    return cells.share(rate, places).padded()


def _version(row: Mapping[str, Any]) -> str:
    return " ".join(str(row[name]) for name in ("package", "version") if row[name])


def _k(row: Mapping[str, Any]) -> str:
    return f"{row['k']}" if row["k_target"] is None else f"{row['k']}, target {row['k_target']}"


def _setting(row: Mapping[str, Any]) -> Iterator[str]:
    if row["policy"]:
        yield f"forget policy {row['policy']}"
    if row["answerer"]:
        yield f"answerer {row['answerer']}" + (f", model {row['model']}" if row["model"] else "")
    yield f"k = {_k(row)}"
    if row["embedder"]:
        yield f"embedder {row['embedder']}"
    if row["dataset_repo"]:
        yield f"data {row['dataset_repo']} at {str(row['dataset_revision'])[:12]}"
