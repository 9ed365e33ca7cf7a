"""The steps behind the commands: build a dataset, make the systems, run one on the other."""

import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from forget_datasets.errors import UserError, unknown
from forget_datasets.forgeteval import TOP_K
from forget_eval import adapters, embedding, forgeteval, runner, runs
from forget_eval.data import Dataset
from forget_eval.progress import progress
from forget_eval.protocols import Embedder, Memory
from forget_eval.transcripts import Writer

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
    if not (folder / manifest.MANIFEST).exists():
        build_forgeteval(folder, **wanted.parameters)
        return
    # Made again, which is quick, and compared: a newer version of this package may write other cases, and the runs
    # beside the dataset are of the old ones.
    with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as fresh:
        here = build_forgeteval(Path(fresh, "data"), **wanted.parameters)
    there = manifest.read(folder)
    had, now = there.get("parameters", {}), here["parameters"]
    differences = [f"{name} {had.get(name)}, not {value}" for name, value in now.items() if had.get(name) != value]
    if differences or _hashes(there) != _hashes(here):
        what = "; ".join(differences) or "the same parameters by another version, whose cases differ"
        raise UserError(f"{folder} was built with {what}. Name another --out.")


def _hashes(manifest: Mapping[str, Any]) -> dict[str, str]:
    return {name: config["content_hash"] for name, config in manifest["configs"].items()}


def embedder_for(names: Sequence[str], embedder: str | None, lang: str) -> "embedding.Embedder | None":
    """The embedder that the adapters share; None, and nothing is loaded, if none of them takes one.

    Raises:
        UserError: an unknown adapter or embedder, or a missing package.
    """
    found = [adapters.find(name) for name in names]
    if not any(map(adapters.wants_embedder, found)):
        return None
    try:
        return embedding.load(embedder, lang)
    except ValueError as error:
        raise UserError(str(error)) from error


def require_all(names: Sequence[str], embed: "embedding.Embedder | None") -> None:
    """Makes every adapter once, so that a missing package is found before the first of them has run.

    Raises:
        UserError: an adapter that cannot be made.
    """
    for name in names:
        _close(_make(name, embed if adapters.wants_embedder(adapters.find(name)) else None))


def run_adapter(
    dataset: Dataset,
    name: str,
    folder: Path,
    embed: "embedding.Embedder | None",
    k: int = TOP_K,
    force: bool = False,
) -> int:
    """Runs an adapter on a ForgetEval config, or goes on with a run that was cut off; returns how many cases it played.

    Args:
        dataset: opened and checked.
        name: of the adapter.
        folder: of the run.
        embed: is handed to an adapter whose constructor takes it.
        k: how many texts a query may recall.
        force: whether a run that is there is started over.

    Raises:
        UserError: an unknown adapter, or the folder holds a run with other parameters.
        EnvironmentFault: the disk refuses; what was written is whole, and the same call goes on from there.
    """
    shared = embed if adapters.wants_embedder(adapters.find(name)) else None
    memory = _make(name, shared)
    try:
        runs.begin(folder, runs.describe(folder, dataset, memory, shared, k), force)
        with (
            Writer(folder / runs.TRANSCRIPTS) as writer,
            progress(name, dataset.n, len(writer.done)) as watch,
        ):
            replay = partial(forgeteval.replay, memory=memory, k=k)
            return runner.run(dataset.cases(), replay, writer, texts=forgeteval.texts, embed=shared, watch=watch)
    finally:
        _close(memory)


def _handmade(lang: str, distractors: int | None, seed: int | None) -> Shape:
    if lang != "en":
        raise UserError(f"the hand-made cases are English. For '{lang}' add --scale N or --profile standard.")
    if distractors is not None or seed is not None:
        warnings.warn("the hand-made cases have no --distractors and no --seed: both are ignored.", stacklevel=2)
    return Shape()


def _make(name: str, embed: Embedder | None) -> Memory:
    try:
        return adapters.load(name, embed)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"adapter '{name}' cannot be made: {type(error).__name__}: {error}") from error


def _close(memory: Memory) -> None:
    """Lets go of what the memory holds. Its answers are written; a failure here changes none of them."""
    close = getattr(memory, "close", None)
    if close is not None:
        with suppress(Exception):
            close()
