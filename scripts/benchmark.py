"""Measures how fast the project is, and how well an ordinary store can do; prints Markdown tables.

Wall times on whatever else the machine is doing: read ratios first. Nothing here is a test. Without a command all
figures are measured, and kept in docs/performance.md.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
from measures import data, histories, page, playing
from measures.clock import command
from measures.page import Table

from forget_datasets.forgeteval import TOP_K, generate
from forget_datasets.membehave import TRIPLETS
from forget_datasets.rows import GeneratedCase
from forget_datasets.verdicts import strict_reasons

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


@click.group(invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """Measure everything and keep it in docs/performance.md, or print the figures of one command."""
    if context.invoked_subcommand is None:
        measured = (
            data.startup,
            data.generation,
            playing.forgeteval,
            histories.membehave,
            histories.scoring,
            data.building,
        )
        page.keep(PAGE, [table for measure in (*measured, _isolation, _reupload) for table in _shown(measure())])


@main.command()
def startup() -> None:
    """How long --help takes."""
    _print(data.startup())


@main.command()
def generation() -> None:
    """Cases made and proven a second, on one core."""
    _print(data.generation())


@main.command()
@click.option("--lang", default="en", show_default=True)
@click.option("--profile", default="full", show_default=True)
@click.option("--adapter", "systems", multiple=True, default=("lethe",), show_default=True)
def forgeteval(lang: str, profile: str, systems: tuple[str, ...]) -> None:
    """Runs, cold and warm, against the floor: embedding once, and the system's own operations."""
    _print(playing.forgeteval([playing.Plan(lang, profile, systems)]))


@main.command()
@click.option("--triplets", type=int, default=TRIPLETS, show_default=True)
def membehave(triplets: int) -> None:
    """Items of so many triplets on the reference store and Lethe, against the floor, and scoring them."""
    _print(histories.membehave(triplets=triplets))


@main.command()
def scoring() -> None:
    """Scoring a run of 1,000 cases."""
    _print(histories.scoring())


@main.command()
@click.option("--cases", multiple=True, type=int, default=data.BUILDS, show_default=True)
def building(cases: tuple[int, ...]) -> None:
    """Building to Parquet, and reading back."""
    _print(data.building(cases))


@main.command()
def isolation() -> None:
    """What a call costs more in a worker than in this process."""
    _print(_isolation())


@main.command()
def reupload() -> None:
    """What a change of one row uploads again to the Hub, where only chunks that it lacks are sent."""
    _print(_reupload())


@main.command()
@click.option("--lang", default="en", show_default=True, help="Language of the cases.")
@click.option("--per-template", default=200, show_default=True, help="Cases a template.")
@click.option("--distractors", multiple=True, default=(4, 50), show_default=True, help="May be given several times.")
@click.option("--embedder", default=None, help="Embedder.  [default: that of the language]")
def ordinary(lang: str, per_template: int, distractors: tuple[int, ...], embedder: str | None) -> None:
    """How often an exact dense search with perfect deletion fails a case strictly, per template."""
    from forget_eval import embedding

    embed = embedding.load(embedder, lang)
    print(f"\nMisses of {per_template} cases a template, `{lang}`, {embed.name}.\n")
    print("| template | " + " | ".join(f"{d} distractors" for d in distractors) + " |")
    print("|---|" + "---|" * len(distractors))
    missed: dict[str, list[int]] = {}
    for density in distractors:
        for case in generate(4 * per_template, distractors=density, lang=lang):
            row = missed.setdefault(f"{case.family}.{case.template}", [0] * len(distractors))
            row[distractors.index(density)] += bool(perfect_store_fails(case, embed))
    for name, row in missed.items():
        print(f"| {name} | " + " | ".join(map(str, row)) + " |")
    total = np.sum(list(missed.values()), axis=0) / (per_template * len(missed))
    print("| all | " + " | ".join(f"{share:.2%}" for share in total) + " |")


def perfect_store_fails(case: GeneratedCase, embed: Callable[[Sequence[str]], Any]) -> bool:
    """Whether exact cosine search over exactly the survivors misses something."""
    texts = [*case.setup_facts, *(m[2] for m in case.mutations if len(m) > 2)]
    kept = [t for t in texts if not any(s.lower() in t.lower() for s in case.must_not_contain)]
    queries = [case.final_query, *(p.query for p in case.probes)]
    scores = np.asarray(embed(queries)) @ np.asarray(embed(kept)).T
    answers = [[kept[i] for i in np.argsort(-row, kind="stable")[:TOP_K]] for row in scores]
    leaks = [answers[1 + i] for i, p in enumerate(case.probes) if p.kind == "leak"]
    return bool(strict_reasons(case, answers[0], answers[1:], leaks))


def _isolation() -> Iterable[Table]:
    from measures.isolation_overhead import overhead

    rows = [(name, f"{middle:.3f}", f"{high:.3f}", "0.3") for name, (middle, high) in overhead().items()]
    yield Table(
        "Isolation", ("call in a worker, over the same in process", "median ms", "95% ms", "goal, median"), rows
    )


def _reupload() -> Iterable[Table]:
    from measures.reupload import figures

    with TemporaryDirectory() as folder:
        command(
            "forget-datasets", "build", "forgeteval", "--lang", "en", "--n-per-family", 2000, "--out", folder + "/d"
        )
        yield Table("Uploading again", *figures(Path(folder, "d"), "forgeteval", "en", "test"))


def _shown(tables: Iterable[Table]) -> Iterable[Table]:
    for table in tables:
        print(f"\n{table.markdown()}", flush=True)
        yield table


def _print(tables: Iterable[Table]) -> None:
    for _ in _shown(tables):
        pass


if __name__ == "__main__":
    main()
