"""The command `residue`: does a store still hold, in its files, what was purged from it?"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forget_datasets import console
from forget_datasets.errors import UserError
from forget_eval.env_commands import isolation_options

if TYPE_CHECKING:
    from forget_eval.embedding import Embedder
    from forget_eval.isolation.selection import Isolation
    from forget_eval.residue import Residue

_COLUMNS = ("adapter", "store", "after a purge", "after maintenance")


@click.command(short_help="Look for purged texts in the files of stores.")
@click.option(
    "--adapter",
    "names",
    multiple=True,
    required=True,
    metavar="NAME",
    help="A system: a name that `adapters` lists, or module:Class. May be given several times.",
)
@click.option("--embedder", metavar="NAME", help="Embedder for systems that take one. [default: that of English]")
@click.option(
    "--run",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="A run of the system: the answer is kept there, and shown by `report`.",
)
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@isolation_options
def residue(
    names: tuple[str, ...],
    embedder: str | None,
    run: Path | None,
    markdown: bool,
    as_json: bool,
    isolation: "Isolation",
) -> None:
    """Have systems purge three facts, and look whether their text still lies in the files of the store.

    The answer is yes, no or unknown: before and after the maintenance that a system's package offers. It is unknown for
    a store in memory, and for one whose files are compressed. No rate depends on it. Of several systems one that fails
    is left out, and the command then exits with 1.
    """
    if markdown and as_json:
        raise UserError("choose one of --markdown and --json.")
    names = tuple(dict.fromkeys(names))
    if run is not None and len(names) > 1:
        raise UserError("--run goes with one --adapter.")
    from forget_eval import residue_notes, runs
    from forget_eval.bench import embedder_for

    if run is not None:
        runs.read(run)
    found = _measured(names, embedder_for(names, embedder, "en", isolation), isolation)
    if run is not None:
        residue_notes.write(found[0], run)
    if as_json:
        console.print_json([residue_notes.row(each) for each in found])
    elif markdown:
        click.echo(_markdown(found), nl=False)
    else:
        _print(found)
    if len(found) < len(names):
        raise SystemExit(1)


def _measured(names: tuple[str, ...], embed: "Embedder | None", isolation: "Isolation") -> "list[Residue]":
    """What was found of each; of several, one that fails is left out with a warning."""
    from forget_eval.residue import measure

    found = []
    for name in names:
        try:
            found.append(measure(name, embed, isolation))
        except UserError as error:
            if len(names) == 1:
                raise
            warnings.warn(f"{error}\n    '{name}' is left out.", RuntimeWarning, stacklevel=2)
    return found


def _rows(found: "Sequence[Residue]") -> list[tuple[str, ...]]:
    from forget_eval.residue import Store
    from forget_eval.residue_notes import row as as_row
    from forget_eval.residue_notes import shown

    rows: list[tuple[str, ...]] = []
    for each in found:
        row = as_row(each)
        name = f"{row['adapter']['name']} {row['adapter']['version'] or ''}".strip()
        lacking = "none offered" if each.store in (Store.DISK, Store.DISK_HERE) else "-"
        after = f"{shown(row['after'])}: {row['maintenance']}" if row["after"] else lacking
        rows.append((name, row["store"], shown(row["before"]), after))
    return rows


def _markdown(found: "Sequence[Residue]") -> str:
    from forget_eval.report.cells import escaped

    lines: list[Sequence[str]] = [_COLUMNS, ["---"] * len(_COLUMNS)]
    lines += [[escaped(entry) for entry in row] for row in _rows(found)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _print(found: "Sequence[Residue]") -> None:
    from forget_eval.report import console as terminal

    table = terminal.table(gap=1)
    for heading in _COLUMNS:
        table.add_column(heading, overflow="fold")
    for row in _rows(found):
        table.add_row(*row)
    terminal.console().print(table)
