"""The command `forget-datasets`. Heavy imports wait inside the commands, so that help is instant."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from forget_datasets import __version__, console
from forget_datasets.errors import UserError, unknown

if TYPE_CHECKING:
    from forget_datasets.workers import Spread

PROGRAM = "forget-datasets"


class Commands(click.Group):
    """A group that knows what a mistyped command was meant to be."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises UserError for an unknown command."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise unknown("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


class Folder(click.Path):
    """A folder, with ~ for the home folder: in --out=~/data no shell expands it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Raises UserError for the home of nobody, and for a name that is empty."""
        if not value:
            raise UserError(f"{param.get_error_hint(ctx) if param else 'a folder'} is empty; name a folder")
        try:
            return Path(value).expanduser()
        except RuntimeError as error:
            raise UserError(f"{value}: nobody has that home folder. For one of that name write ./{value}") from error


class Place(Folder):
    """A folder, or the fsspec URL of one, which stays a text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises UserError as `Folder`."""
        from forget_datasets.remote import is_url

        return value if is_url(value) else super().convert(value, param, ctx)


_FOLDER = Folder()
_PLACE = Place()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=PROGRAM)
def program() -> None:
    """Builds, checks and publishes the forgetting benchmarks ForgetEval and MemBehave."""


@program.group(cls=Commands)
def build() -> None:
    """Make a dataset: Parquet files, a manifest and a card."""


@build.command()
@click.option(
    "--lang", "langs", multiple=True, default=("en",), show_default=True, help="Language; repeat for several."
)
@click.option("--profile", help="Usual size: smoke, standard (default), full or stress; explicit options override it.")
@click.option("--n-per-family", type=click.IntRange(min=1), help="Cases per family and language.")
@click.option("--distractors", type=click.IntRange(min=0), help="Unrelated facts mixed into each case.")
@click.option("--seed", type=int, default=42, show_default=True, help="Seed of the whole dataset.")
@click.option("--out", type=_PLACE, required=True, help="Folder to make, or its fsspec URL such as s3://bucket/name.")
@click.option("--force", is_flag=True, help="Replace a dataset of other parameters in --out.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes at most. [default: the CPUs that may be used]")
@click.option("--engine", type=click.Choice(("local", "ray")), default="local", show_default=True, help="Who builds.")
@click.option("--address", metavar="ADDR", help="ray: the cluster, or auto. [default: a Ray of this machine's own]")
def forgeteval(
    langs: Sequence[str],
    profile: str | None,
    n_per_family: int | None,
    distractors: int | None,
    seed: int,
    out: Path | str,
    force: bool,
    workers: int | None,
    engine: str,
    address: str | None,
) -> None:
    """Build ForgetEval: a config per language (<lang>-stress with --profile stress) and the hand-made one."""
    from forget_datasets.build import build_forgeteval
    from forget_datasets.forgeteval import PROFILES, handmade
    from forget_datasets.rows import FAMILIES
    from forget_datasets.workers import available

    if profile is not None and profile not in PROFILES:
        raise unknown("profile", profile, PROFILES)
    size = PROFILES[profile or "standard"]
    outcomes: list[str] = []
    n = size.n_per_family if n_per_family is None else n_per_family
    total = len(FAMILIES) * n * len(set(langs)) + len(handmade.load())
    with _progress("building", total) as progress:
        manifest = build_forgeteval(
            out,
            langs,
            n,
            size.distractors if distractors is None else distractors,
            seed,
            stress=profile == "stress",
            force=force,
            progress=progress,
            settled=outcomes.append,
            workers=workers or available(),
            spread=_spread(engine, address, workers),
        )
    _announce(out, manifest, outcomes[0])


@build.command()
@click.option("--triplets", type=click.IntRange(min=1), default=42, show_default=True, help="Each is three items.")
@click.option(
    "--triplets-per-user", type=int, default=1, show_default=True, help="Triplets told in one history, 1 to 3."
)
@click.option("--sessions-per-user", type=int, help="Conversations in a history, at most 120. [default: 80]")
@click.option(
    "--same-message",
    type=float,
    default=0.25,
    show_default=True,
    help="Share of the shared entities of which another person is told in the target's message.",
)
@click.option(
    "--noise",
    type=float,
    default=0.0,
    show_default=True,
    help="Probability with which an edge is dropped from the recorded graph, and one added.",
)
@click.option("--seed", type=int, default=42, show_default=True, help="Seed of the whole dataset.")
@click.option("--gated", is_flag=True, help="Let the card ask who wants the data and what for.")
@click.option("--out", type=_PLACE, required=True, help="Folder to make, or its fsspec URL such as s3://bucket/name.")
@click.option("--force", is_flag=True, help="Replace a dataset of other parameters in --out.")
def membehave(out: Path | str, triplets: int, **options: Any) -> None:
    """Build MemBehave: Forgetting, the configs default and extended, each split into low, med and high."""
    from forget_datasets.build import build_membehave

    outcomes: list[str] = []
    with _progress("building", triplets * 6) as progress:  # three items in each of two configs
        manifest = build_membehave(out, triplets, progress=progress, settled=outcomes.append, **options)
    _announce(out, manifest, outcomes[0])


@program.command()
@click.argument("folder", type=_PLACE, metavar="FOLDER|URL")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def validate(folder: Path | str, as_json: bool) -> None:
    """Work out checks, controls, counts and hashes again from the Parquet alone; exit 1 if anything is wrong."""
    from forget_datasets import remote
    from forget_datasets.validate import validate as validate_folder

    local = remote.pulled_dataset(folder) if isinstance(folder, str) else folder
    with remote.spoken_of(local, str(folder)), _progress("validating", None) as progress:
        found = validate_folder(local, progress)
    if as_json:
        findings = {
            "dataset": found.dataset,
            "valid": not found.problems,
            "rows": found.rows,
            "configs": found.configs,
            "problems": [
                {"file": p.file, "row": p.row or None, "column": p.column or None, "message": p.message}
                for p in found.problems
            ],
        }
        console.print_json(findings)
    else:
        for problem in found.problems:
            click.echo(str(problem))
        verdict = f"{len(found.problems)} problems" if found.problems else "valid"
        click.echo(f"{folder}: {found.dataset}, {found.rows:,} rows in {len(found.configs)} configs: {verdict}")
    if found.problems:
        sys.exit(1)


_VERSION = click.option("--version", required=True, help="Three numbers, such as 1.0.0.")
_NOTES = click.option("--note", "notes", multiple=True, help="A change line of your own; repeat for several.")


@program.command()
@click.argument("folder", type=_FOLDER)
@_VERSION
@_NOTES
@click.option("--repo-id", metavar="ORG/NAME", help="Continue the releases of a dataset on the Hub.")
def release(folder: Path, version: str, notes: Sequence[str], repo_id: str | None) -> None:
    """Freeze a dataset: validate it, and tie the version to its content hash in RELEASES.md for good."""
    from forget_datasets import releases
    from forget_datasets.hub import plan
    from forget_datasets.hub.reference import parse

    published = plan.published(parse(repo_id).repo) if repo_id else None
    with _progress("validating", None) as progress:
        frozen, known = releases.freeze(folder, version, notes, published, progress)
    releases.write(folder, known)
    click.echo(f"{folder}: {known.dataset} {frozen.version}, content hash {frozen.content_hash}\n{frozen.changes}")


@program.command()
@click.argument("folder", type=_FOLDER)
@click.option("--repo-id", metavar="ORG/NAME", required=True, help="The dataset on the Hub; made if need be.")
@_VERSION
@_NOTES
@click.option("--private", is_flag=True, help="Make a new repository private.")
@click.option("--gated", is_flag=True, help="Ask who wants the files and what for, before they are handed out.")
@click.option("--yes", is_flag=True, help="Do it. Without, it is shown what would be done.")
def publish(
    folder: Path, repo_id: str, version: str, notes: Sequence[str], private: bool, gated: bool, yes: bool
) -> None:
    """Publish a release on the Hub: one commit, loaded back and compared, then a tag."""
    from forget_datasets.hub import plan, publish
    from forget_datasets.hub.reference import parse

    with _progress("validating", None) as progress:
        planned = plan.make(folder, parse(repo_id).repo, version, notes, private, gated, progress)
    for line in plan.describe(planned):
        click.echo(line)
    if not yes:
        click.echo("Nothing was done. To do it add --yes.")
        return
    commit = publish.publish(planned, click.echo)
    click.echo(f"{planned.reference} is published, at {commit}")


@program.command()
@click.argument("reference", metavar="ORG/NAME@vX.Y.Z")
def verify(reference: str) -> None:
    """Fetch a release and compare its rows with the hash that it was released with; exit 1 if they differ."""
    from forget_datasets.hub import verify
    from forget_datasets.hub.reference import parse

    with _progress("verifying", None) as progress:
        release, commit, rows = verify.verify(parse(reference), progress)
    click.echo(f"{reference}: {rows:,} rows at {commit}, content hash {release.content_hash}, as released")


def _spread(engine: str, address: str | None, workers: int | None) -> "Spread | None":
    """Who makes chunks, if not this machine. Raises UserError for options that do not go together."""
    if engine == "local":
        if address is not None:
            raise UserError("--address goes with --engine ray.")
        return None
    if workers is not None:
        raise UserError("--workers goes with --engine local: Ray takes the CPUs that the cluster has.")
    from forget_datasets.on_ray import spread_over_cluster

    return spread_over_cluster(address)


_STEPS = 32  # rows between two looks of the bar, each of which takes longer than a row
_OUTCOMES = {"new": "built", "unchanged": "already built, nothing to do", "replaced": "built in place of the old one"}


def _announce(out: Path | str, manifest: dict[str, Any], outcome: str) -> None:
    from forget_datasets.remote import is_url

    configs = manifest["configs"]
    name, config = next(iter(configs.items()))
    rows = sum(c["rows"] for c in configs.values())
    split = next(iter(config["splits"]))
    load = "forget_datasets.load" if is_url(str(out)) else "datasets.load_dataset"
    click.echo(
        f"{out}: {_OUTCOMES[outcome]}, {rows:,} rows in {len(configs)} configs ({', '.join(configs)}). "
        f'Load with {load}("{out}", "{name}", split="{split}")'
    )


@contextmanager
def _progress(what: str, total: int | None) -> Iterator[Callable[[str], None] | None]:
    """A bar on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        steps = count(1)

        def step(config: str) -> None:
            if (done := next(steps)) % _STEPS == 0 or done == total:
                bar.update(task, completed=done, description=f"{what} {config}")

        yield step


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command. Exits with 2 for bad usage, with 1 if data is no good or the machine is in the way."""
    console.run(program, PROGRAM, arguments, "interrupted. Nothing half-written was left, and what was there is there.")
