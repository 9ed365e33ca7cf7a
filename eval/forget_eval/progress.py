"""A progress bar on a terminal, nothing in a pipe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from forget_eval.runner import Watch


@contextmanager
def progress(label: str, total: int, done: int = 0) -> Iterator[Watch]:
    """Shows how many of `total` rows are done while the block runs, on stderr, if that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield Watch()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[step]}"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task(label, total=total, completed=done, step="")

        class Bar(Watch):
            def embedding(self, texts: int) -> None:
                bar.update(task, step=f"embedding {texts} texts")

            def replaying(self) -> None:
                bar.update(task, step="")

            def replayed(self) -> None:
                bar.advance(task)

        yield Bar()
