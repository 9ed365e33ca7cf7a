"""Runs of MemBehave against their floor, and scoring of both benchmarks."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from forget_datasets.membehave import TRIPLETS
from forget_eval import embedding, transcripts

from .clock import apart, cache, command, seconds
from .page import Table

_SHARE = 5  # of the texts one in so many is enough to know how long all of them take
_FLOOR = (
    "The floor is one batched embedding of the unique texts (of every 5th, times 5), and what the transcripts of the"
    " warm run say that the system took."
)


def membehave(systems: Sequence[str] = ("reference", "lethe"), triplets: int = TRIPLETS) -> Iterator[Table]:
    """All items against their floor, cold for the first system and warm for all, and scoring them."""
    from forget_eval.data import open_dataset
    from forget_eval.membehave.bench import items
    from forget_eval.membehave.replay import texts

    rows = list[Sequence[object]]()
    with TemporaryDirectory() as name:
        folder = Path(name)
        command("forget-datasets", "build", "membehave", "--triplets", triplets, "--out", folder / "data")
        dataset = open_dataset(str(folder / "data"), "membehave", "default")
        unique = list(dict.fromkeys(text for item in items(dataset) for text in texts(item)))
        embed = embedding.load("minilm-int8", cache=False)
        embed(["what is loaded once"])
        embedded = _SHARE * seconds(lambda: embed(unique[::_SHARE]))
        for system in systems:
            warm = f"warm-{system}"
            runs = [warm] if rows else ["cold", warm]
            took, peak = apart(_played, system, folder, runs)
            inside = _inside(folder / warm)
            cold = ("", "") if rows else (f"{took[0]:.1f}", f"{took[0] / (embedded + inside):.2f}")
            rows.append(
                (system, f"{embedded:.1f}", f"{inside:.1f}", *cold, f"{took[-1]:.1f}", f"{took[-1] / inside:.2f}",
                 "60" if system == "reference" else "", f"{peak:.0f}")
            )  # fmt: skip
        scored = _scored(folder / "cold")
    columns = (
        "system", "floor: embedding, s", "floor: system, s", "cold, s", "× floor", "warm, s", "× system's floor",
        "goal, s", "peak MB",
    )  # fmt: skip
    yield Table(f"MemBehave, {dataset.n} items, minilm-int8", columns, rows, _FLOOR)
    yield Table("Scoring of MemBehave", ("what", "seconds", "goal"), [(f"{dataset.n} items", f"{scored:.2f}", "2")])


def _played(system: str, folder: Path, runs: Sequence[str]) -> list[float]:
    """Seconds of runs of all items, one after the other."""
    from forget_eval.data import open_dataset
    from forget_eval.membehave.bench import run_system
    from forget_eval.membehave.systems import Settings

    dataset = open_dataset(str(folder / "data"), "membehave", "default")

    def run(out: str) -> None:
        run_system(dataset, system, folder / out, embedding.load("minilm-int8"), Settings())

    with cache(str(folder / "cache")):
        return [seconds(partial(run, out)) for out in runs]


def _inside(run: Path) -> float:
    """Seconds that the system itself took, as the transcripts of a run have them."""
    return sum(sum(answer["seconds"].values()) for answer in transcripts.read(run / transcripts.FILE))


def scoring() -> Iterator[Table]:
    """A ForgetEval run of 1,000 cases, scored after imports."""
    with TemporaryDirectory() as folder:
        data, out = Path(folder, "data"), Path(folder, "run")
        command("forget-datasets", "build", "forgeteval", "--lang", "en", "--profile", "full", "--out", data)
        command(
            "forget-eval", "run", "forgeteval", "--data", data, "--config", "en", "--adapter", "oracle", "--out", out
        )
        yield Table("Scoring", ("what", "seconds", "goal"), [("1,000 cases", f"{_scored(out):.2f}", "1")])


def _scored(run: Path) -> float:
    """The second of two scorings, so that nothing is imported in it; dataset and transcripts are read in both."""
    from forget_eval.scores import score

    score(run)
    return seconds(lambda: score(run))
