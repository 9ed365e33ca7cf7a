"""The list of adapters: what each is, whether it can be run here, and how it does the three operations."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points

from forget_datasets.errors import UserError
from forget_datasets.origin import PROJECT
from forget_datasets.rows import OPERATIONS
from forget_eval import adapters
from forget_eval.adapters.declarations import UNDECLARED, operations, stated
from forget_eval.adapters.lookup import built_in, origin, plugged_in
from forget_eval.isolation import environments, requirements
from forget_eval.isolation.environments import Environment
from forget_eval.mcp_servers import mapping
from forget_eval.packages import install_line, version

ABSENT = "n/a"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
BUILT_IN = "built in"
COLUMNS = (*OPERATIONS, "ids by", "needs")
"""Of both tables, after the name and the package."""


@dataclass(frozen=True)
class Row:
    """One adapter.

    Attributes:
        name: of the adapter.
        package: that it judges, empty for what is built in.
        tried: the version that the adapter was tried with, empty if it is this project's own.
        tried_on: the day of that, as 2026-11-30; empty where nothing was tried.
        version: that is installed in this Python, None if none is.
        environment: the version in the adapter's environment, None if there is none.
        install: the commands that get the package; empty if none is needed.
        operations: operation to "native", "emulated", "undeclared" or "n/a".
        choosers: who chooses the ids that an operation touches, for those that it has.
        needs: what else it takes, as "an embedder".
    """

    name: str
    package: str
    tried: str
    tried_on: str
    version: str | None
    environment: str | None
    install: list[str]
    operations: dict[str, str]
    choosers: dict[str, str]
    needs: str


def listing() -> list[Row]:
    """All adapters, built-in first; broken plugins and environments are left out with a warning."""
    made = {environment.name: environment for environment in environments.listing()}
    rows = [_row(name, built_in(name), PROJECT, made) for name in adapters.BUILT_IN]
    rows += [_row(f"mcp:{name}", adapters.find(f"mcp:{name}"), PROJECT, made) for name in mapping.shipped()]
    return rows + list(_plugin_rows(made))


def entries(row: Row) -> list[str]:
    """A row's entries for `COLUMNS`."""
    who = " and ".join(dict.fromkeys(chooser for chooser in row.choosers.values() if chooser != UNDECLARED))
    return [*(row.operations[operation] for operation in OPERATIONS), who, row.needs]


def markdown(rows: Sequence[Row]) -> str:
    """The table of README: nothing in it depends on what is installed."""
    headings = ["adapter", "package, version tried", "on", *COLUMNS]
    lines = [headings, ["---"] * len(headings)]
    lines += [
        [f"`{row.name}`", f"{row.package} {row.tried}".strip() or BUILT_IN, row.tried_on, *entries(row)] for row in rows
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(name: str, adapter: type, source: str, made: Mapping[str, Environment]) -> Row:
    place = stated(adapter, "environment") or name
    package = stated(adapter, "distribution") or stated(adapter, "serves") or source
    package = "" if package == PROJECT else package
    done = operations(adapter)
    needs = [stated(adapter, "needs")] + ["an embedder"] * adapters.wants_embedder(adapter)
    environment = made.get(place)
    return Row(
        name=name,
        package=package,
        tried=stated(adapter, "tried"),
        tried_on=_tried_on(place) if stated(adapter, "tried") else "",
        version=None if stated(adapter, "environment") else version(package or PROJECT),
        environment=environment.packages.get(package) if environment else None,
        install=_install(place, package, stated(adapter, "extra"), is_server=bool(stated(adapter, "serves"))),
        operations={op: done[op]["kind"] if op in done else ABSENT for op in OPERATIONS},
        choosers={op: how["chooser"] for op, how in done.items()},
        needs="; ".join(filter(None, needs)),
    )


def _tried_on(place: str) -> str:
    """The day that the first line of an environment's requirements names."""
    wanted = requirements.packaged(place)
    found = _DAY.search(wanted.content.partition("\n")[0]) if wanted else None
    return found[0] if found else ""


def _install(place: str, package: str, extra: str, is_server: bool) -> list[str]:
    if not package:
        return []
    own = [f"forget-eval env create {place}"] if requirements.packaged(place) else []
    if is_server:  # it runs in its environment alone; what speaks with it, the package mcp, is an extra of that name
        return own if version(extra) else [f"{install_line(extra)} && {line}" for line in own]
    if extra:
        return [*own, install_line(extra)]
    return own or [f"pip install {package}"]


def _plugin_rows(made: Mapping[str, Environment]) -> Iterator[Row]:
    for plugin in entry_points(group=adapters.GROUP):
        if plugin.name in adapters.BUILT_IN:
            continue
        try:
            found = plugged_in(plugin, (adapters.MANDATORY, adapters.ASSISTANT))
            yield _row(plugin.name, found, origin(plugin), made)
        except UserError as error:
            warnings.warn(f"{error}\n    It is left out.", RuntimeWarning, stacklevel=3)
