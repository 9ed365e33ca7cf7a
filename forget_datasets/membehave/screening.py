"""What is refused: questions that do not measure memory, and rows that contradict themselves."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import isclose

from forget_datasets.membehave.kinds import Entity
from forget_datasets.membehave.metrics import mentions, normalise, target_names
from forget_datasets.membehave.parameters import MAX_SESSIONS
from forget_datasets.membehave.recorded import Recorded, level_of
from forget_datasets.membehave.texts import check_texts
from forget_datasets.membehave.world import Person, World
from forget_datasets.rows import LEVELS, Evidence, Item, ItemProbe

FEWEST_MESSAGES, MOST_MESSAGES = 6, 14
CONTROL_PROBES = 3
"""At least so many control probes make an extended item."""

_GUESSABLE = 0.1
_SCORING = {"target": "coverage", "ripple": "answer", "control": "answer", "confirm": "confirm", "alias": "coverage"}
_WORD = re.compile(r"\w{4,}")


def guess(world: World, kind: str, question: str) -> Entity:
    """The answer of one who knows the world but no history: most words in common with the question, else commonest."""
    asked = set(_WORD.findall(normalise(question)))

    def promise(entity: Entity) -> tuple[int, int]:
        return len(asked & set(_WORD.findall(normalise(entity.name)))), len(world.members[entity.name])

    return max(world.entities[kind], key=promise)


def fault(
    question: str, person: Person, entity: Entity, quote: str, never: Sequence[str], world: World, recorded: Recorded
) -> str | None:
    """Why a question does not measure memory, or None if it does.

    Args:
        question: asks for `entity` through `person`.
        quote: the message that states the answer.
        never: names that must not stand in the question.
    """
    if mentions(question, [entity.name, *entity.aliases]):
        return "answer in question"
    if mentions(question, never):
        return "names the target"
    if sum(other.kind == entity.kind for other in recorded.of(person)) != 1:
        return "two right answers"
    if entity.name not in quote:
        return "not in quote"
    if (
        len(world.members[entity.name]) > _GUESSABLE * len(world.people)
        or guess(world, entity.kind, question) == entity
    ):
        return "guessable"
    return None


def check_item(item: Item) -> list[str]:
    """Everything in a row that contradicts the rest of it, one line each: item, column, what is wrong."""
    checks = (check_texts, _counts, _edges, _targets, _ripples, _families, _history)
    return [f"{item.item_id}: {problem}" for check in checks for problem in check(item)]


def check_triplet(items: Sequence[Item]) -> list[str]:
    """What keeps rows from being a triplet: they have one user and its sessions, each level once, degrees near.

    For whoever streams the splits side by side: the items (`Item.from_row`) that have one triplet_id, in any order.
    """
    if not items:
        return ["a triplet without items"]
    name = items[0].triplet_id
    found = []
    if sorted(i.level for i in items) != sorted(LEVELS):
        found.append(f"level: has {', '.join(i.level for i in items)} where low, med and high should be once each")
    if len({i.triplet_id for i in items}) > 1:
        found.append(f"triplet_id: differs ({', '.join(i.triplet_id for i in items)})")
    if len({i.user for i in items}) > 1:
        found.append(f"user: differs within the triplet ({', '.join(i.user for i in items)})")
    if len({i.target for i in items}) < len(items):
        found.append("target: the same person twice")
    if any(i.sessions != items[0].sessions for i in items):
        found.append("sessions: differ within the triplet; the rows of a user carry the same history")
    degrees = [i.degree for i in items]
    if max(degrees) - min(degrees) > 2:
        found.append(f"degree: {min(degrees)} to {max(degrees)}, more than 2 apart")
    return [f"{name}: {problem}" for problem in found]


def _counts(item: Item) -> Iterator[str]:
    shared = sum(bool(n.shared_with) for n in item.neighbors)
    if item.shared != shared:
        yield f"shared: {item.shared}, but {shared} neighbors are shared"
    if item.degree != len(item.neighbors):
        yield f"degree: {item.degree}, but there are {len(item.neighbors)} neighbors"
    if item.level != level_of(item.shared):
        yield f"level: {item.level!r} contradicts shared {item.shared} ({level_of(item.shared)})"
    if not item.degree or not isclose(item.entanglement_ratio, item.shared / item.degree):
        yield f"entanglement_ratio: {item.entanglement_ratio} is not {item.shared}/{item.degree}"
    if item.item_id != f"{item.user}#{item.target}":
        yield f"item_id: should be {item.user}#{item.target}"
    if not item.triplet_id.startswith(f"{item.user}#"):
        yield f"triplet_id: {item.triplet_id!r} does not start with the user {item.user!r}"
    if not mentions(item.forget_request, [item.target]):
        yield f"forget_request: does not give the full name {item.target!r}"


def _edges(item: Item) -> Iterator[str]:
    """Evidence for each edge, quoted where it says."""
    messages = {(s.session_id, i): m for s in item.sessions for i, m in enumerate(s.messages)}
    known = {(e.person, e.entity) for e in item.evidence}
    for neighbor in item.neighbors:
        for person in (item.target, *neighbor.shared_with):
            if (person, neighbor.entity) not in known:
                yield f"evidence: none for {person} and {neighbor.entity}"
        if {item.target, item.user} & set(neighbor.shared_with):
            yield f"neighbors: {neighbor.entity} is shared with the target or the user"
    for e in item.evidence:
        message = messages.get((e.session_id, e.message_index))
        place = f"{e.session_id}, message {e.message_index}"
        if message is None or e.quote not in message.content:
            yield f"evidence: the quote for {e.person} and {e.entity} is not in {place}"
        elif message.role != "user" or e.speaker_id != item.user:
            yield f"evidence: {e.person} and {e.entity} is not told by the user"
        if e.entity not in e.quote:
            yield f"evidence: the quote for {e.person} does not hold {e.entity!r}"


def _targets(item: Item) -> Iterator[str]:
    for p in item.probes:
        if p.family not in ("target", "alias"):
            continue
        if sorted(p.expected_entities) != sorted(n.entity for n in item.neighbors):
            yield f"probes: expected_entities of the {p.family} probe are not the neighbors"
        if p.n_expected != len(p.expected_entities):
            yield f"probes: n_expected {p.n_expected} for {len(p.expected_entities)} expected entities"
    if sum(p.family == "target" for p in item.probes) != 1:
        yield "probes: there must be one target probe"


def _ripples(item: Item) -> Iterator[str]:
    ripples = [p for p in item.probes if p.family == "ripple"]
    if not 1 <= len(ripples) <= item.shared:
        yield f"probes: {len(ripples)} ripple probes for {item.shared} shared entities (1 to {item.shared} expected)"
    if len({p.entity for p in ripples}) < len(ripples):
        yield "probes: two ripple probes for one entity"
    shared_with = {n.entity: n.shared_with for n in item.neighbors}
    names = target_names(item)
    for p in ripples:
        if p.asked_through not in shared_with.get(p.entity or "", ()):
            yield f"probes: {p.entity} is not shared with {p.asked_through}, through whom it is asked"
        elif not _joint_first(item, p):
            yield f"probes: {p.entity} is told jointly, but not asked through the person in that message"
        if mentions(p.question, names):
            yield f"probes: the ripple question {p.question!r} names the target"


def _joint_first(item: Item, probe: ItemProbe) -> bool:
    """Where the target's message names somebody else too, the probe asks through that person."""
    places = {(e.person, e.entity): _place(e) for e in item.evidence}
    own = places.get((item.target, probe.entity or ""))
    shared_with = next(n.shared_with for n in item.neighbors if n.entity == probe.entity)
    joint = [person for person in shared_with if places.get((person, probe.entity or "")) == own]
    return not joint or probe.asked_through in joint


def _families(item: Item) -> Iterator[str]:
    families = [p.family for p in item.probes]
    quotes = {(e.person, e.entity): e.quote for e in item.evidence}
    questions = [p.question for p in item.probes]
    for twice in sorted({q for q in questions if questions.count(q) > 1}):
        yield f"probes: two probes ask {twice!r}"
    told = [m.content for s in item.sessions for m in s.messages if m.role == "user"]
    for p in item.probes:
        if p.family not in _SCORING:
            yield f"probes: unknown family {p.family!r} (known: {', '.join(_SCORING)})"
        elif p.scoring != _SCORING[p.family]:
            yield f"probes: scoring {p.scoring!r} of a {p.family} probe should be {_SCORING[p.family]!r}"
        if p.family in ("ripple", "control"):
            if p.expected is None or p.expected not in (p.source_quote or ""):
                yield f"probes: the answer {p.expected!r} is not in its source quote"
            elif mentions(p.question, [p.expected, *p.aliases]):
                yield f"probes: the answer {p.expected!r} is in its question"
        if p.family == "ripple" and quotes.get((p.asked_through or "", p.entity or "")) != p.source_quote:
            yield f"probes: the evidence of the ripple probe for {p.entity} is missing"
        if p.family in ("control", "confirm") and p.source_quote not in told:
            yield f"probes: the source quote of the {p.family} probe for {p.entity} is not in the sessions"
    if {"control", "confirm", "alias"} & set(families) and families.count("control") < CONTROL_PROBES:
        yield f"probes: {families.count('control')} control probes, at least {CONTROL_PROBES} expected"


def _history(item: Item) -> Iterator[str]:
    if not item.sessions:
        yield "sessions: the history is empty"
    if len(item.sessions) > MAX_SESSIONS:
        yield f"sessions: {len(item.sessions)}, at most {MAX_SESSIONS} expected"
    if len({s.session_id for s in item.sessions}) < len(item.sessions):
        yield "sessions: a session_id stands twice"
    for session in item.sessions:
        where = f"sessions: {session.session_id}:"
        if not FEWEST_MESSAGES <= len(session.messages) <= MOST_MESSAGES:
            yield f"{where} {len(session.messages)} messages, {FEWEST_MESSAGES} to {MOST_MESSAGES} expected"
        unknown = sorted({m.role for m in session.messages} - {"user", "assistant"})
        if unknown:
            yield f"{where} unknown role {unknown[0]!r} (known: user, assistant)"
        elif any(m.role != ("user", "assistant")[i % 2] for i, m in enumerate(session.messages)):
            yield f"{where} user and assistant do not take turns"
        if any(not _visible(m.content) for m in session.messages):
            yield f"{where} an empty message"
        if not _dated(session.start_time):
            yield f"{where} start_time {session.start_time!r} is not ISO 8601 with an offset"


def _visible(text: str) -> bool:
    """Whether there is anything to see: neither spaces nor characters that only steer others."""
    return any(unicodedata.category(c)[0] not in "ZC" for c in text)


def _dated(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _place(evidence: Evidence) -> tuple[str, int]:
    return evidence.session_id, evidence.message_index
