"""How the histories of a MemBehave build came about: what only the generator knows, and no row shows."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from forget_datasets.membehave import Triplet
from forget_datasets.membehave.history import Makeup
from forget_datasets.membehave.triplets import PEOPLE_SHARE, PHRASE_SHARE
from forget_datasets.membehave.world import MEMBERS, make_world
from forget_datasets.rows import LEVELS
from forget_datasets.tally import Mean, Range


class Provenance:
    """Running figures over triplets in their order; the triplets of a user share one history, which counts once."""

    def __init__(self, seed: int) -> None:
        self._world = make_world(seed)
        self._written: Counter[str] = Counter()
        self._rephrased: Counter[str] = Counter()
        self._dropped: dict[str, Counter[str]] = {level: Counter() for level in LEVELS}
        self._rejected: Counter[str] = Counter()
        self._user = ""
        self._phrase, self._most = "", 0.0
        self._facts, self._people = _Share(), _Share()
        self._messages = Range()

    def watch(self, triplet: Triplet) -> Triplet:
        """Takes in the next triplet and hands it on."""
        for level, tally in triplet.figures.questions.items():
            self._written[level] += tally.written
            self._rephrased[level] += tally.rephrased
            self._dropped[level].update(tally.dropped)
        if triplet.default[0].user != self._user:
            self._user = triplet.default[0].user
            self._rejected.update(triplet.figures.rejected)
            self._tell(triplet.figures.makeup)
        return triplet

    def summary(self) -> dict[str, Any]:
        """The figures so far, for the manifest."""
        kinds = self._world.entities
        return {
            "world": {
                "people": len(self._world.people),
                "kinds": len(kinds),
                "entities": sum(map(len, kinds.values())),
                "most_members": MEMBERS,
            },
            "screening": {
                level: {
                    "written": self._written[level],
                    "rephrased": self._rephrased[level],
                    "dropped": dict(sorted(self._dropped[level].items())),
                }
                for level in LEVELS
            },
            "rejected_draws": dict(sorted(self._rejected.items())),
            "histories": {
                "user_messages": self._messages.summary(),
                "fact_share": self._facts.summary(),
                "people_share": self._people.summary(),
                "phrase_share": {"largest": round(self._most, 4), "phrase": self._phrase, "limit": PHRASE_SHARE},
                "people_limit": round(PEOPLE_SHARE, 4),
            },
        }

    def _tell(self, makeup: Makeup) -> None:
        self._messages.add(makeup.user_messages)
        self._facts.add(makeup.fact_share)
        self._people.add(makeup.people_share)
        if makeup.phrase_share > self._most:
            self._phrase, self._most = makeup.phrase, makeup.phrase_share


@dataclass(slots=True)
class _Share:
    """The mean and the largest of a share of each history."""

    mean: Mean = field(default_factory=Mean)
    largest: float = 0.0

    def add(self, share: float) -> None:
        self.mean.add(share)
        self.largest = max(self.largest, share)

    def summary(self) -> dict[str, float | None]:
        return {"mean": self.mean.value, "largest": round(self.largest, 4)}
