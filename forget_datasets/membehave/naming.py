"""How people come up in a sentence: names, pronouns, and the slots of an entity."""

from collections.abc import Mapping

from forget_datasets.membehave.gold import Acquaintance
from forget_datasets.membehave.kinds import Entity
from forget_datasets.membehave.world import Person, World
from forget_datasets.seeding import Stream

_PRONOUNS = {
    "she": {"themself": "herself", "they": "she", "them": "her", "their": "her", "theirs": "hers"},
    "he": {"themself": "himself", "they": "he", "them": "him", "their": "his", "theirs": "his"},
}


class Names:
    """The names that a user gives to people: the first time with the relation, later as it comes."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._introduced: set[str] = set()

    def call(self, who: Acquaintance, template: str, unnamed: bool = False) -> str:
        """The name for a template's `{name}`; `unnamed` asks for the relation alone, where the template allows it."""
        first, full, relation = who.person.first, who.person.name, f"my {who.relation}"
        if full not in self._introduced:
            self._introduced.add(full)
            return f"{relation} {full}"
        if unnamed and "{first}" not in template.lower():
            return relation
        return self._stream.choice((first, first, first, first, first, full, full, f"{relation} {first}"))


def person_slots(person: Person, name: str) -> dict[str, str]:
    """The slots of a person: `name` as it is called here, the first name, pronouns."""
    return {"name": name, "first": person.first, **_PRONOUNS[person.pronoun]}


def entity_slots(entity: Entity) -> dict[str, str]:
    """The slots of an entity: its full name, its short form, its weekday."""
    return {"entity": entity.name, "alias": entity.aliases[0] if entity.aliases else entity.name, "day": entity.day}


def proper_words(world: World) -> frozenset[str]:
    """Words of the world that keep their capital wherever they stand."""
    entities = (entity.name.split()[0] for group in world.entities.values() for entity in group)
    return frozenset(word for person in world.people for word in person[:2]) | frozenset(entities)


def merged(*parts: Mapping[str, str]) -> dict[str, str]:
    """Slots of several sources; later ones win."""
    return {key: value for part in parts for key, value in part.items()}
