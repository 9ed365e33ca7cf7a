"""MemBehave: Forgetting. Whole histories out of which one person is to be forgotten."""

from collections.abc import Iterator

from forget_datasets.membehave.parameters import Parameters
from forget_datasets.membehave.triplets import Edges, Figures, Triplet, make_triplet

__all__ = ["Edges", "Figures", "Parameters", "Triplet", "generate", "generate_triplet"]

DEFAULTS = Parameters()
TRIPLETS = 42
"""Triplets of the published form: 126 items."""


def generate_triplet(index: int, *, seed: int = 42, parameters: Parameters = DEFAULTS) -> Triplet:
    """The triplet of an index from 0, the same bytes whatever else is generated.

    Raises:
        UserError: a negative index; noise so strong that no draw keeps the three levels apart.
    """
    return make_triplet(index, seed, parameters)


def generate(
    triplets: int = TRIPLETS,
    *,
    triplets_per_user: int = 1,
    sessions_per_user: int | None = None,
    seed: int = 42,
    same_message: float = 0.25,
    noise: float = 0.0,
) -> Iterator[Triplet]:
    """The first triplets of a dataset, one at a time; for the arguments see `Parameters`.

    Raises:
        UserError: an argument outside its bounds.
    """
    parameters = Parameters(triplets_per_user, sessions_per_user, same_message, noise)
    for index in range(triplets):
        yield make_triplet(index, seed, parameters)
