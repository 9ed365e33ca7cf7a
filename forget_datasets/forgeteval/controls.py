"""Controls: what four memories that are told the case would answer. They bound every honest result.

By construction, strict: oracle passes every case, the other three none, cut at k or not.
"""

from collections.abc import Callable, Sequence

from forget_datasets.rows import GeneratedCase
from forget_datasets.verdicts import Check, spec_reasons, visible_failures

Ask = Callable[[Check], list[str]]
"""A control that was told a case: asked something, it answers. All its answers hold the same texts in some order."""

Outcome = tuple[bool, bool, bool, bool]
"""Whether a control passes a case: the spec's rule and the strict one with answers cut, then both uncut."""


def null(case: GeneratedCase) -> Ask:
    """A store that returns nothing."""
    return lambda need: []


def keep_all(case: GeneratedCase) -> Ask:
    """A store that ignores every mutation: setup facts and new texts, those with a forbidden string first."""
    texts = _first(case.must_not_contain, _lowered([*case.setup_facts, *_new_texts(case)]))
    return lambda need: texts


def wipe_all(case: GeneratedCase) -> Ask:
    """A store that empties itself on any mutation; only what the last supersede wrote is left."""
    held = list(case.mutations[-1][2:]) if case.mutations else []
    return lambda need: held


def oracle(case: GeneratedCase) -> Ask:
    """A store that kept exactly the survivors; those with a string that the query needs come first."""
    forbidden = [s.lower() for s in case.must_not_contain]
    texts = _lowered([*case.setup_facts, *_new_texts(case)])
    kept = [(text, low) for text, low in texts if not any(s in low for s in forbidden)]
    return lambda need: _first(need.must_contain, kept)


_TOLD: dict[str, Callable[[GeneratedCase], Ask]] = {
    "null": null, "keep-all": keep_all, "wipe-all": wipe_all, "oracle": oracle,
}  # fmt: skip


def _untold(told: Callable[[GeneratedCase], Ask]) -> Callable[[GeneratedCase, Check], list[str]]:
    return lambda case, need: list(told(case)(need))


CONTROLS: dict[str, Callable[[GeneratedCase, Check], list[str]]] = {name: _untold(t) for name, t in _TOLD.items()}
"""What each control answers, uncut, to a query of a case."""


def passes(control: str, case: GeneratedCase, k: int | None) -> tuple[bool, bool]:
    """Whether a control passes a case under the spec's rule and under the strict one; k None does not cut."""
    return _judged(_TOLD[control](case), case, k)


def outcomes(case: GeneratedCase, k: int) -> tuple[Outcome, ...]:
    """How each control, in their order, fares on a case with answers cut at k and not cut."""
    found = []
    for told in _TOLD.values():
        ask = told(case)
        cut = _judged(ask, case, k)
        found.append((*cut, *(cut if len(ask(case)) <= k else _judged(ask, case, None))))
    return tuple(found)


def _judged(ask: Ask, case: GeneratedCase, k: int | None) -> tuple[bool, bool]:
    """Both verdicts. Whoever fails the spec's rule fails strictly; and asked again, a control answers the same."""
    final = ask(case)[:k]
    if spec_reasons(case, final):
        return False, False
    if visible_failures(case, final):
        return True, False
    return True, not any(visible_failures(probe, ask(probe)[:k]) for probe in case.probes)


def _new_texts(case: GeneratedCase) -> list[str]:
    return [text for mutation in case.mutations for text in mutation[2:]]


def _lowered(texts: Sequence[str]) -> list[tuple[str, str]]:
    return [(text, text.lower()) for text in texts]


def _first(strings: Sequence[str], texts: Sequence[tuple[str, str]]) -> list[str]:
    """The texts, each given with its lower case, those that hold any of the strings before the others."""
    if not strings:
        return [text for text, _ in texts]
    wanted = [s.lower() for s in strings]
    rest: list[str] = []
    first: list[str] = []
    for text, low in texts:
        for s in wanted:
            if s in low:
                first.append(text)
                break
        else:
            rest.append(text)
    return first + rest
