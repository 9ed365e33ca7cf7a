"""Measures how fast the project is, and how well an ordinary store can do; prints Markdown tables.

Wall times, of one process, on whatever else the machine is doing: read ratios first. Nothing here is a test.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from forget_datasets.forgeteval import PROFILES, TOP_K, generate, languages
from forget_datasets.rows import GeneratedCase
from forget_datasets.verdicts import strict_reasons


@click.group(invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """Print all figures, or those of one command."""
    if context.invoked_subcommand is None:
        for command in (startup, generation, forgeteval, membehave):
            context.invoke(command)


@main.command()
def startup() -> None:
    """How long --help takes (best of five)."""
    print("\n| command | seconds | goal |\n|---|---|---|")
    for name in ("forget-eval", "forget-datasets"):
        program = Path(sys.executable).with_name(name)
        took = min(
            seconds(lambda p=program: subprocess.run([p, "--help"], check=True, capture_output=True)) for _ in range(5)
        )
        print(f"| {name} --help | {took:.2f} | 0.40 |")


@main.command()
def isolation() -> None:
    """What a call costs more in a worker than in this process."""
    from isolation_overhead import overhead

    print("\n| call in a worker, over the same in process | median ms | 95% ms | goal, median |\n|---|---|---|---|")
    for name, (middle, high) in overhead().items():
        print(f"| {name} | {middle:.3f} | {high:.3f} | 0.3 |")


@main.command()
def reupload() -> None:
    """What a change of one row uploads again to the Hub, where only chunks that it lacks are sent."""
    from reupload import table

    with TemporaryDirectory() as folder:
        data = Path(folder, "data")
        run_command("forget-datasets", "build", "forgeteval", "--lang", "en", "--n-per-family", 2000, "--out", data)
        print(f"\n{table(data, 'forgeteval', 'en', 'test')}")


@main.command()
def generation() -> None:
    """Cases made and proven a second, on one core."""
    print("\n| language | cases/s, made and proven | goal |\n|---|---|---|")
    for tag in languages.available():
        generate(4, lang=tag)
        took = min(seconds(lambda t=tag: generate(400, lang=t)) for _ in range(3))
        print(f"| {tag} | {2000 / took:,.0f} | 5,000 |")


@main.command()
@click.option("--profile", default="full", show_default=True, type=click.Choice(list(PROFILES)))
def forgeteval(profile: str) -> None:
    """Lethe with MiniLM on English, cold and warm, against the floor: embedding once, and Lethe's own operations."""
    from forget_eval import embedding

    size = PROFILES[profile]
    cases = generate(size.n_per_family, distractors=size.distractors)
    texts = unique_texts(cases)
    with TemporaryDirectory() as folder:
        data = Path(folder, "data")
        run_command("forget-datasets", "build", "forgeteval", "--lang", "en", "--profile", profile, "--out", data)
        embed = embedding.load("minilm-int8", cache=False)
        vectors: dict[str, Any] = {}
        embed_seconds = seconds(lambda: vectors.update(zip(texts, embed(texts), strict=True)))
        lethe_seconds = seconds(lambda: lethe_alone(cases, vectors))
        os.environ["FORGET_EVAL_CACHE"] = str(Path(folder, "cache"))
        cold = seconds(lambda: our_run(data, Path(folder, "cold")))
        warm = seconds(lambda: our_run(data, Path(folder, "warm")))
    floor = embed_seconds + lethe_seconds
    print(f"\n{len(cases)} cases, {len(texts)} texts.\n\n| what | seconds | × floor | goal |\n|---|---|---|---|")
    print(
        f"| floor: embedding | {embed_seconds:.1f} | | |\n| floor: Lethe on ready vectors | {lethe_seconds:.1f} | | |"
    )
    print(f"| cold | {cold:.1f} | {cold / floor:.2f} of {floor:.1f} | 1.30 |")
    print(f"| warm | {warm:.1f} | {warm / lethe_seconds:.2f} of {lethe_seconds:.1f} | 1.30 |")


@main.command()
def membehave() -> None:
    """Building 126 items, and the reference store on them, warm."""
    from forget_eval import embedding
    from forget_eval.data import open_dataset
    from forget_eval.membehave.bench import run_system
    from forget_eval.membehave.systems import Settings

    with TemporaryDirectory() as folder:
        data = Path(folder, "data")
        build = seconds(lambda: run_command("forget-datasets", "build", "membehave", "--out", data))
        os.environ["FORGET_EVAL_CACHE"] = str(Path(folder, "cache"))
        dataset = open_dataset(str(data), "membehave", "default")

        def run(out: str) -> None:
            run_system(dataset, "reference", Path(folder, out), embedding.load("minilm-int8"), Settings())

        cold, warm = (seconds(lambda o=out: run(o)) for out in ("cold", "warm"))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print("\n| what | seconds | goal |\n|---|---|---|")
    print(f"| build, 126 items of both configs | {build:.1f} | 30 |\n| reference store, cold | {cold:.1f} | |")
    print(f"| reference store, warm | {warm:.1f} | 90 |\n\nPeak memory of the build: {peak:.0f} MB (goal: 1,000).")


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


def lethe_alone(cases: Iterable[GeneratedCase], vectors: dict[str, Any]) -> None:
    """What a run asks of Lethe, called directly on vectors that are ready."""
    from forget_eval import policies
    from forget_eval.adapters.lethe import _load

    package = _load()
    ready = {text: vector.tolist() for text, vector in vectors.items()}
    for case in cases:
        store = package.Lethe(
            ":memory:",
            vector_dim=384,
            embedder=ready.__getitem__,
            embedder_batch=lambda texts: [ready[t] for t in texts],
        )
        known = dict(zip(store.inscribe_many(case.setup_facts), case.setup_facts, strict=True))
        for op, query, *new in case.mutations:
            if op == "purge":
                store.surrender([id for id, text in known.items() if query in text], mode="purge")
                continue
            found = store.recall(query, k=1 if op == "supersede" else policies.POOL, hybrid=False)
            if op == "supersede":
                store.surrender({"old": found[0].memory.id, "new": new[0]}, mode="supersede")
            else:
                count = policies.within_gap([hit.similarity for hit in found])
                store.surrender([hit.memory.id for hit in found[:count]], mode="release")
        leaks = [p.query for p in case.probes if p.kind == "leak"]
        for query in (case.final_query, *(p.query for p in case.probes), *leaks):
            store.recall(query, k=TOP_K)
        store.close()


def our_run(data: Path, out: Path) -> None:
    """What `forget-eval run` does after its imports: open and check the data, load the model, run."""
    from forget_eval import embedding
    from forget_eval.bench import run_adapter
    from forget_eval.data import open_dataset

    dataset = open_dataset(str(data), "forgeteval", "en")
    run_adapter(dataset, "lethe", out, embedding.load("minilm-int8"))


def run_command(program: str, *arguments: object) -> None:
    """One of our commands, quietly."""
    command = [str(Path(sys.executable).with_name(program)), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(done.stderr)


def unique_texts(cases: Iterable[GeneratedCase]) -> list[str]:
    """Every text that a run embeds, once."""
    from forget_eval.forgeteval import texts

    return list(dict.fromkeys(text for case in cases for text in texts(case)))


def seconds(action: Callable[[], Any]) -> float:
    """Wall time of a call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
