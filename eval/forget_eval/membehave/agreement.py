"""How far two judges agree."""

from collections.abc import Mapping, Sequence
from typing import Any


def agreement(judgements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How far a chat judge and the deterministic one agree, over the judgements that are yes or no.

    Args:
        judgements: rows as `Judgement.to_row` makes them.

    Returns:
        `kappa`, Cohen's or None; `agreed` of `n`, how many judgements are the same; `undecided`, how many are neither.
    """
    pairs = [(j["verdict"], j["deterministic"]) for j in judgements if j["verdict"] is not None]
    found = kappa(pairs)
    return {
        "kappa": None if found is None else round(found, 12),
        "agreed": sum(a == b for a, b in pairs),
        "n": len(pairs),
        "undecided": len(judgements) - len(pairs),
    }


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa of two judges (Cohen 1960): their agreement beyond chance, 1 if it is perfect.

    None without pairs, or where both always say the same one word, so that chance alone explains everything.
    """
    if not pairs:
        return None
    n = len(pairs)
    agreed = sum(a == b for a, b in pairs) / n
    first, second = sum(a for a, _ in pairs) / n, sum(b for _, b in pairs) / n
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else (agreed - chance) / (1 - chance)
