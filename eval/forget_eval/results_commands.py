"""The commands about results of several people: `publish-results` shares runs, `leaderboard` ranks what is shared."""

from pathlib import Path

import click

from forget_datasets import console
from forget_datasets.errors import UserError

_FOLDER = click.Path(path_type=Path)


@click.command("publish-results", short_help="Publish scored runs as a dataset on the Hub.")
@click.argument("folders", nargs=-1, required=True, type=_FOLDER, metavar="RUN...")
@click.option("--repo-id", metavar="ORG/NAME", required=True, help="The results dataset on the Hub; made if need be.")
@click.option("--data", metavar="DIR|URL|REPO", help="The dataset of the runs. [default: where they had it]")
@click.option("--private", is_flag=True, help="Make a new repository private.")
@click.option("--yes", is_flag=True, help="Do it. Without, it is shown what would be done.")
def publish_results(folders: tuple[Path, ...], repo_id: str, data: str | None, private: bool, yes: bool) -> None:
    """Publish scored runs as a dataset: their summaries, their scores, and a card with the leaderboard.

    Runs that the repository has already stay; a RUN that was scored again takes the place of its older scores. Every
    RUN is verified first, and if a number of one is not its own, nothing is published and the command exits with 1.
    """
    from forget_datasets.hub.reference import parse
    from forget_eval.leaderboard import files, publish
    from forget_eval.verify import verify

    repo, runs = parse(repo_id).repo, files.runs_of(folders)
    if found := verify(runs, data):
        for finding in found:
            click.echo(str(finding))
        click.echo(f"{len(found)} differ: nothing was published. Score those runs again, or leave them out.", err=True)
        raise SystemExit(1)
    planned = publish.make(runs, repo, private)
    for line in publish.describe(planned):
        click.echo(line)
    if not yes:
        click.echo("Nothing was done. To do it add --yes.")
        return
    commit = publish.publish(planned, click.echo)
    click.echo(f"{planned.remote.repo} holds the results, at {commit}")


@click.command(short_help="Rank runs and published results.")
@click.argument("sources", nargs=-1, required=True, metavar="PATH|REPO...")
@click.option("--dataset", metavar="HASH", help="Only runs on the dataset whose content hash begins so.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every rate.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, a row a run.")
def leaderboard(sources: tuple[str, ...], dataset: str | None, markdown: bool, as_json: bool, as_csv: bool) -> None:
    """Merge results and rank them: by the strict rate, or by selective forgetting.

    A source is a RUN or a folder of them, a folder of results, or a results dataset on the Hub, ORG/NAME or
    ORG/NAME@REVISION. A rank is a range where intervals overlap. Runs on different rows of one config are refused.
    """
    if markdown + as_json + as_csv > 1:
        raise UserError("choose one of --markdown, --json and --csv.")
    from forget_eval.leaderboard import files, ranking, shown

    boards = ranking.boards(files.summaries(list(dict.fromkeys(sources))))
    if dataset is not None:
        boards = ranking.of_hash(boards, dataset)
    ranking.require_one_hash(boards)
    if as_json:
        console.print_json(shown.plain(boards))
    elif as_csv:
        click.echo(shown.csv(boards), nl=False)
    elif markdown:
        click.echo(shown.markdown(boards))
    else:
        shown.print_boards(boards)
