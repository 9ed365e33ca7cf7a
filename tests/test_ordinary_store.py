"""An ordinary store that deletes perfectly must be able to win: where it cannot, the case is to blame.

The store ranks by the cosine of MiniLM (int8) alone, and keeps each setup fact and new text without a forbidden string.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pytest
from numpy.typing import NDArray

from forget_datasets.forgeteval import TOP_K, generate
from forget_datasets.rows import FAMILIES, GeneratedCase
from forget_datasets.verdicts import strict_reasons
from forget_eval import embedding
from forget_eval.embedding import Embedder

CASES = 200  # of each template
TEMPLATES = 4 * len(FAMILIES)
Vectors = dict[str, NDArray[np.float32]]


@dataclass
class Tally:
    """What became of the cases of one template, and which mutation queries ranked a fact that goes first."""

    cases: int = 0
    missed: int = 0
    supersedes: int = 0
    superseded: int = 0
    releases: int = 0
    released: int = 0


@pytest.fixture(scope="module")
def embed() -> Embedder:
    """The offline default, with its cache: the texts are the same in every run."""
    return embedding.load("minilm-int8")


@pytest.mark.parametrize("distractors", [4, 50])
def test_an_ordinary_store_with_perfect_deletion_wins(embed: Embedder, distractors: int) -> None:
    tallies: dict[str, Tally] = defaultdict(Tally)
    cases = generate(4 * CASES, distractors=distractors)
    vectors = embedded(embed, cases)
    for case in cases:
        count(case, vectors, tallies[f"{case.family}.{case.template}"])
    assert {tally.cases for tally in tallies.values()} == {CASES}
    assert len(tallies) == TEMPLATES
    assert all(tally.missed <= 0.02 * CASES for tally in tallies.values()), table(tallies)
    total = summed(tallies.values())
    assert total.missed <= 0.01 * total.cases, table(tallies)
    assert total.superseded >= 0.98 * total.supersedes > 0, table(tallies)
    assert total.released >= 0.98 * total.releases > 0, table(tallies)


def embedded(embed: Embedder, cases: Sequence[GeneratedCase]) -> Vectors:
    """The vector of every text and query of the cases, each computed once."""
    texts = dict.fromkeys(chain.from_iterable(map(words, cases)))
    return dict(zip(texts, embed(list(texts)), strict=True))


def words(case: GeneratedCase) -> Iterable[str]:
    yield from case.setup_facts
    yield case.final_query
    yield from (probe.query for probe in case.probes)
    for _, *texts in case.mutations:
        yield from texts


def count(case: GeneratedCase, vectors: Vectors, tally: Tally) -> None:
    """Asks the perfect store, then replays the mutations to see which fact each of them would touch first."""
    written = [text for mutation in case.mutations for text in mutation[2:]]
    store = [text for text in [*case.setup_facts, *written] if not holds(text, case.must_not_contain)]
    probes = [nearest(vectors, store, probe.query) for probe in case.probes]
    again = [nearest(vectors, store, probe.query) for probe in case.probes if probe.kind == "leak"]
    tally.cases += 1
    tally.missed += bool(strict_reasons(case, nearest(vectors, store, case.final_query), probes, again))
    replay(case, vectors, tally)


def replay(case: GeneratedCase, vectors: Vectors, tally: Tally) -> None:
    store = list(case.setup_facts)
    for op, query, *new in case.mutations:
        named = [s for s in case.must_not_contain if holds(query, [s])]
        goes = [text for text in store if holds(text, named or case.must_not_contain)]
        hit = nearest(vectors, store, query)[0] in goes
        if op == "supersede":
            tally.supersedes, tally.superseded = tally.supersedes + 1, tally.superseded + hit
        elif op == "release":
            tally.releases, tally.released = tally.releases + 1, tally.released + hit
        store = [text for text in store if text not in goes] + new


def holds(text: str, strings: Iterable[str]) -> bool:
    return any(s.lower() in text.lower() for s in strings)


def nearest(vectors: Vectors, store: Sequence[str], query: str) -> list[str]:
    scores = np.stack([vectors[text] for text in store]) @ vectors[query]
    return [store[i] for i in np.argsort(-scores, kind="stable")[:TOP_K]]


def summed(tallies: Iterable[Tally]) -> Tally:
    rows = [(t.cases, t.missed, t.supersedes, t.superseded, t.releases, t.released) for t in tallies]
    return Tally(*(sum(column) for column in zip(*rows, strict=True)))


def table(tallies: dict[str, Tally]) -> str:
    rows = [*tallies.items(), ("all", summed(tallies.values()))]
    lines = [f"{'template':28}{'missed':>12}{'superseded':>14}{'released':>14}"]
    for name, t in rows:
        figures = [f"{t.missed}/{t.cases}", f"{t.superseded}/{t.supersedes}", f"{t.released}/{t.releases}"]
        lines.append("{:28}{:>12}{:>14}{:>14}".format(name, *figures))
    return "\n".join(["", *lines])
