"""The gold graph of a user: whom the user knows, who is to be forgotten, and which edges will be told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from forget_datasets.membehave import wording
from forget_datasets.membehave.kinds import Entity
from forget_datasets.membehave.persona import Persona
from forget_datasets.membehave.world import VERSION, Person, World
from forget_datasets.rows import LEVELS
from forget_datasets.seeding import Stream

KNOWN = 50
"""People a user knows."""

DEGREES = (11, 12, 13)
SHARED = {"low": (1, 1, 1, 2, 2), "med": (3, 3, 4, 4, 4), "high": (5, 6, 7, 8, 8, 9, 9, 9, 10, 10, 11, 11)}
"""How many entities a target shares, each value of these lists in turn: means 1.4, 3.6 and 8.6."""

_OTHERS = (1, 1, 1, 1, 1, 2)  # people told at a shared entity beside the target
_BYSTANDER_EDGES = 24  # told edges that no target touches
_BYSTANDER_LIMIT = 3  # of them, of one person


class Edge(NamedTuple):
    """A person touches an entity."""

    person: Person
    entity: Entity


class Acquaintance(NamedTuple):
    """A person as this user knows it; nobody else of the user has the relation."""

    person: Person
    relation: str
    excludes: tuple[str, ...]

    @property
    def aliases(self) -> tuple[str, ...]:
        """All names under which the person may appear, the full one first."""
        return (
            self.person.name,
            self.person.first,
            self.person.surname,
            f"my {self.relation}",
            f"your {self.relation}",
        )


@dataclass(frozen=True, slots=True)
class Target:
    """A person to be forgotten, with its told edges. `others` are those of other people at the same entities."""

    who: Acquaintance
    level: str
    edges: tuple[Edge, ...]
    others: tuple[Edge, ...]
    joint: tuple[Edge, ...]
    """Of `others`, those told in one message with the target's."""


@dataclass(frozen=True, slots=True)
class Gold:
    """All that a user will tell. Targets come by threes: low, med, high."""

    known: tuple[Acquaintance, ...]
    targets: tuple[Target, ...]
    bystanders: tuple[Edge, ...]

    @property
    def edges(self) -> list[Edge]:
        """Every told edge."""
        return [e for t in self.targets for e in (*t.edges, *t.others)] + list(self.bystanders)

    def acquaintance(self, person: Person) -> Acquaintance:
        """A known person. Raises KeyError for a stranger."""
        for known in self.known:
            if known.person == person:
                return known
        raise KeyError(person.name)


def shared_sizes(index: int, seed: int) -> dict[str, int]:
    """How many entities the targets of a triplet share, by level.

    Triplet after triplet goes through each list of `SHARED` in a seeded order, so that the means hold for any number.
    """
    found = {}
    for level, sizes in SHARED.items():
        round_, place = divmod(index, len(sizes))
        order = Stream("membehave", VERSION, seed, "shared", level, round_).sample(sizes, len(sizes))
        found[level] = order[place]
    return found


def draw(
    world: World, persona: Persona, stream: Stream, same_message: float, sizes: Sequence[Mapping[str, int]]
) -> Gold | None:
    """A gold graph, or None where the people drawn cannot carry the levels (draw anew, from another stream).

    `same_message` is the share of shared entities told jointly; `sizes` has one entry a triplet of the user, as
    `shared_sizes` gives it.
    """
    return _Drawing(world, persona, stream).complete(same_message, sizes)


class _Drawing:
    """The state of a draw: who has a role, and which entities are spoken for."""

    def __init__(self, world: World, persona: Persona, stream: Stream) -> None:
        self._world = world
        self._stream = stream
        self._known = _acquaintances(stream.sample(world.people, KNOWN), persona, stream)
        self._told: dict[str, list[Person]] = {}
        self._targets: list[Person] = []
        self._others: list[Person] = []

    def complete(self, same_message: float, sizes: Sequence[Mapping[str, int]]) -> Gold | None:
        """All targets, hardest level first, then the edges that touch none of them."""
        found: dict[tuple[int, str], Target] = {}
        for level in reversed(LEVELS):
            for triplet, by_level in enumerate(sizes):
                target = self._target(level, by_level[level], same_message)
                if target is None:
                    return None
                found[triplet, level] = target
        targets = tuple(found[t, level] for t in range(len(sizes)) for level in LEVELS)
        return Gold(tuple(self._known), targets, tuple(self._bystander_edges()))

    def _target(self, level: str, size: int, same_message: float) -> Target | None:
        degree = self._stream.choice(DEGREES)
        for who in self._stream.sample(self._known, KNOWN):
            if who.person in self._targets or who.person in self._others:
                continue
            own = [e for e in self._entities(who) if e.name not in self._told]
            shareable = [e for e in own if self._company(e, who)]
            if len(own) >= degree and len(shareable) >= size:
                return self._settle(who, level, own, self._stream.sample(shareable, size), degree, same_message)
        return None

    def _settle(
        self, who: Acquaintance, level: str, own: list[Entity], shared: list[Entity], degree: int, same_message: float
    ) -> Target:
        alone = self._stream.sample([e for e in own if e not in shared], degree - len(shared))
        entities = [e for e in own if e in shared or e in alone]
        self._targets.append(who.person)
        others = [Edge(p, e) for e in entities if e in shared for p in self._pick(e, who)]
        self._others += [edge.person for edge in others]
        for entity in entities:
            self._told[entity.name] = [who.person]
        return Target(
            who, level, tuple(Edge(who.person, e) for e in entities), tuple(others), self._joint(others, same_message)
        )

    def _pick(self, entity: Entity, who: Acquaintance) -> list[Person]:
        company = self._company(entity, who)
        return self._stream.sample(company, min(len(company), self._stream.choice(_OTHERS)))

    def _joint(self, others: list[Edge], same_message: float) -> tuple[Edge, ...]:
        """One edge at each of a share of the shared entities; chance settles the fraction, so the mean is exact."""
        shared = list(dict.fromkeys(edge.entity for edge in others))
        whole = int(same_message * len(shared))
        size = whole + self._stream.chance(same_message * len(shared) - whole)
        chosen = self._stream.sample(shared, size)
        return tuple(self._stream.choice([o for o in others if o.entity == entity]) for entity in chosen)

    def _company(self, entity: Entity, who: Acquaintance) -> list[Person]:
        """Known people at an entity who can be told of it."""
        return [
            known.person
            for known in self._known
            if known.person != who.person
            and known.person not in self._targets
            and known.person in self._world.members[entity.name]
            and entity.kind not in known.excludes
        ]

    def _entities(self, who: Acquaintance) -> list[Entity]:
        found = [self._world.entity_of(who.person, kind) for kind in self._world.entities if kind not in who.excludes]
        return [entity for entity in found if entity is not None]

    def _bystander_edges(self) -> list[Edge]:
        """Edges of people without a target among them; nobody tells much, so many people are told of."""
        edges: list[Edge] = []
        for _ in range(_BYSTANDER_LIMIT):
            for who in self._stream.sample(self._known, KNOWN):
                free = [e for e in self._entities(who) if e.name not in self._told and Edge(who.person, e) not in edges]
                wanted = who.person not in self._targets and len(edges) < _BYSTANDER_EDGES
                if wanted and free and self._stream.chance(0.5):
                    edges.append(Edge(who.person, self._stream.choice(free)))
        return edges


def _acquaintances(people: Sequence[Person], persona: Persona, stream: Stream) -> list[Acquaintance]:
    """Each person with a relation that fits both and that nobody else has."""
    fitting = [r for r in wording.load("relations.toml")["relations"] if persona.tags.issuperset(r.get("needs", ()))]
    relations = stream.sample(fitting, len(fitting))
    found = []
    for person in people:
        relation = next(r for r in relations if r.get("pronoun", person.pronoun) == person.pronoun)
        relations.remove(relation)
        found.append(Acquaintance(person, relation["name"], tuple(relation.get("excludes", ()))))
    return found
