"""The rules by which an answer is judged. Build and scorer share them, so both see the same right and wrong."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from forget_datasets.rows import GeneratedCase


class Reason(StrEnum):
    """Why a case failed."""

    STALE = "stale"  # a forbidden string surfaced on the final query
    LOST = "lost"  # a required string did not
    LEAK = "leak"  # a forbidden string surfaced on a probe
    COLLATERAL = "collateral"  # a survivor is gone


class Check(Protocol):
    """What is asked of the texts recalled for one query."""

    @property
    def must_contain(self) -> Sequence[str]: ...
    @property
    def must_not_contain(self) -> Sequence[str]: ...


def failures(need: Check, texts: Sequence[str]) -> list[Reason]:
    """STALE if the texts hold anything forbidden, LOST if anything required is missing; empty is a pass.

    The texts are joined by spaces and compared with `.lower()` (ForgetEval spec, "The run loop").
    """
    blob = " ".join(texts).lower()
    reasons = []
    if any(s.lower() in blob for s in need.must_not_contain):
        reasons.append(Reason.STALE)
    if any(s.lower() not in blob for s in need.must_contain):
        reasons.append(Reason.LOST)
    return reasons


def spec_reasons(case: GeneratedCase, final: Sequence[str]) -> list[Reason]:
    """The spec's rule: the final query alone decides. Empty is a pass."""
    return failures(case, final)


def strict_reasons(
    case: GeneratedCase,
    final: Sequence[str],
    probes: Sequence[Sequence[str]],
    again: Sequence[Sequence[str]],
) -> list[Reason]:
    """The strict rule: the final query, every probe, and every leak probe once more. Empty is a pass.

    Args:
        case: the row.
        final: texts recalled for the final query.
        probes: texts recalled for each of `case.probes`, in order.
        again: texts recalled for each leak probe, in order, asked after all probes.

    Raises:
        ValueError: the number of answers is not that of the probes.
    """
    leaks = [probe for probe in case.probes if probe.kind == "leak"]
    reasons = set(failures(case, final))
    asked = [*zip(case.probes, probes, strict=True), *zip(leaks, again, strict=True)]
    for probe, texts in asked:
        found = failures(probe, texts)
        if Reason.STALE in found:
            reasons.add(Reason.LEAK)
        if Reason.LOST in found:
            reasons.add(Reason.COLLATERAL)
    return [reason for reason in Reason if reason in reasons]
