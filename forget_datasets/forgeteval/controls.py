"""Controls: what four memories that are told the case would answer. They bound every honest result.

By construction, strict: oracle passes every case, the other three none, cut at k or not.
"""

from collections.abc import Callable, Sequence

from forget_datasets.rows import GeneratedCase
from forget_datasets.verdicts import Check, spec_reasons, visible_failures

Ask = Callable[[Check], list[str]]
"""A control that was told a case: asked something, it answers. All its answers hold the same texts in some order."""

_Text = tuple[str, str]  # as it is, and its lower case
Outcome = tuple[bool, bool, bool, bool]
"""Whether a control passes a case: the spec's rule and the strict one with answers cut, then both uncut."""


def null(case: GeneratedCase) -> Ask:
    """A store that returns nothing."""
    return lambda need: []


def keep_all(case: GeneratedCase) -> Ask:
    """A store that ignores every mutation: setup facts and new texts, those with a forbidden string first."""
    holding, others = _parted(case.must_not_contain, _told_texts(case))
    texts = [text for text, _ in holding + others]
    return lambda need: texts


def wipe_all(case: GeneratedCase) -> Ask:
    """A store that empties itself on any mutation; only what the last supersede wrote is left."""
    held = list(case.mutations[-1][2:]) if case.mutations else []
    return lambda need: held


def oracle(case: GeneratedCase) -> Ask:
    """A store that kept exactly the survivors; those with a string that the query needs come first."""
    _, kept = _parted(case.must_not_contain, _told_texts(case))

    def ask(need: Check) -> list[str]:
        holding, others = _parted(need.must_contain, kept)
        return [text for text, _ in holding + others]

    return ask


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
    """Both verdicts. Whoever fails the spec's rule fails strictly; and asked again, a control answers the same.

    An answer that nothing was cut from holds what every other holds, in whatever order, and stands for all.
    """
    final = ask(case)[:k]
    if spec_reasons(case, final):
        return False, False
    if visible_failures(case, final):
        return True, False
    whole = k is None or len(final) < k
    return True, not any(visible_failures(probe, final if whole else ask(probe)[:k]) for probe in case.probes)


def _told_texts(case: GeneratedCase) -> list[_Text]:
    new = [text for mutation in case.mutations for text in mutation[2:]]
    return [(text, text.lower()) for text in (*case.setup_facts, *new)]


def _parted(strings: Sequence[str], texts: list[_Text]) -> tuple[list[_Text], list[_Text]]:
    """The texts that hold any of the strings, and the others."""
    if not strings:
        return [], texts
    if len(strings) == 1:  # by far the most; and this runs ten times a case
        sought = strings[0].lower()
        return [text for text in texts if sought in text[1]], [text for text in texts if sought not in text[1]]
    wanted = [s.lower() for s in strings]
    parts: tuple[list[_Text], list[_Text]] = ([], [])
    for text in texts:
        parts[not any(s in text[1] for s in wanted)].append(text)
    return parts
