"""The commands `forget-eval mcp ...`."""

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

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
    from forget_eval.mcp_servers.connection import ServerFault
    from forget_eval.mcp_servers.proposal import propose
    from forget_eval.packages import require

    require("mcp", "mcp", "`mcp inspect`")
    server: dict[str, Any] = {"url": url} if url else {"command": list(command)}
    try:
        connection = _connected(url, command, timeout)
    except ServerFault as error:
        tail = "".join(f"\n    {line}" for line in str(error.__cause__ or "").strip().splitlines()[-8:])
        raise UserError(f"{url or shlex.join(command)}: {error}{tail}") from error
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
    click.echo(json.dumps({**found, "tools": tools, "mapping": mapping}, ensure_ascii=False, indent=2))


def _print(connection: "Connection", mapping: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    called = f"{connection.server} {connection.version}".strip() or "A server without a name"
    table = Table(box=box.SIMPLE_HEAD, title=escape(f"{called}, MCP {connection.protocol}"), title_justify="left")
    for column in ("tool", "arguments (* required)", "what it says of itself"):
        table.add_column(column, overflow="fold")
    for tool in connection.tools.values():
        first = (tool.description or "").strip().partition("\n")[0]
        table.add_row(escape(tool.name), escape(_signature(tool.input_schema or {})), escape(first))
    Console(stderr=True).print(table)
    sys.stderr.flush()
    click.echo(mapping, nl=False)


def _signature(schema: dict[str, Any]) -> str:
    required = schema.get("required") or ()
    named = (schema.get("properties") or {}).items()
    return ", ".join(f"{name}{'*' * (name in required)}: {_type(inner)}" for name, inner in named)


def _type(schema: dict[str, Any]) -> str:
    """As its schema says; of several alternatives all."""
    if "type" in schema:
        kind = schema["type"]
        return "|".join(kind) if isinstance(kind, list) else str(kind)
    return "|".join(_type(inner) for inner in schema.get("anyOf", ())) or "any"
