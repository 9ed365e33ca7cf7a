"""Runs the checks of `conformance.py` on one memory: `python conformance_watch.py module:Class REPORT`.

HOME and the current folder are empty ones, TMPDIR a third; each connection is watched. REPORT is written as JSON:
{check: null or why not}.
"""

import ctypes
import json
import multiprocessing
import os
import sys
import traceback
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import conformance

connections: list[str] = []


def usage() -> dict[str, int]:
    """Bytes of memory, threads, open files, bytes in TMPDIR and child processes of this process (Linux).

    Memory that is free and merely not given back yet is given back first: what remains is held.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {
        "memory": pages * os.sysconf("SC_PAGE_SIZE"),
        "threads": len(os.listdir("/proc/self/task")),
        "files": len(os.listdir("/proc/self/fd")),
        "disk": sum(path.stat().st_size for path in conformance.temporary().rglob("*") if path.is_file()),
        "children": len(children) + len(multiprocessing.active_children()),
    }


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Notes each connection of Python code that leaves the machine."""
    if event == "socket.getaddrinfo" and arguments[0] not in (None, "localhost", "127.0.0.1", "::1", b"localhost"):
        connections.append(f"getaddrinfo {arguments[0]}")
    if event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
        if host != "localhost" and not (host[0].isdigit() and ip_address(host).is_loopback) and host != "::1":
            connections.append(f"{event} {arguments[1]}")


def note_sockets() -> None:
    """Notes each open connection of native code that leaves the machine (Linux)."""
    links = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    own = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            remote = fields[2].split(":")[0]
            if fields[9] in own and remote.strip("0") and not remote.endswith(("0100007F", "01000000")):
                connections.append(f"{table} {fields[2]}")


def main(name: str, report: str) -> None:
    """Runs all checks in order."""
    sys.addaudithook(watch)
    sys.path[:0] = [str(conformance.ROOT), str(conformance.ROOT / "eval")]
    bench = conformance.Bench(name, usage, connections)
    results: dict[str, str | None] = {}
    for key, check in conformance.CHECKS.items():
        try:
            check(bench)
            note_sockets()
            results[key] = None
        except Exception:
            results[key] = traceback.format_exc()
        Path(report).write_text(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
