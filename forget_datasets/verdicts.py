"""The rules by which an answer is judged. Build and scorer share them, so both see the same right and wrong."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from unicodedata import is_normalized, normalize

from forget_datasets.rows import GeneratedCase

_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What no reader sees: Default_Ignorable_Code_Point of the Unicode Character Database."""


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
    # Plain loops: they run some twenty times a case, mostly over one string or none.
    for s in need.must_not_contain:
        if s.lower() in blob:
            reasons.append(Reason.STALE)
            break
    for s in need.must_contain:
        if s.lower() not in blob:
            reasons.append(Reason.LOST)
            break
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

    A soft hyphen or the like within a forbidden string hides it from the spec's rule, not from a reader, and not here.

    Args:
        case: the row.
        final: texts recalled for the final query.
        probes: texts recalled for each of `case.probes`, in order.
        again: texts recalled for each leak probe, in order, asked after all probes.

    Raises:
        ValueError: the number of answers is not that of the probes.
    """
    leaks = [probe for probe in case.probes if probe.kind == "leak"]
    reasons = set(visible_failures(case, final))
    asked = [*zip(case.probes, probes, strict=True), *zip(leaks, again, strict=True)]
    for probe, texts in asked:
        found = visible_failures(probe, texts)
        if Reason.STALE in found:
            reasons.add(Reason.LEAK)
        if Reason.LOST in found:
            reasons.add(Reason.COLLATERAL)
    return [reason for reason in Reason if reason in reasons]


def visible_failures(need: Check, texts: Sequence[str]) -> list[Reason]:
    """As `failures`, and STALE also for what shows only once the texts are rid of what nobody sees, and composed.

    What is required stays as the spec compares it: no case passes strictly that fails the spec's rule.
    """
    found = failures(need, texts)
    if Reason.STALE in found or not need.must_not_contain:
        return found
    blob = " ".join(texts)
    if blob.isascii() or (is_normalized("NFC", blob) and not _IGNORABLE.search(blob)):
        return found
    shown = failures(need, [normalize("NFC", _IGNORABLE.sub("", blob))])
    return [Reason.STALE, *found] if Reason.STALE in shown else found
