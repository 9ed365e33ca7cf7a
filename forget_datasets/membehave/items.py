"""One item of a triplet: the row, from a target in the recorded graph and the history that tells of it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from forget_datasets.membehave.gold import Edge
from forget_datasets.membehave.history import History
from forget_datasets.membehave.probes import Asker, Tally, forget_request
from forget_datasets.membehave.recorded import Entangled, Recorded, evidence_of
from forget_datasets.membehave.screening import CONTROL_PROBES
from forget_datasets.membehave.world import World
from forget_datasets.rows import Evidence, Item, Neighbor
from forget_datasets.seeding import Stream


@dataclass(frozen=True, slots=True)
class Drawn:
    """An item as in config `default` and as in `extended`, with the counts of its questions."""

    default: Item
    extended: Item
    tally: Tally


def draw_item(
    world: World, history: History, recorded: Recorded, entangled: Entangled, triplet: str, *address: object
) -> Drawn | None:
    """The item of a target, or None if it is left without ripple probes or with too few control probes."""
    name = entangled.who.person.name
    asker = Asker(world, history, recorded, entangled, Stream(*address, "probes", name))
    probes = [asker.target(), *asker.ripples()]
    further = asker.extended()
    if len(probes) < 2 or sum(p.family == "control" for p in further) < CONTROL_PROBES:
        return None
    item = Item(
        item_id=f"{history.user}#{name}",
        triplet_id=triplet,
        user=history.user,
        target=name,
        level=entangled.level,
        shared=entangled.shared,
        degree=entangled.degree,
        entanglement_ratio=entangled.shared / entangled.degree,
        forget_request=forget_request(entangled.who, _place(history, entangled), Stream(*address, "requests")),
        neighbors=[Neighbor(e.name, e.kind, list(e.aliases), [p.name for p in o]) for e, o in entangled.neighbors],
        evidence=list(_evidence(entangled, recorded, history)),
        probes=probes,
        sessions=list(history.sessions),
    )
    return Drawn(item, replace(item, probes=probes + further), asker.tally)


def _place(history: History, entangled: Entangled) -> int:
    return [target.who for target in history.gold.targets].index(entangled.who)


def same_message(item: Item) -> int:
    """Shared entities of which another person is told in the very message that tells of the target."""
    places = {(e.person, e.entity): (e.session_id, e.message_index) for e in item.evidence}
    return sum(
        any(places[other, n.entity] == places[item.target, n.entity] for other in n.shared_with) for n in item.neighbors
    )


def _evidence(entangled: Entangled, recorded: Recorded, history: History) -> Iterator[Evidence]:
    """Evidence for every edge of the target and of those who share with it."""
    for entity, others in entangled.neighbors:
        for person in (entangled.who.person, *others):
            yield evidence_of(Edge(person, entity), recorded, history.evidence)
