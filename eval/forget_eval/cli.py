"""forget-eval: runs memory systems on the forgetting benchmarks and judges what they answered.

Imports nothing heavy; each command fetches what it needs.
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forget_datasets import console
from forget_datasets.errors import DataFault, EnvironmentFault, UserError, unknown
from forget_eval import __version__
from forget_eval.compare_commands import compare, verify
from forget_eval.env_commands import env, isolation_options
from forget_eval.mcp_commands import mcp
from forget_eval.membehave import commands as membehave
from forget_eval.on_ray.options import engine_options
from forget_eval.residue_commands import residue
from forget_eval.results_commands import leaderboard, publish_results
from forget_eval.score_commands import report, score
from forget_eval.shown import name_files, print_json, show_played

if TYPE_CHECKING:
    from forget_eval.bench import Shape
    from forget_eval.data import Dataset
    from forget_eval.isolation.selection import Isolation
    from forget_eval.parallel.stage import Stages

PROGRAM = "forget-eval"
_FOLDER = click.Path(path_type=Path)


_REPEATS = click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Runs of each system, in DIR/repeat-1 and so on: for systems that do not answer alike every time.",
)


_WORKERS = click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Processes that run a system side by side, if it may run in several. The answers are the same.",
)


class Program(click.Group):
    """However a command ends, it ends with a sentence and without secrets."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises UserError for an unknown command, with the one that was meant."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            raise unknown("command", args[0], self.commands)
        return super().resolve_command(ctx, args)

    def main(self, args: Any = None, *, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        """Runs a command to its end; see `console.run`. Without `standalone_mode` it raises what the command raises."""
        if standalone_mode:
            console.run(self, PROGRAM, args, "interrupted. The same command goes on from there.", _hide)
        try:
            return super().main(args, standalone_mode=False, **extra)
        except UserError as error:
            kind = next(kind for kind in (EnvironmentFault, DataFault, UserError) if isinstance(error, kind))
            raise kind(_hide(str(error))) from error


def _hide(text: str) -> str:
    from forget_eval.redaction import redact

    return str(redact(text))


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name=PROGRAM)
def main() -> None:
    """Judge how well a memory system forgets.

    `bench` does it all in one go; `run`, `score` and `report` are its steps, joined by files.
    """


@main.command(short_help="Build, run, score and report in one go.")
@click.argument("task")
@click.option(
    "--adapter",
    "names",
    multiple=True,
    required=True,
    metavar="NAME",
    help="A system: a name that `adapters` lists, or module:Class. May be given several times.",
)
@click.option(
    "--scale", type=click.IntRange(min=1), metavar="N", help="Cases per family. [default: the 15 hand-made cases]"
)
@click.option(
    "--profile",
    metavar="NAME",
    help="smoke, standard, full or stress: a usual scale with its distractors, which options override.",
)
@click.option(
    "--distractors",
    type=click.IntRange(min=0),
    metavar="N",
    help="Unrelated facts mixed into each case. [default: 4]",
)
@click.option("--seed", type=int, help="Seed of the dataset. [default: 42]")
@click.option("--lang", default="en", help="Language of the cases.")
@click.option(
    "--embedder", metavar="NAME", help="Embedder for the systems that take one. [default: that of the language]"
)
@click.option(
    "--out",
    type=_FOLDER,
    metavar="DIR",
    help="Run folder, with DIR/data as its dataset; several adapters: DIR/<adapter>. [default: below runs/]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON instead of the table.")
@click.option("--force", is_flag=True, help="Start runs over that are there already.")
@_REPEATS
@_WORKERS
@engine_options
@isolation_options
@membehave.bench_options
def bench(
    task: str,
    names: tuple[str, ...],
    scale: int | None,
    profile: str | None,
    distractors: int | None,
    seed: int | None,
    lang: str,
    embedder: str | None,
    out: Path | None,
    as_json: bool,
    force: bool,
    repeats: int,
    workers: int,
    staged: "Stages | None",
    isolation: "Isolation",
    **options: Any,
) -> None:
    """Build a dataset, run systems on it, score them and print the table.

    TASK is forgeteval, of which without --scale or --profile the 15 hand-made cases are run, or membehave.
    """
    _require_task(task)
    _prepare(workers if staged is None else 1)
    names = tuple(dict.fromkeys(names))
    if task == "membehave":
        refused = {
            "scale": scale,
            "profile": profile,
            "distractors": distractors,
            "lang": lang if lang != "en" else None,
        }
        membehave.refuse(refused, task)
        played = membehave.bench(names, embedder, seed, out, options, force, isolation, repeats, workers, staged)
        show_played([one.folder for one in played], as_json, repeats)
        return
    membehave.refuse(options, task)
    from forget_eval.bench import shape

    wanted = shape(lang, scale, profile, distractors, seed)
    root, folders = _places(task, wanted, names, out)
    _bench(wanted, names, embedder, root / "data", folders, force, isolation, repeats, workers, staged)
    show_played(folders, as_json, repeats)
    name_files(root / "data", folders)


@main.command(short_help="Run a system on a dataset.")
@click.argument("task")
@click.option(
    "--data",
    required=True,
    metavar="DIR|URL|REPO",
    help="A dataset: a folder, here or behind a URL, or owner/name on the Hub.",
)
@click.option("--config", metavar="NAME", help="Config of the dataset. [default: the only one]")
@click.option("--revision", metavar="REF", help="Branch, tag or commit of a repository on the Hub.")
@click.option(
    "--adapter", "name", required=True, metavar="NAME", help="A system: a name that `adapters` lists, or module:Class."
)
@click.option(
    "--embedder", metavar="NAME", help="Embedder for a system that takes one. [default: that of the language]"
)
@click.option("--out", type=_FOLDER, required=True, metavar="DIR", help="Run folder. A run that was cut off goes on.")
@click.option("--upload", metavar="URL", help="Where the run is copied to once it has ended, as s3://bucket/run.")
@click.option("--force", is_flag=True, help="Start the run over if it is there already.")
@_REPEATS
@_WORKERS
@engine_options
@isolation_options
@membehave.run_options
def run(
    task: str,
    data: str,
    config: str | None,
    revision: str | None,
    name: str,
    embedder: str | None,
    out: Path,
    upload: str | None,
    force: bool,
    repeats: int,
    workers: int,
    staged: "Stages | None",
    isolation: "Isolation",
    **options: Any,
) -> None:
    """Run a system on a dataset: one transcript a case. Nothing is scored.

    TASK is forgeteval or membehave.
    """
    _require_task(task)
    _prepare(workers if staged is None else 1)
    from forget_eval.data import open_dataset

    if upload is not None:
        from forget_eval import remote

        remote.require_apart(out, upload)  # what is wrong with it is said before anything is played
    if task == "membehave":
        source = partial(open_dataset, data, task, config or "default", revision)
        membehave.run_one(source, name, out, embedder, options, force, isolation, repeats, workers, staged)
    else:
        membehave.refuse(options, task)
        from forget_eval import runs
        from forget_eval.bench import embedder_for

        dataset = open_dataset(data, task, config, revision)
        embed = embedder_for([name], embedder, dataset.lang, isolation)
        for folder in runs.repeat_folders(out, repeats):
            _run(dataset, name, folder, embed, force, isolation, workers, staged)
    if upload is not None:
        remote.upload(out, upload)
        click.echo(f"uploaded to {upload}", err=True)


@main.command(short_help="List the systems that can be run.")
@click.option("--markdown", is_flag=True, help="Print Markdown, the same whatever is installed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def adapters(markdown: bool, as_json: bool) -> None:
    """List the systems that can be run, and how each does the three operations."""
    from dataclasses import asdict

    from forget_eval import catalogue

    rows = catalogue.listing()
    if markdown:
        print(catalogue.markdown(rows), end="")
        return
    if as_json:
        print_json([asdict(row) for row in rows], single=False)
        return
    from forget_eval.report.terminal import print_adapters

    print_adapters(rows)


main.add_command(env)
main.add_command(mcp)
main.add_command(compare)
main.add_command(residue)
main.add_command(score)
main.add_command(report)
main.add_command(verify)
main.add_command(leaderboard)
main.add_command(publish_results)


def _require_task(task: str) -> None:
    from forget_eval.bench import TASKS

    if task not in TASKS:
        raise unknown("task", task, TASKS)


def _prepare(workers: int) -> None:
    if workers > 1:
        from forget_eval.parallel.crew import prepare

        prepare(workers)


def _places(task: str, wanted: "Shape", names: Sequence[str], out: Path | None) -> tuple[Path, list[Path]]:
    """The folder that holds the dataset, and a run folder for each adapter; one more joins those that are there."""
    from forget_eval import runs

    if out is not None and len(names) == 1 and not runs.is_shared(out):
        return out, [out]
    root = out or Path("runs", f"{task}-{wanted.label}")
    return root, [root / re.sub(r"[^\w.-]+", ".", name) for name in names]


def _bench(
    wanted: "Shape",
    names: Sequence[str],
    embedder: str | None,
    data: Path,
    folders: Sequence[Path],
    force: bool,
    isolation: "Isolation",
    repeats: int,
    workers: int,
    staged: "Stages | None",
) -> None:
    from forget_eval import runs
    from forget_eval.bench import build_data, embedder_for, require_all
    from forget_eval.data import open_dataset
    from forget_eval.scores import score as score_run

    embed = embedder_for(names, embedder, wanted.lang, isolation)
    require_all(names, embed, isolation)
    build_data(data, wanted)
    dataset = open_dataset(str(data), "forgeteval", wanted.config)
    for name, place in zip(names, folders, strict=True):
        for folder in runs.repeat_folders(place, repeats):
            _run(dataset, name, folder, embed, force, isolation, workers, staged)
            score_run(folder)


def _run(
    dataset: "Dataset",
    name: str,
    folder: Path,
    embed: Any,
    force: bool,
    isolation: "Isolation",
    workers: int,
    staged: "Stages | None",
) -> None:
    from forget_eval.bench import run_adapter
    from forget_eval.parallel.stage import stage

    played = run_adapter(
        dataset, name, folder, embed, force=force, isolation=isolation, workers=workers, staged=staged or stage
    )
    what = f"{played} cases run" if played else "finished before, nothing to do"
    click.echo(f"{name}: {what}, {dataset.n} in {folder}", err=True)


if __name__ == "__main__":
    main()
