"""Controls: what four memories that are told the case would answer. They bound every honest result.

By construction, strict: oracle passes every case, the other three none, cut at k or not.
"""

from collections.abc import Callable, Sequence

from forget_datasets.rows import GeneratedCase
from forget_datasets.verdicts import Check, Reason, spec_reasons, strict_reasons

Control = Callable[[GeneratedCase, Check], list[str]]


def null(case: GeneratedCase, need: Check) -> list[str]:
    """A store that returns nothing."""
    return []


def keep_all(case: GeneratedCase, need: Check) -> list[str]:
    """A store that ignores every mutation: setup facts and new texts, those with a forbidden string first."""
    return _first(_holding(case.must_not_contain), [*case.setup_facts, *_new_texts(case)])


def wipe_all(case: GeneratedCase, need: Check) -> list[str]:
    """A store that empties itself on any mutation; only what the last supersede wrote is left."""
    held: list[str] = []
    for mutation in case.mutations:
        held = list(mutation[2:])
    return held


def oracle(case: GeneratedCase, need: Check) -> list[str]:
    """A store that kept exactly the survivors; those with a string that the query needs come first."""
    gone = _holding(case.must_not_contain)
    kept = [text for text in [*case.setup_facts, *_new_texts(case)] if not gone(text)]
    return _first(_holding(need.must_contain), kept)


CONTROLS: dict[str, Control] = {"null": null, "keep-all": keep_all, "wipe-all": wipe_all, "oracle": oracle}


def passes(control: str, case: GeneratedCase, k: int | None) -> tuple[bool, bool]:
    """Whether a control passes a case under the spec's rule and under the strict one; k None does not cut."""
    answer = CONTROLS[control]
    final = answer(case, case)[:k]
    probes = [answer(case, probe)[:k] for probe in case.probes]
    again = [texts for probe, texts in zip(case.probes, probes, strict=True) if probe.kind == "leak"]
    spec: list[Reason] = spec_reasons(case, final)
    return not spec, not strict_reasons(case, final, probes, again)


def _new_texts(case: GeneratedCase) -> list[str]:
    return [text for mutation in case.mutations for text in mutation[2:]]


def _holding(strings: Sequence[str]) -> Callable[[str], bool]:
    lowered = [s.lower() for s in strings]
    return lambda text: any(s in text.lower() for s in lowered)


def _first(preferred: Callable[[str], bool], texts: Sequence[str]) -> list[str]:
    return sorted(texts, key=lambda text: not preferred(text))
