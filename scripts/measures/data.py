"""Start-up, generation, building and reading."""

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from forget_datasets.forgeteval import generate, languages

from .clock import Taken, command, seconds
from .page import Table

BUILDS = (10_000, 100_000, 1_000_000)


def startup() -> Iterator[Table]:
    """How long --help takes."""
    rows = []
    for name in ("forget-eval", "forget-datasets"):
        took = min(command(name, "--help").seconds for _ in range(5))
        rows.append((f"{name} --help", f"{took:.2f}", "0.30"))
    yield Table("Start-up", ("command", "seconds, best of 5", "goal"), rows)


def generation() -> Iterator[Table]:
    """Cases made and proven a second, on one core."""
    rows = []
    for tag in languages.available():
        generate(4, lang=tag)
        took = min(seconds(lambda t=tag: generate(400, lang=t)) for _ in range(3))
        rows.append((tag, f"{2000 / took:,.0f}", "5,000"))
    yield Table("Generation", ("language", "cases/s, made and proven on one core", "goal"), rows)


def building(sizes: Sequence[int] = BUILDS) -> Iterator[Table]:
    """English cases to Parquet by the command, with all CPUs; MemBehave; and reading ForgetEval back."""
    rows, read = list[Sequence[object]](), list[Sequence[object]]()
    for cases in sizes:
        with TemporaryDirectory() as folder:
            data = Path(folder, "data")
            options = ("--lang", "en", "--n-per-family", cases // 5, "--out", data)
            built = command("forget-datasets", "build", "forgeteval", *options)
            goals = ("150", "1,000") if cases == 1_000_000 else ("", "")
            rows.append(_built(f"{cases:,} cases, en", cases, built, *goals))
            if not read or cases == 100_000:
                read = [(f"{cases:,} cases from Parquet into GeneratedCase", _reading(data, cases), "30,000")]
    with TemporaryDirectory() as folder:
        built = command("forget-datasets", "build", "membehave", "--out", Path(folder, "data"))
        rows.append(_built("126 items, both configs", 252, built, "30", "1,000"))
    columns = ("what", "seconds", "goal", "rows/s", "peak MB, all processes", "goal MB")
    yield Table("Building", columns, rows)
    yield Table("Reading", ("what", "cases/s, best of 3", "goal"), read)


def _built(what: str, rows: int, taken: Taken, goal: str, goal_mb: str) -> Sequence[object]:
    return (what, f"{taken.seconds:.1f}", goal, f"{rows / taken.seconds:,.0f}", f"{taken.peak_mb:.0f}", goal_mb)


def _reading(folder: Path, cases: int) -> str:
    from forget_eval.data import open_dataset

    dataset = open_dataset(str(folder), "forgeteval", "en")
    took = min(seconds(lambda: deque(dataset.cases(), maxlen=0)) for _ in range(3))
    return f"{cases / took:,.0f}"
