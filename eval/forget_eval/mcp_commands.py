"""The commands `forget-eval mcp ...`."""

import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from forget_datasets import console
from forget_datasets.errors import UserError

if TYPE_CHECKING:
    from forget_eval.mcp_servers.connection import Connection


@click.group(short_help="Memory servers that speak MCP.")
def mcp() -> None:
    """Look at memory servers that speak MCP.

    One with a mapping is a system like any other: `--adapter mcp:lethe`, `--adapter mcp:mine.toml`.
    """


@mcp.command(
    short_help="List a server's tools and propose a mapping.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--url", metavar="URL", help="Of a server that runs, as http://127.0.0.1:8000/mcp.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    metavar="SECONDS",
    help="How long the server may take.",
)
@click.option("--json", "as_json", is_flag=True, help="Print tools and mapping as JSON.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND...]")
def inspect(url: str | None, timeout: float, as_json: bool, command: tuple[str, ...]) -> None:
    """List the tools of a server that COMMAND starts, or that is at a URL, and print a mapping to begin with.

    The list goes to stderr, so that `forget-eval mcp inspect COMMAND > mine.toml` keeps the mapping. No tool is called.
    """
    if bool(url) == bool(command):
        raise UserError("give a command or --url: forget-eval mcp inspect python -m my_server")
    from forget_eval.packages import require

    for package in ("mcp", "tomlkit"):
        require(package, "mcp", "`mcp inspect`")
    from forget_eval.mcp_servers.connection import ServerFault, described
    from forget_eval.mcp_servers.proposal import propose

    server: dict[str, Any] = {"url": url} if url else {"command": list(command)}
    try:
        connection = _connected(url, command, timeout)
    except ServerFault as error:
        raise UserError(f"{url or shlex.join(command)}: {described(error)}") from error
    try:
        mapping = propose(connection.tools.values(), server)
        _print_json(connection, mapping) if as_json else _print(connection, mapping)
    finally:
        connection.close()


def _connected(url: str | None, command: tuple[str, ...], timeout: float) -> "Connection":
    from forget_eval.mcp_servers import connection

    if url:
        return connection.to_url(url, {}, (timeout, timeout))
    return connection.to_command(command, os.environ, None, (timeout, timeout))


def _print_json(connection: "Connection", mapping: str) -> None:
    tools = [
        {"name": tool.name, "description": tool.description or "", "arguments": tool.input_schema}
        for tool in connection.tools.values()
    ]
    found = {"server": connection.server, "version": connection.version, "protocol": connection.protocol}
    console.print_json({**found, "tools": tools, "mapping": mapping})


def _print(connection: "Connection", mapping: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from forget_eval.report.results import printable

    called = f"{connection.server} {connection.version}".strip() or "A server without a name"
    title = escape(printable(f"{called}, MCP {connection.protocol}"))
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for column in ("tool", "arguments (* required)", "what it says of itself"):
        table.add_column(column, overflow="fold")
    for tool in connection.tools.values():
        cells = (tool.name, _signature(tool), (tool.description or "").strip().partition("\n")[0])
        table.add_row(*(escape(printable(cell)) for cell in cells))
    Console(stderr=True).print(table)
    sys.stderr.flush()
    click.echo(mapping, nl=False)


def _signature(tool: Any) -> str:
    from forget_eval.mcp_servers import schemas

    required = schemas.required(tool)
    named = schemas.arguments(tool).items()
    return ", ".join(f"{name}{'*' * (name in required)}: {'|'.join(schemas.types(inner))}" for name, inner in named)
