"""The commands `forget-eval env …`, and the options by which other commands isolate adapters."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from forget_datasets.errors import UserError

if TYPE_CHECKING:
    from forget_eval.isolation.environments import Environment
    from forget_eval.isolation.interpreters import Interpreter
    from forget_eval.isolation.requirements import Requirements
    from forget_eval.isolation.selection import Isolation

_Command = TypeVar("_Command", bound=Callable[..., Any])


def isolation_options(command: _Command) -> _Command:
    """Adds the options, of which the command is given `isolation`: how systems are isolated."""

    @wraps(command)
    def with_isolation(*arguments: Any, isolate: bool, timeout: int, memory_limit: int | None, **others: Any) -> Any:
        return command(*arguments, isolation=isolation_of(isolate, timeout, memory_limit), **others)

    for option in (
        click.option(
            "--memory-limit",
            type=click.IntRange(min=16),
            metavar="MB",
            help="Memory that an isolated system may take.  [default: no limit]",
        ),
        click.option(
            "--timeout",
            type=click.IntRange(min=1),
            default=600,
            metavar="SECONDS",
            help="How long one call of an isolated system, or of a server, may last.",
        ),
        click.option(
            "--isolate", is_flag=True, help="Run systems without an environment in a process of their own too."
        ),
    ):
        with_isolation = option(with_isolation)
    return with_isolation  # type: ignore[return-value]


def isolation_of(isolate: bool, timeout: float, memory_limit: int | None) -> "Isolation":
    """What the options ask for."""
    from forget_eval.isolation.process import Limits
    from forget_eval.isolation.selection import Isolation

    return Isolation(isolate, Limits(timeout, memory_limit))


@click.group(short_help="Environments of their own for memory systems.")
def env() -> None:
    """Make, list and remove environments of their own for memory systems, whose packages often conflict.

    They lie in $FORGET_EVAL_ENVS, else below $XDG_DATA_HOME or ~/.local/share. `run` and `bench` use the one of a
    system whenever there is one.
    """


@env.command(short_help="Make the environment of a system.")
@click.argument("name")
@click.option(
    "--requirements",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What to install, as pip reads it.  [default: what comes with the system's adapter]",
)
@click.option("--python", metavar="PYTHON", help="A path, a command or a version.  [default: one that fits]")
@click.option("--force", is_flag=True, help="Make it anew if it is there.")
def create(name: str, file: Path | None, python: str | None, force: bool) -> None:
    """Make the environment of a system: a name that `adapters` lists, or module:Class with --requirements."""
    from forget_eval.isolation import environments, selection

    environments.require_name(name)
    name = selection.place(name)
    wanted = _requirements(name, file)
    there = environments.find(name)
    chosen = _python(name, wanted, python)
    if there is not None and not force and _serves(there, wanted, chosen if python else None):
        click.echo(f"the environment of '{name}' is there: {there.folder}", err=True)
        return
    click.echo(f"making the environment of '{name}' with {chosen.path} ({chosen.version})", err=True)
    with _spinner() as report:
        made = environments.create(name, wanted, chosen, report)
    click.echo(f"{name}: Python {made.python}, {_counted(len(made.packages))} in {made.folder}", err=True)


@env.command("ls", short_help="List environments.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List environments with their Python, packages, size and state."""
    from forget_eval.isolation import environments

    found = environments.listing()
    if as_json:
        click.echo(json.dumps([environments.as_row(each) for each in found], ensure_ascii=False, indent=2))
    elif found:
        _print(found)
    else:
        click.echo(f"no environments in {environments.root()}; `forget-eval env create NAME` makes one.", err=True)


@env.command(short_help="Remove environments.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def rm(names: tuple[str, ...]) -> None:
    """Remove environments, finished or not."""
    from forget_eval.isolation import environments

    for name in names:
        click.echo(f"removed {environments.remove(name)}", err=True)


def _requirements(name: str, file: Path | None) -> "Requirements":
    from forget_eval import adapters
    from forget_eval.isolation import environments, requirements

    if ":" not in name and requirements.packaged(name) is None:
        adapters.find(name, (adapters.MANDATORY, adapters.ASSISTANT))  # for a name that nobody knows
    if file is not None:
        return requirements.users(file)
    if packaged := requirements.packaged(name):
        return packaged
    if (there := environments.find(name)) is not None:
        return requirements.users(Path(there.requirements_path))
    if name in adapters.BUILT_IN:
        raise UserError(f"nothing is known that '{name}' would need in an environment. If it does: --requirements FILE")
    raise UserError(f"what does '{name}' need in its environment? Add --requirements FILE, a file as pip reads it.")


def _python(name: str, wanted: "Requirements", python: str | None) -> "Interpreter":
    from forget_eval.isolation import interpreters

    what = f"the environment of '{name}'"
    if python is not None:
        return interpreters.named(python, wanted.requires, what)
    return interpreters.choose(wanted.requires, wanted.tried, what)


def _serves(there: "Environment", wanted: "Requirements", asked: "Interpreter | None") -> bool:
    from forget_eval.isolation.environments import State

    same = there.requirements_sha256 == wanted.sha256 and (asked is None or asked.version == there.python)
    return same and there.state is State.COMPLETE


@contextmanager
def _spinner() -> Iterator[Callable[[str], None]]:
    """Shows the line of pip's that is going on, on a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda line: None
        return
    with console.status("") as status:
        yield lambda line: status.update(Text(line.strip()[: console.width - 4]))


def _print(found: "list[Environment]") -> None:
    from forget_eval.report import console as terminal

    table = terminal.table(gap=1)
    for column in ("name", "Python", "packages", "size", "state"):
        table.add_column(column, justify="right" if column == "size" else "left", overflow="fold")
    for each in found:
        size = f"{each.size() / 1e6:,.0f} MB"
        table.add_row(each.name, each.python, _packages(each), size, str(each.state))
    terminal.console().print(table)


def _packages(found: "Environment") -> str:
    """What was asked for first, and how many others came with it."""
    from forget_eval import adapters
    from forget_eval.adapters.declarations import stated

    if not found.packages:
        return ""
    top = ""
    if found.name in adapters.BUILT_IN:
        top = stated(adapters.find(found.name), "distribution")
    count = len(found.packages)
    return f"{top} {found.packages[top]} and {count - 1} more" if top in found.packages else _counted(count)


def _counted(packages: int) -> str:
    return f"{packages} package{'' if packages == 1 else 's'}"
