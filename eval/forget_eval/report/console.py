"""Where tables are printed: 100 columns, legible without colour, and every text as it is."""

from rich import box
from rich.console import Console
from rich.table import Table

WIDTH = 100


def console() -> Console:
    """The standard output; square brackets in a text are no markup."""
    return Console(width=WIDTH, highlight=False, soft_wrap=False, markup=False)


def table(gap: int = 0) -> Table:
    """A table without columns.

    Args:
        gap: blanks between columns beside the one that is always there.
    """
    return Table(box=box.SIMPLE_HEAD, padding=(0, gap, 0, 0), pad_edge=False, show_edge=False)


def add_names(to: Table, heading: str, width: int) -> None:
    """Adds a column of names: a long one takes several lines and stays whole."""
    to.add_column(heading, width=width, overflow="fold")
