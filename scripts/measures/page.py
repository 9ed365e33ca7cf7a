"""Tables of figures, and the page that keeps the last of them."""

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


@dataclass(frozen=True)
class Table:
    """Rows of figures under a title; `note` says what they are."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""

    def markdown(self) -> str:
        """The table with its title and note."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        table = "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
        return "\n\n".join(filter(None, (f"### {self.title}", self.note, table)))


def keep(path: Path, tables: Sequence[Table]) -> None:
    """Writes tables into a page, between its marks, in place of those of the last time."""
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    parts = [BEGIN, machine(), *(table.markdown() for table in tables), END]
    path.write_text(before + "\n\n".join(parts) + after, encoding="utf-8")


def machine() -> str:
    """The machine in a sentence."""
    return f"Measured on {', '.join(_machine())}."


def _machine() -> Iterator[str]:
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield f"{cpus} CPUs ({_processor()})"
    yield f"{psutil.virtual_memory().total / 1e9:.0f} GB"
    yield f"{platform.system()} {platform.machine()}"
    yield f"{platform.python_implementation()} {platform.python_version()}"
    if hasattr(os, "getloadavg"):
        yield f"load {os.getloadavg()[2]:.1f} over the last quarter of an hour"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
