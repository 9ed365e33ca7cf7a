"""The commands that judge scores: `compare` one run with another, and `verify` that a run's numbers are its own."""

from pathlib import Path

import click

from forget_datasets import console
from forget_datasets.errors import UserError
from forget_eval.run_argument import RUN

_FOLDER = click.Path(path_type=Path)


@click.command(short_help="Compare scored runs, paired on their cases.")
@click.argument("folders", nargs=-1, required=True, type=RUN, metavar="RUN...")
@click.option("--all-pairs", is_flag=True, help="Compare every run with every other, not with the first alone.")
@click.option(
    "--flips",
    type=click.IntRange(min=0),
    default=10,
    metavar="N",
    help="How many cases that flipped to list each way; --json and --csv have all.",
)
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a row for each pair, metric and family or level.")
def compare(
    folders: tuple[Path, ...], all_pairs: bool, flips: int, markdown: bool, as_json: bool, as_csv: bool
) -> None:
    """Compare scored runs of one dataset: each RUN with the first, which is the baseline.

    Runs are paired on their cases. ForgetEval: McNemar's exact test, Holm over families, the difference with its
    interval, and the cases that flipped. MemBehave: a bootstrap of the differences by target.
    """
    if markdown + as_json + as_csv > 1:
        raise UserError("choose one of --markdown, --json and --csv.")
    from forget_eval.comparison import compare as compare_runs
    from forget_eval.report import compare as text

    found = compare_runs(folders, all_pairs)
    if as_json:
        console.print_json(text.plain(found))
    elif as_csv:
        click.echo(text.as_csv(found), nl=False)
    elif markdown:
        click.echo(text.markdown(found, flips))
    else:
        text.print_comparison(found, flips)


@click.command(short_help="Check that the numbers of runs are their own.")
@click.argument("folders", nargs=-1, required=True, type=RUN, metavar="RUN...")
@click.option("--data", metavar="DIR|URL|REPO", help="The dataset of the runs. [default: where they had it]")
@click.option(
    "--report",
    type=_FOLDER,
    metavar="PATH",
    help="A written report of exactly these runs: the folder of `report --out`, or a Markdown file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what differs as JSON.")
def verify(folders: tuple[Path, ...], data: str | None, report: Path | None, as_json: bool) -> None:
    """Check the hashes of each RUN's files, and compute every number anew from dataset and transcripts.

    Names each number that differs, by file and key, and then exits with 1.
    """
    from dataclasses import asdict

    from forget_eval.verify import verify as verify_runs

    found = verify_runs(list(dict.fromkeys(folders)), data, report)
    if as_json:
        console.print_json([asdict(finding) for finding in found])
    else:
        for finding in found:
            click.echo(str(finding))
    what = f"{len(found)} differ" if found else "everything is as it was scored"
    click.echo(f"{len(folders)} run{'s' if len(folders) > 1 else ''} verified: {what}", err=True)
    if found:
        raise SystemExit(1)
