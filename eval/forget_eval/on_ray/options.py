"""The options of commands that can run on a cluster. Imports nothing heavy."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from forget_datasets.errors import UserError

if TYPE_CHECKING:
    from forget_eval.parallel.stage import Stages

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--engine", type=click.Choice(("local", "ray")), default="local",
                 help="Where a system runs: in processes of this machine, or in actors of a Ray cluster."),
    click.option("--address", metavar="ADDR",
                 help="ray: the cluster, or auto for this machine's. [default: a Ray of this machine's own]"),
    click.option("--shards", metavar="DIR|URL",
                 help="ray: where workers write, a place that all machines reach. [default: the run folder]"),
)  # fmt: skip


def engine_options(command: Command) -> Command:
    """Adds the options, of which the command is given `staged`: what makes its stage, None for this machine."""

    @wraps(command)
    def with_engine(*arguments: Any, engine: str, address: str | None, shards: str | None, **others: Any) -> Any:
        return command(*arguments, staged=_staged(engine, address, shards), **others)

    for option in reversed(_OPTIONS):
        with_engine = option(with_engine)
    return with_engine  # type: ignore[return-value]


def _staged(engine: str, address: str | None, shards: str | None) -> "Stages | None":
    if engine == "ray":
        from forget_eval.on_ray.engine import Engine

        return Engine(address, shards)
    for flag, value in (("--address", address), ("--shards", shards)):
        if value is not None:
            raise UserError(f"{flag} goes with --engine ray.")
    return None
