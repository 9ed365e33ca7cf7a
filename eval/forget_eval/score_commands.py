"""The commands that read runs: `score` them, and `report` what they scored. A run may lie behind a URL."""

from pathlib import Path
from typing import Any

import click

from forget_datasets.errors import UserError
from forget_datasets.remote import is_url
from forget_eval.membehave import commands as membehave
from forget_eval.run_argument import RUN
from forget_eval.shown import print_json, runs_in, show

_FOLDER = click.Path(path_type=Path)


@click.command(short_help="Score runs.")
@click.argument("places", nargs=-1, required=True, metavar="RUN...")
@click.option("--data", metavar="DIR|URL|REPO", help="The dataset of the run. [default: where the run had it]")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@membehave.score_options
def score(places: tuple[str, ...], data: str | None, as_json: bool, **options: Any) -> None:
    """Score runs from dataset and transcripts alone: scores.parquet and summary.json in each RUN.

    A RUN behind a fsspec URL is pulled, and its scores are uploaded to it.
    """
    from forget_eval import remote, scores

    judge, summaries = membehave.judge_for(options), []
    for place in places:
        folder = RUN(place)
        summaries.append(scores.score(folder, data, judge))
        if is_url(place):
            remote.upload_scores(folder, place)
    if as_json:
        print_json(summaries)
    for place in places:
        place = place.rstrip("/")
        click.echo(f"wrote {place}/{scores.SCORES} and {place}/{scores.SUMMARY}", err=True)


@click.command(short_help="Print the table of scored runs, or write a report.")
@click.argument("folders", nargs=-1, required=True, type=RUN, metavar="RUN...")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print the summaries as JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print every rate with its interval as CSV.")
@click.option("--out", type=_FOLDER, metavar="DIR", help="Write a page, index.html, and its Markdown twin, report.md.")
@click.option("--png", is_flag=True, help="With --out: write the plots as pictures too.")
@click.option(
    "--data",
    multiple=True,
    metavar="DIR|URL|REPO",
    help="With --out: a dataset of the runs, for the page's failures. [default: where the runs had it]",
)
def report(
    folders: tuple[Path, ...],
    markdown: bool,
    as_json: bool,
    as_csv: bool,
    out: Path | None,
    png: bool,
    data: tuple[str, ...],
) -> None:
    """Print the table of scored runs, one RUN with its templates, several side by side; or write a whole report.

    A folder of runs, such as `bench` makes, stands for all of them.
    """
    if markdown + as_json + as_csv + (out is not None) > 1:
        raise UserError("choose one of --markdown, --json, --csv and --out.")
    if out is None and (png or data):
        raise UserError(f"{'--png' if png else '--data'} goes with --out DIR.")
    if out is not None:
        from forget_eval.report.html import write

        click.echo(write(runs_in(folders), out, data, png)[0])
    elif as_csv:
        from forget_eval.report.frames import csv

        print(csv(runs_in(folders)), end="")
    else:
        show(runs_in(folders), as_json, markdown)
