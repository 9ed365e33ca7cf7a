"""What a requirement file wants beside packages: pip's --no-deps, a package of another index, and source distributions.

Three more comments that this project reads. "# pip: --no-deps" says that the file is whole, and that pip shall not look
for what its packages ask for. "# first: NAME==VERSION --extra-index-url URL" has a package installed before the others,
without what it asks for: the build of that index, or the usual one if it cannot be reached. "# source: NAME==VERSION
--hash=sha256:…" names a source distribution, whose content an environment keeps in its folder `sources`: some hold what
no wheel does. Each is one line, and one that only begins like them is refused: pip would pass over it.
"""

import re
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

from forget_datasets.errors import EnvironmentFault, UserError

FOLDER = "sources"
_NO_DEPS = re.compile(r"^#\s*pip:\s*--no-deps\b", re.MULTILINE)
_FIRST = re.compile(r"^#\s*first:\s*([\w.-]+==\S+)\s+--extra-index-url\s+(\S+)\s*$", re.MULTILINE)
_SOURCE = re.compile(r"^#\s*source:\s*([\w.-]+)(==\S+\s+--hash=sha256:[0-9a-f]{64})\s*$", re.MULTILINE)
_FORMS = {
    "requires-python": (re.compile(r"#\s*requires-python:"), "# requires-python: >=3.12"),
    "pip": (_NO_DEPS, "# pip: --no-deps"),
    "first": (_FIRST, "# first: NAME==VERSION --extra-index-url URL"),
    "source": (_SOURCE, "# source: NAME==VERSION --hash=sha256:… (64 hexadecimal digits)"),
}
_BEGINNING = re.compile(
    r"\s*#+\s*(?:(requires[-_ ]python|python[-_ ]requires)|(pip|first|source))\s*(?::|--|[<>=~!]|[\w.-]+==)",
    re.IGNORECASE,
)


def check(content: str, path: Path) -> None:
    """Raises UserError for a line of a requirement file that nearly is one of the four, in whatever case or marks."""
    for number, line in enumerate(content.splitlines(), start=1):
        begun = _BEGINNING.match(line)
        if begun is None:
            continue
        pattern, form = _FORMS["requires-python" if begun[1] else begun[2].lower()]
        if not pattern.match(line):
            raise UserError(f"{path}, line {number}: '{line}' is not understood. Write as in: {form}")


def options(content: str) -> list[str]:
    """Of `pip install`, for a requirement file of this content."""
    return ["--no-deps"] if _NO_DEPS.search(content) else []


def first(content: str, pip: Sequence[str]) -> list[list[str]]:
    """The commands that come before the `pip install` of a requirement file of this content."""
    named = ["--no-deps", "--extra-index-url"]
    return [[*pip, "install", "--no-input", *named, index, package] for package, index in _FIRST.findall(content)]


def fetch(content: str, folder: Path, pip: Sequence[str], run: Callable[[list[str]], None]) -> None:
    """Downloads the source distributions that a requirement file of this content names, and unpacks them.

    Args:
        content: of the file.
        folder: of the environment.
        pip: the command that is the environment's pip.
        run: runs a command to its end, and raises EnvironmentFault if that fails; pip fails if a hash is another.

    Raises:
        EnvironmentFault: what came cannot be unpacked.
        OSError: the disk refuses.
    """
    for name, pin in _SOURCE.findall(content):
        sources = folder / FOLDER
        sources.mkdir(exist_ok=True)
        wanted = sources / f"{name}.txt"
        wanted.write_text(f"{name}{pin}\n", encoding="utf-8")
        hashes = ["--require-hashes", "--requirement", str(wanted)]
        run([*pip, "download", "--no-input", "--no-deps", "--no-binary", name, *hashes, "--dest", str(sources)])
        for archive in sources.glob("*.tar.gz"):
            _unpack(archive)
            archive.unlink()


def _unpack(archive: Path) -> None:
    try:
        with tarfile.open(archive) as file:
            file.extraction_filter = getattr(tarfile, "data_filter", None)  # which Debian's 3.11 lacks
            file.extractall(archive.parent)
    except tarfile.TarError as error:
        raise EnvironmentFault(f"{archive} cannot be unpacked: {error}") from error
