"""Questions of an item: written, screened, rephrased, and dropped where no wording measures memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from forget_datasets.membehave import kinds, screening, wording
from forget_datasets.membehave.gold import Acquaintance, Edge
from forget_datasets.membehave.history import History
from forget_datasets.membehave.kinds import Entity
from forget_datasets.membehave.metrics import YES
from forget_datasets.membehave.naming import person_slots
from forget_datasets.membehave.recorded import Entangled, Recorded, evidence_of
from forget_datasets.membehave.wording import Entry
from forget_datasets.membehave.world import Person, World
from forget_datasets.rows import Evidence, ItemProbe
from forget_datasets.seeding import Stream

_CONTROLS = 4
_CONFIRMS = 3


@dataclass(slots=True)
class Tally:
    """Questions of an item: how many were written, how many needed another wording, how many were dropped and why."""

    written: int = 0
    rephrased: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Asker:
    """Writes the probes of one target."""

    world: World
    history: History
    recorded: Recorded
    entangled: Entangled
    stream: Stream
    tally: Tally = field(default_factory=Tally)

    def target(self) -> ItemProbe:
        """Open recall of everything about the target, by its full name."""
        return self._open("target", "target", self.entangled.who.person.name)

    def ripples(self) -> list[ItemProbe]:
        """One question a shared entity, asked through another person."""
        found = []
        for entity, others in self.entangled.neighbors:
            if others:
                probe = self._ripple(entity, others)
                found += [probe] if probe else []
        return found

    def extended(self) -> list[ItemProbe]:
        """Control, confirm and alias probes."""
        who = self.entangled.who
        names = (("alias", who.person.first), ("relation", f"my {who.relation}"))
        return [*self._controls(), *self._confirms(), *(self._open("alias", file, name) for file, name in names)]

    def _open(self, family: str, section: str, name: str) -> ItemProbe:
        wordings = wording.entries("questions.toml", section, wording.load("questions.toml")[section])
        question = wording.fill(self.stream.choice(wordings).text, {"name": name}, self.stream)
        entities = [entity.name for entity, _ in self.entangled.neighbors]
        first = min(
            map(self._told, (e for e, _ in self.entangled.neighbors)), key=lambda e: (e.session_id, e.message_index)
        )
        aliases = list(self.entangled.who.aliases)
        return self._probe(family, None, None, question, "coverage", None, entities, aliases, first)

    def _ripple(self, entity: Entity, others: Sequence[Person]) -> ItemProbe | None:
        """Asked through the person in the target's own message, if there is one, else through whoever screens well."""
        joint = [person for person in others if self._joint(person, entity)]
        people = joint or self.stream.sample(others, len(others))
        never = self.entangled.who.aliases
        return self._screened("ripple", [Edge(person, entity) for person in people], never)

    def _controls(self) -> list[ItemProbe]:
        """Facts about people who share nothing with the target, each of another person while there are enough."""
        strangers = self._strangers()
        found: list[ItemProbe] = []
        for edges in zip(*(self.stream.sample(own, len(own)) for own in strangers), strict=False):
            for edge in edges:
                if len(found) < _CONTROLS and (probe := self._screened("control", [edge], self.entangled.who.aliases)):
                    found.append(probe)
        return found

    def _strangers(self) -> list[list[Edge]]:
        """The recorded edges of each person who is at none of the target's entities, in random order of people."""
        touched = {person.name for _, others in self.entangled.neighbors for person in others}
        edges: dict[str, list[Edge]] = {}
        for edge in self.recorded.sources:
            if edge.person != self.entangled.who.person and edge.person.name not in touched:
                edges.setdefault(edge.person.name, []).append(edge)
        return self.stream.sample(list(edges.values()), len(edges))

    def _confirms(self) -> list[ItemProbe]:
        entities = [entity for entity, _ in self.entangled.neighbors]
        found = []
        for entity in self.stream.sample(entities, min(_CONFIRMS, len(entities))):
            entry = self.stream.choice(kinds.every()[entity.kind].confirms)
            slots = {"name": self.entangled.who.person.name, "entity": entity.name}
            question = wording.fill(entry.text, slots, self.stream)
            told = self._told(entity)
            found.append(self._probe("confirm", entity, None, question, "confirm", YES[0], [], list(YES[1:]), told))
        return found

    def _screened(self, family: str, edges: Sequence[Edge], never: Sequence[str]) -> ItemProbe | None:
        """The first wording, through the first person, that screening lets pass."""
        self.tally.written += 1
        reasons: list[str] = []
        for edge in edges:
            told = evidence_of(edge, self.recorded, self.history.evidence)
            for question in self._wordings(edge):
                fault = screening.fault(
                    question, edge.person, edge.entity, told.quote, never, self.world, self.recorded
                )
                if fault is None:
                    self.tally.rephrased += bool(reasons)
                    answer, aliases = edge.entity.name, list(edge.entity.aliases)
                    return self._probe(family, edge.entity, edge.person, question, "answer", answer, [], aliases, told)
                reasons.append(fault)
        self.tally.dropped[reasons[0]] += 1
        return None

    def _wordings(self, edge: Edge) -> list[str]:
        options: tuple[Entry, ...] = kinds.every()[edge.entity.kind].questions
        chosen = self.stream.sample(options, len(options))
        return [wording.fill(entry.text, person_slots(edge.person, edge.person.name), self.stream) for entry in chosen]

    def _joint(self, person: Person, entity: Entity) -> bool:
        own, other = (
            evidence_of(Edge(p, entity), self.recorded, self.history.evidence)
            for p in (self.entangled.who.person, person)
        )
        return (own.session_id, own.message_index) == (other.session_id, other.message_index)

    def _told(self, entity: Entity) -> Evidence:
        return evidence_of(Edge(self.entangled.who.person, entity), self.recorded, self.history.evidence)

    def _probe(
        self,
        family: str,
        entity: Entity | None,
        through: Person | None,
        question: str,
        scoring: str,
        expected: str | None,
        expected_entities: list[str],
        aliases: list[str],
        told: Evidence,
    ) -> ItemProbe:
        return ItemProbe(
            family=family,
            entity=entity.name if entity else None,
            asked_through=through.name if through else None,
            question=question,
            scoring=scoring,
            expected=expected,
            expected_entities=expected_entities,
            n_expected=len(expected_entities),
            aliases=aliases,
            speaker_id=told.speaker_id,
            listener_id=told.listener_id,
            source_quote=told.quote,
        )


def forget_request(who: Acquaintance, place: int, stream: Stream) -> str:
    """The request to forget a person: the full name always, the relation in some wordings.

    `place` is the person's among the targets of the user: from one stream, each place has a wording of its own.
    """
    requests = wording.entries("requests.toml", "requests", wording.load("requests.toml")["requests"])
    slots = person_slots(who.person, who.person.name) | {"relation": f"my {who.relation}"}
    return wording.fill(stream.sample(requests, place + 1)[place].text, slots, stream)
