"""Runs a module as `python -m` does, without its leaving this machine: `python sealed.py MODULE ARGUMENTS...`

Every connection of Python code to another machine, and every look-up of one's name, is refused as if there were no
network. What is logged below a warning is dropped, for a server that runs long would fill the disk with it. Run as a
script, it imports nothing but the standard library.
"""

import errno
import logging
import runpy
import sys
from ipaddress import ip_address
from typing import Any

_LOOK_UPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_SENDINGS = ("socket.connect", "socket.sendto", "socket.sendmsg")


def refuse_others(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook. Raises OSError for a host that is another machine."""
    if event in _LOOK_UPS:
        host = arguments[0]
    elif event in _SENDINGS and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if not _is_here(host):
        raise OSError(errno.ENETUNREACH, f"sealed off: {host}")


def _is_here(host: str | bytes | None) -> bool:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host or "localhost"
    if name in ("localhost", "0.0.0.0", "::"):
        return True
    try:
        return ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


if __name__ == "__main__":
    sys.addaudithook(refuse_others)
    logging.disable(logging.INFO)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
