"""The steps behind the commands: build a dataset, make the systems, run one on the other."""

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forget_datasets.errors import UserError, unknown
from forget_datasets.forgeteval import TOP_K
from forget_datasets.rows import GeneratedCase
from forget_eval import embedding, forgeteval, guest, runs
from forget_eval.data import Dataset
from forget_eval.isolation import selection
from forget_eval.isolation.selection import Isolation
from forget_eval.parallel.seats import CaseSeat, Seat
from forget_eval.parallel.stage import Stage, Stages, stage
from forget_eval.progress import progress
from forget_eval.runner import Options

TASKS = ("forgeteval", "membehave")


@dataclass(frozen=True)
class Shape:
    """Which ForgetEval cases a bench builds. Without `n_per_family` it is the hand-made ones."""

    lang: str = "en"
    n_per_family: int | None = None
    distractors: int = 4
    seed: int = 42
    stress: bool = False

    @property
    def config(self) -> str:
        """The config of the dataset that is run."""
        if self.n_per_family is None:
            return "handmade"
        return f"{self.lang}-stress" if self.stress else self.lang

    @property
    def label(self) -> str:
        """Names the folder where a bench puts its runs, as "en-50x4"."""
        if self.n_per_family is None:
            return self.config
        seed = "" if self.seed == Shape.seed else f"-seed{self.seed}"
        return f"{self.config}-{self.n_per_family}x{self.distractors}{seed}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the builder."""
        handmade = self.n_per_family is None
        return {
            "langs": [] if handmade else [self.lang],
            "n_per_family": self.n_per_family or 1,
            "distractors": self.distractors,
            "seed": self.seed,
            "stress": self.stress,
        }


def shape(lang: str, scale: int | None, profile: str | None, distractors: int | None, seed: int | None) -> Shape:
    """The cases that the flags of `bench` ask for.

    Raises:
        UserError: an unknown language or profile, or flags that contradict each other.
    """
    from forget_datasets.forgeteval import PROFILES, languages

    if lang not in languages.available():
        raise unknown("language", lang, languages.available())
    if profile is not None and profile not in PROFILES:
        raise unknown("profile", profile, PROFILES)
    if scale is None and profile is None:
        return _handmade(lang, distractors, seed)
    n_per_family, usual = PROFILES[profile] if profile else (scale, Shape.distractors)
    return Shape(
        lang,
        n_per_family if scale is None else scale,
        usual if distractors is None else distractors,
        Shape.seed if seed is None else seed,
        profile == "stress",
    )


def build_data(folder: Path, wanted: Shape) -> None:
    """Builds the dataset into `folder`, or finds the same there.

    Raises:
        UserError: the folder holds another dataset.
        EnvironmentFault: the disk refuses.
    """
    from forget_datasets import manifest
    from forget_datasets.build import build_forgeteval

    print(f"building {folder}", file=sys.stderr)
    if not os.path.exists(folder / manifest.MANIFEST):
        build_forgeteval(folder, **wanted.parameters)
        return
    there = manifest.read(folder)
    had = there.get("parameters", {})
    differences = [
        f"{name} {had.get(name)}, not {value}" for name, value in wanted.parameters.items() if had.get(name) != value
    ]
    # A newer version of this package may write other cases, and the runs beside the dataset are of the old ones.
    if not differences and {name: c.get("content_hash") for name, c in there["configs"].items()} != _hashes(wanted):
        differences = ["the same parameters by another version, whose cases differ"]
    if differences:
        raise UserError(f"{folder} was built with {'; '.join(differences)}. Name another --out.")


def _hashes(wanted: Shape) -> dict[str, str]:
    """The content hash of every config that is to be built, made in memory: which is quick, and leaves nothing."""
    from forget_datasets.forgeteval import handmade, stream_cases

    hashes = {"handmade": _hash(handmade.load())}
    if wanted.n_per_family is not None:
        cases = stream_cases(wanted.n_per_family, wanted.seed, wanted.distractors, wanted.lang)
        hashes[wanted.config] = _hash(cases)
    return hashes


def _hash(cases: Iterable[GeneratedCase]) -> str:
    from forget_datasets.rows import RowHash

    digest = RowHash()
    for case in cases:
        digest.add(case.to_row())
    return digest.hexdigest()


def embedder_for(
    names: Sequence[str],
    embedder: str | None,
    lang: str,
    isolation: Isolation | None = None,
    wants: Callable[[str, Isolation | None], bool] = selection.wants_embedder,
) -> "embedding.Embedder | None":
    """The embedder that the adapters share; None, and nothing is loaded, if none of them takes one.

    Args:
        names: of the adapters; all are looked up before anything is loaded.
        embedder: its name; None for that of the language.
        lang: of the texts.
        isolation: of the adapters.
        wants: whether the adapter of a name takes an embedder.

    Raises:
        UserError: an unknown adapter or embedder, a missing package, or an embedder that fails.
        EnvironmentFault: a worker cannot be started that finds out.
    """
    wanted = [wants(name, isolation) for name in names]
    if any(wanted):
        return embedding.load(embedder, lang)
    embedding.refuse_or_ignore(embedder)
    return None


def require_all(names: Sequence[str], embed: "embedding.Embedder | None", isolation: Isolation | None = None) -> None:
    """Makes every adapter but the first, so that one that cannot be made is found before the first has run.

    Raises:
        UserError: an adapter that cannot be made.
    """
    require_seats([CaseSeat(name, TOP_K, isolation) for name in names[1:]], embed)


def require_seats(seats: Iterable[Seat[Any]], embed: "embedding.Embedder | None") -> None:
    """Makes every system, and closes it. Raises UserError for one that cannot be made."""
    for seat in seats:
        guest.close(seat.take(embed).played, f"adapter '{seat.name}'")


def run_adapter(
    dataset: Dataset,
    name: str,
    folder: Path,
    embed: "embedding.Embedder | None",
    k: int = TOP_K,
    force: bool = False,
    isolation: Isolation | None = None,
    workers: int = 1,
    staged: Stages = stage,
) -> int:
    """Runs an adapter on a ForgetEval config, or goes on with a run that was cut off; returns how many cases it played.

    Args:
        dataset: opened and checked.
        name: of the adapter.
        folder: of the run.
        embed: is handed to an adapter whose constructor takes it.
        k: how many texts a query may recall.
        force: whether a run that is there is started over.
        isolation: whether the adapter gets a process of its own, and its limits.
        workers: processes that play side by side, if the adapter may run in several. The transcripts are the same.
        staged: where they play, if not on this machine.

    Raises:
        UserError: an unknown adapter, or the folder holds a run with other parameters.
        EnvironmentFault: the disk refuses; what was written is whole, and the same call goes on from there.
    """
    shared = embed if selection.wants_embedder(name, isolation) else None
    count = min(max(1, dataset.n), workers if workers == 1 or selection.may_be_several(name, isolation) else 1)
    with staged(CaseSeat(name, k, isolation), shared, count) as players:
        manifest = runs.describe(folder, dataset, players.adapter, shared, k)
        return play(players, dataset.cases(), folder, manifest, Options(forgeteval.texts, shared), force)


def play(
    players: Stage, rows: Iterable[Any], folder: Path, manifest: runs.Manifest, how: Options[Any], force: bool
) -> int:
    """Plays what a manifest describes, or goes on with it; returns how many rows were played.

    Args:
        players: who plays; the manifest is told where.
        rows: all of the dataset.
        folder: of the run.
        manifest: as `runs.describe` makes it.
        how: embedding and the size of chunks; a progress bar is added.
        force: whether a run that is there is started over.

    Raises:
        UserError: the folder holds a run with other parameters, or a system or the embedder ends the run.
        EnvironmentFault: the disk refuses, or a model is down; what was written is whole.
    """
    manifest["played"] = players.played
    name, n = manifest["adapter"]["name"], manifest["dataset"]["n"]
    with runs.opened(folder, manifest, force) as writer, progress(name, n, len(writer.done)) as watch:
        return players.run(rows, writer, replace(how, watch=watch))


def _handmade(lang: str, distractors: int | None, seed: int | None) -> Shape:
    if lang != "en":
        raise UserError(f"the hand-made cases are English. For '{lang}' add --scale N or --profile standard.")
    if distractors is not None or seed is not None:
        warnings.warn("the hand-made cases have no --distractors and no --seed: both are ignored.", stacklevel=2)
    return Shape()
