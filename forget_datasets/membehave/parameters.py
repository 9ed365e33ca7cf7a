"""What a builder may choose."""

from dataclasses import dataclass

from forget_datasets.errors import UserError

MAX_SESSIONS = 120
"""At most so many conversations make a history."""

MIN_SESSIONS = {1: 60, 2: 90, 3: 118}
"""Fewest conversations by triplets a user: with fewer, facts about people would crowd out ordinary talk."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The shape of the histories; the defaults give the dataset's published form.

    Args:
        triplets_per_user: triplets told in one history, 1 to 3.
        sessions_per_user: conversations in a history; None for 80, and 120 where a user has several triplets.
        same_message: share of the shared entities of which another person is told in the target's message, 0 to 1.
        noise: probability with which each gold edge is dropped from the recorded graph, and one added, 0 to 1.

    Raises:
        UserError: a value outside these bounds.
    """

    triplets_per_user: int = 1
    sessions_per_user: int | None = None
    same_message: float = 0.25
    noise: float = 0.0

    def __post_init__(self) -> None:
        if self.triplets_per_user not in MIN_SESSIONS:
            raise UserError(
                f"triplets_per_user is {self.triplets_per_user}: a history holds 1 to 3 triplets. Ask for more users."
            )
        low = MIN_SESSIONS[self.triplets_per_user]
        if not low <= self.sessions <= MAX_SESSIONS:
            raise UserError(
                f"sessions_per_user is {self.sessions}: with {self.triplets_per_user} triplets a user it must be "
                f"{low} to {MAX_SESSIONS}, so that at most a third of the user's messages are about people."
            )
        for name in ("same_message", "noise"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise UserError(f"{name} is {getattr(self, name)}: give a share from 0 to 1.")

    @property
    def sessions(self) -> int:
        """Conversations in a history."""
        if self.sessions_per_user is not None:
            return self.sessions_per_user
        return 80 if self.triplets_per_user == 1 else MAX_SESSIONS
