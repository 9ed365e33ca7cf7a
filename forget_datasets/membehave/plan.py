"""What is told about whom, how, and in which conversation; before a word is chosen."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from forget_datasets.membehave.gold import Acquaintance, Edge, Gold, Target
from forget_datasets.membehave.kinds import Entity
from forget_datasets.membehave.parameters import Parameters
from forget_datasets.seeding import Stream

MENTIONS = 20
"""User messages that name a target: one for each edge, the rest plain."""

_LENGTHS = (3, 3, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 7)  # exchanges of a conversation
LONGEST = 7
_SPARE = 0.15  # planned conversations beyond those kept
_TALK = 3.15  # user messages for each one about a person, at least
_HOURS = (7, 8, 8, 9, 10, 11, 12, 12, 13, 15, 16, 17, 18, 18, 19, 19, 20, 20, 21, 21, 22, 22, 23)

_MODES = ("pair", "ask", "hook", "pair", "ask", "hook", "ask")
"""How a target's own facts come up, the rest being asides."""

_TOLD_BACK = 3  # of a target's own facts, restated by the assistant

_OTHER_MENTIONS = (*["aside"] * 6, *["ask"] * 4, *["recall"] * 3)
_ECHOES = 7

COSTS = {"aside": 0, "hook": 1, "ask": 1, "recall": 1, "pair": 2, "echo": 1}
"""Exchanges that an event takes beside the ordinary ones, by its mode."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something about people (or, an echo, about an entity) that comes up in a conversation.

    mode  aside: within an ordinary message; hook: in answer to "anything else?"; ask: with a request of its own;
          recall: a request whose reply brings up a told fact; pair: a plain mention, the assistant asks, the fact;
          echo: the entity under its short form, nobody named
    edges the facts stated: none for a plain mention, two for one told jointly
    """

    mode: str
    people: tuple[Acquaintance, ...]
    edges: tuple[Edge, ...] = ()
    entity: Entity | None = None
    restate: bool = False
    unnamed: bool = False  # the person appears as "my cousin" alone


@dataclass(slots=True)
class Slot:
    """A planned conversation."""

    start: datetime
    length: int
    events: list[Event] = field(default_factory=list)
    extra: int = 0  # exchanges that the events take beside the ordinary ones

    def takes(self, event: Event, late: bool) -> bool:
        """Whether the event fits: two ordinary exchanges stay, nobody is the subject twice, asides are few."""
        if len(self.events) >= 3 or (event.mode == "recall" and not late):
            return False
        asides = sum(e.mode == "aside" for e in [*self.events, event])
        if asides > 2 or self.extra + COSTS[event.mode] > self.length - 2 - (asides > 1):
            return False
        return all(who not in e.people for e in self.events for who in event.people)

    def take(self, event: Event) -> None:
        """Adds the event."""
        self.events.append(event)
        self.extra += COSTS[event.mode]


def plan(gold: Gold, stream: Stream, parameters: Parameters) -> list[Slot] | None:
    """The conversations of a history with their events, in order of time; None if the events find no room in them.

    More are planned than are kept: those with events, the first and the last stay, the rest is sampled.
    """
    events = [e for target in gold.targets for e in _target_events(target, gold, stream)]
    events += _other_events(gold, stream)
    stream.shuffle(events)
    events.sort(key=lambda e: -COSTS[e.mode])
    people = sum(2 if e.mode == "pair" else 1 for e in events if e.people)
    slots = _slots(parameters.sessions, round(people * _TALK), stream)
    ends = [0, len(slots) - 1]
    open_ = sorted([*ends, *stream.sample(range(1, len(slots) - 1), parameters.sessions - len(ends))])
    if not all(_place(event, [slots[i] for i in open_], stream) for event in events):
        return None
    needed = [i for i, slot in enumerate(slots) if slot.events or i in ends]
    rest = [i for i in range(len(slots)) if i not in needed]
    filler = stream.sample(rest, parameters.sessions - len(needed))
    return [slots[i] for i in sorted(needed + filler)]


def _place(event: Event, slots: list[Slot], stream: Stream) -> bool:
    """Puts the event into one of the conversations that take it, if there is one."""
    late = len(slots) * 2 // 3
    fitting = [slot for i, slot in enumerate(slots) if slot.takes(event, i >= late)]
    if fitting:
        stream.choice(fitting).take(event)
    return bool(fitting)


def _target_events(target: Target, gold: Gold, stream: Stream) -> list[Event]:
    """The same number of each mode for every target, so that both speakers name all targets equally often."""
    who = target.who
    joint = {edge.entity.name: edge for edge in target.joint}
    own = stream.sample([e for e in target.edges if e.entity.name not in joint], len(target.edges) - len(joint))
    modes = [*_MODES, *["aside"] * len(own)][: len(own)]
    quiet = [i for i in range(len(own)) if modes[i] != "ask"]
    told_back = stream.sample(quiet, min(_TOLD_BACK, len(quiet)))
    events = [
        Event(mode, (who,), (edge,), restate=i in told_back, unnamed=i == len(own) - 1)
        for i, (mode, edge) in enumerate(zip(modes, own, strict=True))
    ]
    for edge in target.edges:
        if edge.entity.name in joint:
            other = joint[edge.entity.name]
            events.append(Event("aside", (who, gold.acquaintance(other.person)), (edge, other)))
    plain = MENTIONS - len(target.edges) - modes.count("pair")
    events += [Event(mode, (who,)) for mode in ("recall", "ask", "ask")]
    events += [Event("aside", (who,), unnamed=i == 0) for i in range(plain - 3)]
    return events


def _other_events(gold: Gold, stream: Stream) -> list[Event]:
    joint = {edge for target in gold.targets for edge in target.joint}
    own = [e for t in gold.targets for e in t.others if e not in joint] + list(gold.bystanders)
    events = []
    for edge in own:
        mode = stream.choice(("aside", "aside", "aside", "aside", "ask", "ask", "hook", "pair"))
        events.append(Event(mode, (gold.acquaintance(edge.person),), (edge,), restate=stream.chance(0.25)))
    met = list({e.person.name: gold.acquaintance(e.person) for e in own}.values())
    events += [Event(mode, (stream.choice(met),)) for mode in _OTHER_MENTIONS]
    return events + _echoes([edge.entity for edge in own], stream)


def _echoes(entities: list[Entity], stream: Stream) -> list[Event]:
    """Entities that come up by themselves, each of another kind."""
    by_kind = {entity.kind: entity for entity in stream.sample(entities, len(entities)) if entity.aliases}
    chosen = stream.sample(list(by_kind.values()), min(_ECHOES, len(by_kind)))
    return [Event("echo", (), entity=entity) for entity in chosen]


def _slots(sessions: int, messages: int, stream: Stream) -> list[Slot]:
    """Conversations over 12 to 15 months, long enough together for that many user messages in the part kept."""
    count = sessions + int(sessions * _SPARE)
    lengths = [stream.choice(_LENGTHS) for _ in range(count)]
    while sum(lengths) * sessions < messages * count and min(lengths) < LONGEST:
        i = stream.below(count)
        lengths[i] = min(LONGEST, lengths[i] + 1)
    first = datetime(2022, 1, 10) + timedelta(days=stream.below(800))
    last = 380 + stream.below(80)
    days = [0, *sorted(stream.sample(range(1, last), count - 2)), last]
    starts = [first + timedelta(days=day, hours=stream.choice(_HOURS), minutes=stream.below(60)) for day in days]
    return [Slot(_local(start), length) for start, length in zip(starts, lengths, strict=True)]


def _local(moment: datetime) -> datetime:
    """The wall clock of Central Europe, with summer time from the last Sunday of March to that of October."""
    summer = _last_sunday(moment.year, 3) <= moment < _last_sunday(moment.year, 10)
    return moment.replace(tzinfo=timezone(timedelta(hours=2 if summer else 1)))


def _last_sunday(year: int, month: int) -> datetime:
    day = datetime(year, month, 31, 2)
    return day - timedelta(days=(day.weekday() + 1) % 7)
