"""What the text fields of a row must hold, so that nothing matches by accident: no blanks, no names of everything."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from forget_datasets.membehave.metrics import YES, mentions, normalise, target_names
from forget_datasets.rows import Item, ItemProbe

_PROSE = frozenset({"forget_request", "quote", "question", "source_quote", "start_time"})
"""Fields that may begin or end with a space: what people write."""

_STRAY = 3
"""A short form stands in at most so many of the user's messages beside those with the full name."""

_OWN = re.compile(r"(my|your) .*\w{3}")
"""How a relation is said: "my cousin"."""

_SHORT = ("target", "alias")
_ANSWERED = ("ripple", "control")
_NEEDED = {
    **dict.fromkeys(_ANSWERED, ("entity", "asked_through", "expected", "source_quote")),
    "confirm": ("entity", "expected", "source_quote"),
}


def check_texts(item: Item) -> Iterator[str]:
    """Every text of a row that is blank, padded, or would match what it must not: column and problem."""
    yield from _blanks(item)
    yield from _entities(item)
    told = normalise("\n".join(m.content for s in item.sessions for m in s.messages if m.role == "user"))
    aliases = {n.entity: n.aliases for n in item.neighbors}
    for neighbor in item.neighbors:
        yield from (f"neighbors: {fault}" for fault in _short_forms(item, neighbor.entity, neighbor.aliases, told))
    for probe in item.probes:
        yield from (f"probes: {fault}" for fault in _probe(item, probe))
        if probe.family == "control" and probe.entity:
            yield from (f"probes: {fault}" for fault in _short_forms(item, probe.entity, probe.aliases, told))
        if probe.family == "ripple" and sorted(probe.aliases) != sorted(aliases.get(probe.entity or "", probe.aliases)):
            yield f"probes: the aliases of {probe.entity} are not those of the neighbor"


def _blanks(item: Item) -> Iterator[str]:
    """Texts without a letter or digit, and names with spaces around them."""
    for column in ("item_id", "triplet_id", "user", "target", "level", "forget_request"):
        yield from _blank(column, column, getattr(item, column))
    for column in ("neighbors", "evidence", "probes"):
        for part in getattr(item, column):
            for name in part.__slots__:
                yield from _blank(column, name, getattr(part, name))
    for session in item.sessions:
        yield from _blank("sessions", "session_id", session.session_id)


def _blank(column: str, name: str, value: Any) -> Iterator[str]:
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str):
            if not any(map(str.isalnum, text)):
                yield f"{column}: {name} is blank ({text!r})"
            elif name not in _PROSE and text != text.strip():
                yield f"{column}: {name} has spaces around it ({text!r})"


def _entities(item: Item) -> Iterator[str]:
    names = [n.entity for n in item.neighbors]
    for i, name in enumerate(names):
        if name in names[:i]:
            yield f"neighbors: {name} stands twice"
        for other in sorted(set(names) - {name}):
            if mentions(other, [name]):
                yield f"neighbors: {name} is part of {other}, so that neither can be told from the other"


def _short_forms(item: Item, entity: str, aliases: Sequence[str], told: str) -> Iterator[str]:
    """Short forms that are no part of the name, are part of another, or are words that the user says anyway."""
    if not aliases:
        return
    others = {n.entity for n in item.neighbors} | {e.entity for e in item.evidence}
    others |= {p.entity for p in item.probes if p.entity}
    for alias in aliases:
        if not mentions(entity, [alias]):
            yield f"the alias {alias!r} is no part of {entity}"
        elif shared := [other for other in sorted(others - {entity}) if mentions(other, [alias])]:
            yield f"the alias {alias!r} of {entity} is part of {shared[0]} as well"
        elif (stray := _count(told, alias) - _count(told, entity)) > _STRAY:
            yield f"the alias {alias!r} of {entity} is a word of every day: said {stray} times without the name"


def _count(told: str, name: str) -> int:
    """How often a name stands in normalised text as a whole token; few occurrences are not looked at closely."""
    plain = normalise(name)
    found = told.count(plain)
    return found if found <= _STRAY else len(re.findall(rf"(?<!\w){re.escape(plain)}(?!\w)", told))


def _probe(item: Item, probe: ItemProbe) -> Iterator[str]:
    """Fields that its family needs, and a question that names whom it is about."""
    for name in _NEEDED.get(probe.family, ()):
        if not getattr(probe, name):
            yield f"a {probe.family} probe without {name}"
    if probe.speaker_id not in (None, item.user):
        yield f"the speaker {probe.speaker_id!r} of a {probe.family} probe is not the user"
    about = [probe.asked_through or ""] if probe.family in _ANSWERED else target_names(item)
    if probe.family in (*_NEEDED, *_SHORT) and not mentions(probe.question, about):
        yield f"the {probe.family} question {probe.question!r} does not name {about[0] or 'anybody'}"
    if probe.family in _ANSWERED and probe.expected != probe.entity:
        yield f"the answer {probe.expected!r} of a {probe.family} probe is not its entity {probe.entity!r}"
    if probe.family == "confirm":
        yield from _confirm(probe)
    if probe.family in _SHORT:
        for alias in probe.aliases:
            if not (mentions(item.target, [alias]) or _OWN.fullmatch(normalise(alias))):
                yield f"the alias {alias!r} is neither part of {item.target} nor a relation such as 'my cousin'"


def _confirm(probe: ItemProbe) -> Iterator[str]:
    if probe.entity and not mentions(probe.question, [probe.entity]):
        yield f"the confirm question {probe.question!r} does not state {probe.entity}"
    for word in (probe.expected, *probe.aliases):
        if word is not None and normalise(word) not in YES:
            yield f"{word!r} is no way of saying yes (known: {', '.join(YES)})"
