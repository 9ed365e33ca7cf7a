"""Where this project was installed from, so that its optional packages come from there as well."""

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

PROJECT = "forget-datasets"


def requirement(extra: str) -> str:
    """What `pip install` is given for an extra of this project.

    It names the folder that this project was installed from, if it was, and is editable if that was: an index may not
    have it, or another version.
    """
    origin = _origin()
    url = str(origin.get("url", ""))
    if not url.startswith("file:"):
        return f"'{PROJECT}[{extra}]'"
    if origin.get("dir_info", {}).get("editable"):
        return f"-e {shlex.quote(f'{url2pathname(urlsplit(url).path)}[{extra}]')}"
    return f"'{PROJECT}[{extra}] @ {url}'"


def _origin() -> dict[str, Any]:
    """Where pip has installed this project from; empty if an index, or nobody knows."""
    try:
        found = json.loads(distribution(PROJECT).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
