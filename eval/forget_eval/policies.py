"""Which stored facts an operation touches. Systems that act by id share these rules, so that none is favoured.

Adapters say whose choice it was (`Chooser`). The rules see what a system recalls and stores, never a dataset.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from forget_datasets.tokens import holds

POOL = 20
"""How many recalled facts a release looks at."""


class Hit(NamedTuple):
    """A recalled fact: the system's id, the text, and its score on the scale that the adapter declares."""

    id: int | str
    text: str
    score: float


def best(hits: Sequence[Hit]) -> Hit | None:
    """The fact that a supersede replaces: the first one recalled; None if there is none: the new text is only added."""
    return hits[0] if hits else None


def released(hits: Sequence[Hit], minimum: float = 0.05) -> list[Hit]:
    """The facts that a release hides: those above the gap (`within_gap`) in the system's own scores."""
    return list(hits[: within_gap([hit.score for hit in hits], minimum)])


def within_gap(scores: Sequence[float], minimum: float = 0.05) -> int:
    """How many of the best scores stand apart from the rest: a release takes these.

    The cut is at the widest gap between neighbours if it is at least `minimum`, at the first of several equally wide
    ones; without such a gap, everything within 5% of the top score belongs together.

    Args:
        scores: in falling order, on the system's own scale.
        minimum: the narrowest gap that counts, on that scale.

    Raises:
        ValueError: the scores rise somewhere.
    """
    if any(a < b for a, b in pairwise(scores)):
        raise ValueError("scores must be in falling order: sort the hits before a release is decided on them")
    gaps = [a - b for a, b in pairwise(scores)]
    if gaps and max(gaps) >= minimum:
        return gaps.index(max(gaps)) + 1
    return sum(score >= scores[0] - 0.05 * abs(scores[0]) for score in scores)


def holding(identifier: str, texts: Iterable[str]) -> list[int]:
    """The positions of the texts that a purge deletes: all with the identifier as a whole token (`tokens.holds`)."""
    return [i for i, text in enumerate(texts) if holds(identifier, text)]
