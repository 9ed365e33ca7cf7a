"""The recorded graph: what a reader of the history writes down, with or without noise, and the entanglement in it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from forget_datasets.membehave.gold import Acquaintance, Edge, Gold
from forget_datasets.membehave.kinds import Entity
from forget_datasets.membehave.world import Person
from forget_datasets.rows import Evidence
from forget_datasets.seeding import Stream


@dataclass(frozen=True, slots=True)
class Recorded:
    """Recorded edges, each with the told edge whose message it was read from: itself, unless it is spurious."""

    sources: Mapping[Edge, Edge]

    def of(self, person: Person) -> list[Entity]:
        """The entities recorded for a person, in the order of their kinds, then names."""
        return sorted((e.entity for e in self.sources if e.person == person), key=lambda e: (e.kind, e.name))

    def at(self, entity: Entity) -> list[Person]:
        """The people recorded at an entity, by name."""
        return sorted((e.person for e in self.sources if e.entity == entity), key=lambda p: p.name)

    def shared_with(self, target: Person, entity: Entity) -> list[Person]:
        """The people other than the target recorded at an entity, by name."""
        return [person for person in self.at(entity) if person != target]


@dataclass(frozen=True, slots=True)
class Entangled:
    """A target in the recorded graph: its entities, and who else touches each."""

    who: Acquaintance
    neighbors: tuple[tuple[Entity, tuple[Person, ...]], ...]

    @property
    def degree(self) -> int:
        """All entities of the target."""
        return len(self.neighbors)

    @property
    def shared(self) -> int:
        """How many entities of the target are also another person's."""
        return sum(bool(others) for _, others in self.neighbors)

    @property
    def level(self) -> str:
        """low, med or high."""
        return level_of(self.shared)


def level_of(shared: int) -> str:
    """The level of a count of shared entities (card, "Entanglement levels")."""
    return "low" if shared <= 2 else "med" if shared <= 4 else "high"


def record(gold: Gold, noise: float, stream: Stream) -> Recorded:
    """The recorded graph. With noise, each gold edge is dropped, and one beside it added, with that probability.

    A spurious edge gives a person the entity of a message about somebody else, as a careless reader would.
    """
    told = gold.edges
    sources: dict[Edge, Edge] = {}
    if not noise:
        return Recorded({edge: edge for edge in told})
    for edge in told:
        if not stream.chance(noise):
            sources[edge] = edge
        if stream.chance(noise):
            foreign = stream.choice([e for e in told if e.person != edge.person])
            spurious = Edge(edge.person, foreign.entity)
            if spurious not in told:
                sources.setdefault(spurious, foreign)
    return Recorded(sources)


def entangle(who: Acquaintance, recorded: Recorded) -> Entangled:
    """The target's neighbourhood in the recorded graph."""
    entities = recorded.of(who.person)
    return Entangled(who, tuple((e, tuple(recorded.shared_with(who.person, e))) for e in entities))


def evidence_of(edge: Edge, recorded: Recorded, told: Mapping[tuple[str, str], Evidence]) -> Evidence:
    """The message behind a recorded edge; of a spurious one, the message that it was misread from."""
    source = recorded.sources[edge]
    return replace(told[source.person.name, source.entity.name], person=edge.person.name)
