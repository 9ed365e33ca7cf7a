"""An ordinary store that deletes perfectly must be able to win: where it cannot, the case is to blame.

The store ranks by the cosine of MiniLM (int8) alone, and keeps each setup fact and new text without a forbidden string.
One that deletes nothing must be found out, also if it answers nothing to questions that look as if they probed it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
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


def test_a_store_that_deletes_nothing_is_found_out_by_its_leak_probes(embed: Embedder) -> None:
    """Each leak query brings the forbidden string among the first ten of everything that was ever stored."""
    cases = generate(4 * CASES, distractors=50)
    vectors = embedded(embed, cases)
    asked, surfaced = Counter[str](), Counter[str]()
    for case in cases:
        for probe in case.probes:
            if probe.kind == "leak":
                asked[case.template] += 1
                surfaced[case.template] += holds(
                    " ".join(nearest(vectors, written(case), probe.query)), probe.must_not_contain
                )
    assert len(asked) == TEMPLATES
    assert min(asked.values()) == CASES
    assert {name: n for name, n in asked.items() if surfaced[name] < 0.98 * n} == {}


Trick = Callable[[str, Sequence[str], float], bool]
"""Whether a store answers nothing to a query, by the query, what it stores, and the cosine of the nearest text."""

TRICKS: dict[str, tuple[Trick, float]] = {
    "none": (lambda query, store, top: False, 0),
    "stands in a stored text": (lambda query, store, top: any(plain(query) in plain(text) for text in store), 0),
    "holds a stored text": (lambda query, store, top: any(plain(text) in plain(query) for text in store), 0),
    "yes or no": (lambda query, store, top: bool(re.match(r"(is|are|do|does|did|has|have|was|can) ", plain(query))), 0),
    "very near to a stored text": (lambda query, store, top: top > 0.9, 0.02),
    "near to a stored text": (lambda query, store, top: top > 0.8, 0.05),
    "all its words in one text": (
        lambda query, store, top: any(long_words(query) <= long_words(t) for t in store),
        0.05,
    ),
    "spells a code": (lambda query, store, top: bool(re.search(r"\d{3}|\d[a-z]|[a-z]\d", query.lower())), 0.02),
}
"""Tricks that know no template, and the share of cases that each may pass strictly."""

ONLY_CODE = {"otp", "verification_code", "flight_cancelled"}
"""Templates with no code that stays: whoever answers no question with a code in it has hidden the one that goes."""


@pytest.mark.parametrize("name", TRICKS)
def test_a_store_that_hides_only_when_it_is_probed_does_not_pass(embed: Embedder, name: str) -> None:
    """It keeps everything, and shows what should have gone to whoever names it; all else it does perfectly."""
    trick, allowed = TRICKS[name]
    cases = [c for c in generate(160, distractors=50) if name != "spells a code" or c.template not in ONLY_CODE]
    vectors = embedded(embed, cases)
    passed = Counter(case.template for case in cases if not archive_fails(case, vectors, trick))
    assert passed.total() <= allowed * len(cases), passed


def archive_fails(case: GeneratedCase, vectors: Vectors, trick: Trick) -> bool:
    store = written(case)
    kept = [text for text in store if not holds(text, case.must_not_contain)]

    def ask(query: str) -> list[str]:
        if trick(query, store, float(max(vectors[text] @ vectors[query] for text in store))):
            return []
        return nearest(vectors, store if holds(query, case.must_not_contain) else kept, query)

    probes = [ask(probe.query) for probe in case.probes]
    again = [ask(probe.query) for probe in case.probes if probe.kind == "leak"]
    return bool(strict_reasons(case, ask(case.final_query), probes, again))


def plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def long_words(text: str) -> set[str]:
    """Its words of four letters and more, without their endings."""
    return {word[:5] for word in plain(text).split() if len(word) > 3}


def written(case: GeneratedCase) -> list[str]:
    """All that was ever written for a case."""
    return [*case.setup_facts, *(text for mutation in case.mutations for text in mutation[2:])]


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
    store = [text for text in written(case) if not holds(text, case.must_not_contain)]
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
