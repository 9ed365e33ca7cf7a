"""What a run cannot do without: embedding every text once, and what the system itself does with ready vectors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from forget_datasets.forgeteval import TOP_K
from forget_datasets.rows import GeneratedCase
from forget_eval import guest, policies
from forget_eval.isolation import selection

Vectors = Mapping[str, Any]


def unique_texts(cases: Iterable[GeneratedCase]) -> list[str]:
    """Every text that a run embeds, once."""
    from forget_eval.forgeteval import texts

    return list(dict.fromkeys(text for case in cases for text in texts(case)))


@contextmanager
def alone(system: str, vectors: Vectors) -> Iterator[Callable[[Iterable[GeneratedCase]], None]]:
    """What plays cases on a system whose vectors are ready: on the package of Lethe, else through the adapter.

    Everything that is done once, such as imports, is done before the block begins.
    """
    if system == "lethe":
        yield _lethe(vectors)
        return
    memory = selection.select(system, _Ready(vectors))

    def play(cases: Iterable[GeneratedCase]) -> None:
        for case in cases:
            _play(memory, case)

    try:
        yield play
    finally:
        guest.close(memory, system)


def one_by_one(system: str, cases: Iterable[GeneratedCase], embed: Any) -> None:
    """The same in a plain loop, in which every text is embedded when the system asks for it, and alone."""
    memory = selection.select(system, _Singly(embed))
    try:
        for case in cases:
            memory.reset()
            for fact in case.setup_facts:
                memory.inscribe(fact)
            _mutate_and_ask(memory, case)
    finally:
        guest.close(memory, system)


class _Ready:
    """Looks vectors up."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._some = next(iter(vectors.values()))  # for a text by which an adapter finds out how long a vector is
        self.dim = len(self._some)

    def __call__(self, texts: Sequence[str]) -> Any:
        return np.stack([self._vectors.get(text, self._some) for text in texts])


class _Singly:
    """Embeds each text alone, as often as it comes."""

    def __init__(self, embed: Any) -> None:
        self._embed = embed
        self.dim = embed(["width"]).shape[1]

    def __call__(self, texts: Sequence[str]) -> Any:
        return np.concatenate([self._embed([text]) for text in texts])


def _play(memory: Any, case: GeneratedCase) -> None:
    memory.reset()
    if hasattr(memory, "inscribe_many"):
        memory.inscribe_many(case.setup_facts)
    else:
        for fact in case.setup_facts:
            memory.inscribe(fact)
    _mutate_and_ask(memory, case)


def _mutate_and_ask(memory: Any, case: GeneratedCase) -> None:
    for op, *arguments in case.mutations:
        getattr(memory, op)(*arguments)
    for query in _asked(case):
        memory.recall_texts(query, k=TOP_K)


def _asked(case: GeneratedCase) -> Sequence[str]:
    leaks = [probe.query for probe in case.probes if probe.kind == "leak"]
    return [case.final_query, *(probe.query for probe in case.probes), *leaks]


def _lethe(vectors: Vectors) -> Callable[[Iterable[GeneratedCase]], None]:
    from forget_eval.adapters.lethe import _load

    package = _load()
    ready = {text: vector.tolist() for text, vector in vectors.items()}

    def make() -> Any:
        return package.Lethe(
            ":memory:",
            vector_dim=len(next(iter(ready.values()))),
            embedder=ready.__getitem__,
            embedder_batch=lambda texts: [ready[text] for text in texts],
        )

    return lambda cases: _lethe_cases(make, cases)


def _lethe_cases(make: Callable[[], Any], cases: Iterable[GeneratedCase]) -> None:
    for case in cases:
        store = make()
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
        for query in _asked(case):
            store.recall(query, k=TOP_K)
        store.close()
