"""What the commands print of runs. Imports nothing heavy; each function fetches what it needs."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from forget_datasets import console
from forget_eval.membehave import commands as membehave


def runs_in(folders: Sequence[Path]) -> list[Path]:
    """The folders themselves, or the runs inside one that is no run; each once."""
    from forget_eval import runs

    found: dict[Path, None] = {}
    for folder in folders:
        alone = os.path.exists(folder / runs.TRANSCRIPTS) or not os.path.isdir(folder)
        inside = [] if alone else sorted(folder.glob(f"*/{runs.TRANSCRIPTS}"))
        found |= dict.fromkeys([path.parent for path in inside] or [folder])
    return list(found)


def show_played(folders: Sequence[Path], as_json: bool, repeats: int) -> None:
    """Prints what a bench has played: runs, or several repeats of each system. Raises UserError as `show` does."""
    if repeats == 1:
        show(folders, as_json)
        return
    from forget_eval import repeats as several
    from forget_eval.report.repeats import print_repeats

    summaries = [several.summarise(folder) for folder in folders]
    if as_json:
        print_json(summaries)
        return
    for summary in summaries:
        print_repeats(summary)


def show(folders: Sequence[Path], as_json: bool, markdown: bool = False) -> None:
    """Prints scored runs as a table, as Markdown or as JSON. Raises UserError for one that is not scored."""
    from forget_eval import scores

    if as_json:
        print_json([scores.read_summary(folder) for folder in folders])
        return
    ours = membehave.of_membehave(folders)
    others = [folder for folder in folders if folder not in ours]
    if others:
        _show_forgeteval(others, markdown)
    if ours:
        membehave.show(ours, markdown)


def _show_forgeteval(folders: Sequence[Path], markdown: bool) -> None:
    from forget_eval.report.results import load

    if markdown:
        from forget_eval.report.markdown import render

        print(render(load(folders)))
    else:
        from forget_eval.report.terminal import print_report

        print_report(load(folders))


def name_files(data: Path, folders: Sequence[Path]) -> None:
    """Says on stderr what a bench has written."""
    from forget_eval import runs, scores, seals

    files = ", ".join((runs.MANIFEST, runs.TRANSCRIPTS, scores.SCORES, scores.SUMMARY, seals.FILE))
    click.echo(f"Dataset: {data}\nRuns, each with {files}:", err=True)
    for folder in folders:
        click.echo(f"  {folder}", err=True)


def print_json(found: list[Any], single: bool = True) -> None:
    """Prints a list as JSON; with `single`, a list of one as that one."""
    console.print_json(found[0] if single and len(found) == 1 else found)
