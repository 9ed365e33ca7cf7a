"""The world: people, entities and who touches what, made from the seed alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from forget_datasets.membehave import kinds, wording
from forget_datasets.membehave.kinds import Entity
from forget_datasets.seeding import Stream

VERSION = 2
"""Part of every address: raised when the same seed shall give other data."""

PEOPLE = 120
MEMBERS = 5
"""At most so many people touch one entity."""

_TOUCHES = 0.96
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Person(NamedTuple):
    """Somebody of the world; `pronoun` is she or he. First name and surname are nobody else's."""

    first: str
    surname: str
    pronoun: str

    @property
    def name(self) -> str:
        """The full name."""
        return f"{self.first} {self.surname}"


@dataclass(frozen=True)
class World:
    """People and entities, and the one entity of each kind that a person touches (some kinds lack one)."""

    people: tuple[Person, ...]
    entities: Mapping[str, tuple[Entity, ...]]
    touched: Mapping[tuple[str, str], Entity]
    members: Mapping[str, tuple[Person, ...]]

    def entity_of(self, person: Person, kind: str) -> Entity | None:
        """What a person touches of a kind."""
        return self.touched.get((person.name, kind))


@lru_cache(maxsize=4)
def make_world(seed: int) -> World:
    """The world of a seed."""
    stream = Stream("membehave", VERSION, seed, "world")
    people = _people(stream)
    entities = {
        kind.name: tuple(e._replace(day=stream.choice(_DAYS)) for e in kind.entities) for kind in kinds.every().values()
    }
    touched: dict[tuple[str, str], Entity] = {}
    members: dict[str, list[Person]] = {e.name: [] for group in entities.values() for e in group}
    for kind, group in entities.items():
        for person in stream.sample(people, len(people)):
            open_ones = [e for e in group if len(members[e.name]) < MEMBERS]
            if open_ones and stream.chance(_TOUCHES):
                touched[person.name, kind] = entity = stream.choice(open_ones)
                members[entity.name].append(person)
    return World(tuple(people), entities, touched, {name: tuple(group) for name, group in members.items()})


def _people(stream: Stream) -> list[Person]:
    """Each culture gives as many people as its shorter list of names; the world is a sample of them."""
    found = []
    for culture in wording.load("names.toml")["cultures"]:
        firsts = [(name, pronoun) for pronoun in ("she", "he") for name in culture[pronoun]]
        surnames = stream.sample(culture["surnames"], len(culture["surnames"]))
        drawn = stream.sample(firsts, min(len(firsts), len(surnames)))
        found += [Person(first, last, pronoun) for (first, pronoun), last in zip(drawn, surnames, strict=False)]
    return stream.sample(found, PEOPLE)
