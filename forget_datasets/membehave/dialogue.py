"""The gold graph told: planned conversations become messages, and each stated edge knows its message."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from forget_datasets.membehave import kinds, naming, wording
from forget_datasets.membehave.gold import Acquaintance, Edge, Gold
from forget_datasets.membehave.kinds import Entity
from forget_datasets.membehave.naming import entity_slots, merged, person_slots
from forget_datasets.membehave.persona import Persona
from forget_datasets.membehave.plan import Event, Slot
from forget_datasets.membehave.topics import Repertoire, Talk
from forget_datasets.membehave.wording import Decks, Entry, Occasion
from forget_datasets.membehave.world import World
from forget_datasets.seeding import Stream


@dataclass(slots=True)
class Exchange:
    """What the user says and what the assistant replies, with the phrase entries that each was made of."""

    text: str
    reply: str
    entries: list[str]
    reply_entries: list[str]
    edges: tuple[Edge, ...] = ()
    about_people: bool = False
    ordinary: bool = False  # of a script: may carry an aside
    opened: bool = False  # has its opener: a greeting, words for a change of topic, or those that go with an aside

    @classmethod
    def of(cls, entry: Entry, text: str, reply: str) -> "Exchange":
        """The exchange that one entry made."""
        return cls(text, reply, [entry.id], [entry.id] if reply else [])

    @property
    def asks(self) -> bool:
        """Whether the user asks something."""
        return "?" in self.text

    def open(self, entry: Entry, text: str) -> None:
        """The message becomes `text`, with the words of an opener in it."""
        self.text, self.opened = text, True
        self.entries.insert(0, entry.id)

    def add_reply(self, entry: Entry, text: str) -> None:
        """The assistant goes on."""
        self.reply = f"{self.reply} {text}" if self.reply else text
        self.reply_entries.append(entry.id)


@dataclass(slots=True)
class Segment:
    """Exchanges that stay together in a conversation: a script, or an event of its own."""

    exchanges: list[Exchange]
    event: Event | None = None
    later: bool = False  # takes up an earlier conversation

    @property
    def answers(self) -> bool:
        """Whether it answers the assistant's question of the exchange before."""
        return self.event is not None and self.event.mode == "hook"


@dataclass(slots=True)
class Teller:
    """Tells one user's history, conversation by conversation, in order of time."""

    world: World
    gold: Gold
    persona: Persona
    address: tuple[object, ...]
    stream: Stream = field(init=False)
    _decks: Decks = field(init=False)
    _names: naming.Names = field(init=False)
    _repertoire: Repertoire = field(init=False)
    _proper: frozenset[str] = field(init=False)
    _told: dict[str, list[Edge]] = field(init=False, default_factory=dict)
    _now: Occasion = field(init=False)

    def __post_init__(self) -> None:
        self.stream = Stream(*self.address, "dialogue")
        self._decks = Decks(*self.address, "deck")
        self._names = naming.Names(Stream(*self.address, "names"))
        self._repertoire = Repertoire(self.persona, *self.address, "topics")
        self._proper = naming.proper_words(self.world) | self.persona.proper

    def tell(self, slot: Slot) -> list[Exchange]:
        """The exchanges of a planned conversation."""
        self._now = Occasion(slot.start, self.persona.tags)
        scripts = self._ordinary(slot.length - slot.extra)
        alone = [self._alone(e) for e in slot.events if e.mode in ("ask", "recall", "pair", "echo")]
        segments = self._ordered(scripts, alone)
        for mode, tell in (("aside", self._aside), ("hook", self._hook)):  # what a hook asks ends the reply
            for event in slot.events:
                if event.mode == mode:
                    tell(event, segments)
        self._connect(segments)
        self._remember(slot.events)
        exchanges = [exchange for segment in segments for exchange in segment.exchanges]
        for exchange in exchanges:
            exchange.text = self.persona.types(exchange.text, self._proper, self.stream)
        return exchanges

    # Ordinary talk

    def _ordinary(self, exchanges: int) -> list[Segment]:
        """Scripts of so many exchanges; more than two make at least two topics."""
        found: list[Segment] = []
        while exchanges:
            talk = self._repertoire.play(exchanges if found or exchanges < 3 else exchanges - 1, self._now)
            found.append(self._script(talk))
            exchanges -= len(talk.turns)
        return found

    def _script(self, talk: Talk) -> Segment:
        exchanges = [Exchange.of(turn, turn.text, turn.reply) for turn in talk.turns]
        for exchange in (exchanges[0], exchanges[-1]):
            exchange.ordinary = True
        return Segment(exchanges, later=talk.later)

    # Events with exchanges of their own

    def _alone(self, event: Event) -> Segment:
        if event.mode == "pair":
            return Segment(self._pair(event), event)
        if event.mode == "echo":
            return Segment([self._echo(event)], event)
        return Segment([self._ask(event)], event)

    def _ask(self, event: Event) -> Exchange:
        """A request about a person; it states the edge, if the event has one, or the reply brings up an earlier one."""
        who = event.people[0]
        recalled = self._told.get(who.person.name, []) if event.mode == "recall" else []
        recalled = [edge for edge in recalled if kinds.every()[edge.entity.kind].clauses]
        if event.edges:
            entry = self._of_kind(event.edges[0].entity, "asks")
        elif recalled:
            entry = self._of_mentions("recalls")
        else:
            entry = self._of_mentions("asks")
        slots = self._slots(event, entry)
        exchange = Exchange.of(entry, self._fill(entry.text, slots), "")
        if recalled:
            edge = self.stream.choice(recalled)
            clause = self._of_kind(edge.entity, "clauses")
            slots["clause"] = self._fill(clause.text, merged(slots, entity_slots(edge.entity)))
            exchange.reply_entries.append(clause.id)
        exchange.add_reply(entry, self._fill(entry.reply, slots))
        return _about(exchange, event.edges)

    def _pair(self, event: Event) -> list[Exchange]:
        """A plain mention, to which the assistant asks about the person, and the user's answer states the edge."""
        edge = event.edges[0]
        mention = self._ask(Event("ask", event.people))
        prompt = self._of_kind(edge.entity, "prompts")
        mention.add_reply(prompt, self._fill(prompt.text, self._slots(event, prompt)))
        entry = self._of_kind(edge.entity, "answers")
        answer = Exchange.of(entry, self._fill(entry.text, self._slots(event, entry)), "")
        self._take_note(answer, event, entry, always=True)
        return [mention, _about(answer, event.edges)]

    def _echo(self, event: Event) -> Exchange:
        assert event.entity is not None
        entry = self._of_kind(event.entity, "echoes")
        slots = entity_slots(event.entity)
        return Exchange.of(entry, self._fill(entry.text, slots), self._fill(entry.reply, slots))

    # Events within ordinary talk

    def _hook(self, event: Event, segments: list[Segment]) -> None:
        """The assistant asks whether there is anything else, and the user has something to tell."""
        followers = [*segments[1:], None]
        place = 1 + self.stream.choice([i for i, s in enumerate(followers) if s is None or not s.answers])
        before = segments[place - 1].exchanges[-1]
        hook = self._of("hooks", "hooks")
        lead = self._of("hooks", "leads")
        before.add_reply(hook, hook.text)
        entry = self._telling(event)
        text = self._fill(entry.text, self._slots(event, entry))
        exchange = Exchange.of(entry, text, "")
        exchange.open(lead, wording.follow(lead.text, text, self._proper))
        self._take_note(exchange, event, entry, always=True)
        segments.insert(place, Segment([_about(exchange, event.edges)], event))

    def _aside(self, event: Event, segments: list[Segment]) -> None:
        """In an ordinary message: before it, if a topic starts there, else after it."""
        free = [x for s in segments for x in s.exchanges if x.ordinary and not x.about_people]
        exchange = self.stream.choice(free)
        entry = self._telling(event)
        told = self._fill(entry.text, self._slots(event, entry))
        starts = any(exchange is s.exchanges[0] for s in segments)
        if starts and self.stream.chance(0.5):
            bridge = self._of("asides", "bridges", *(["asking"] if exchange.asks else []))
            told = wording.ended(wording.capital(told))
            exchange.open(bridge, f"{told} {wording.follow(bridge.text, exchange.text, self._proper)}")
        elif self.stream.chance(0.75):
            opener = self._of("asides", "openers")
            told = wording.follow(opener.text, told, self._proper)
            exchange.open(opener, f"{wording.ended(exchange.text)} {told}")
        else:
            exchange.text = f"{wording.ended(exchange.text)} {wording.capital(told)}"
        exchange.entries.append(entry.id)
        self._take_note(exchange, event, entry)
        _about(exchange, event.edges)

    def _telling(self, event: Event) -> Entry:
        if not event.edges:
            return self._of_mentions("asides")
        return self._of_kind(event.edges[0].entity, "both" if len(event.edges) == 2 else "asides")

    def _take_note(self, exchange: Exchange, event: Event, told: Entry, always: bool = False) -> None:
        """The assistant says something to what was told, always or now and then, and restates it where planned."""
        if len(event.edges) != 1 or not (event.restate or always or self.stream.chance(0.3)):
            return
        text = self._fill(told.reply, self._slots(event, told))
        if exchange.reply:
            seam = self._of("asides", "seams")
            exchange.reply_entries.append(seam.id)
            text = wording.follow(seam.text, text, self._proper)
        exchange.add_reply(told, text)
        if event.restate:
            entry = self._of_kind(event.edges[0].entity, "restates")
            exchange.add_reply(entry, self._fill(entry.text, self._slots(event, entry)))

    # Order and seams

    def _ordered(self, scripts: list[Segment], alone: list[Segment]) -> list[Segment]:
        """Events of their own fall between the scripts, seldom before the first."""
        segments = list(scripts)
        for segment in alone:
            first = 0 if self.stream.chance(0.25) else 1
            segments.insert(first + self.stream.below(len(segments) + 1 - first), segment)
        return segments

    def _connect(self, segments: list[Segment]) -> None:
        """A greeting by the time of day, and words for a change of topic, where the message has no opener yet."""
        for i, segment in enumerate(segments):
            first = segment.exchanges[0]
            if not first.opened and self.stream.chance(0.6):
                entry = self._turn(segment, segments[i - 1].exchanges[-1]) if i else self._of("openings", "greetings")
                first.open(entry, wording.follow(entry.text, first.text, self._proper))

    def _turn(self, segment: Segment, before: Exchange) -> Entry:
        """Words for a change of topic, with thanks only for the answer to a question."""
        if segment.later:
            return self._of("openings", "updates")
        traits = ["asking"] if segment.exchanges[0].asks else []
        return self._of("openings", "turns", *traits, *(["thanks"] if before.asks else []))

    def _remember(self, events: Sequence[Event]) -> None:
        for event in events:
            if len(event.edges) == 1:
                self._told.setdefault(event.people[0].person.name, []).append(event.edges[0])

    # Phrases

    def _slots(self, event: Event, entry: Entry) -> dict[str, str]:
        who = event.people[0]
        slots = person_slots(who.person, self._call(who, entry, event.unnamed))
        if len(event.people) == 2:
            slots["other"] = self._call(event.people[1], entry)
        if event.edges:
            slots |= entity_slots(event.edges[0].entity)
        return slots

    def _call(self, who: Acquaintance, entry: Entry, unnamed: bool = False) -> str:
        return self._names.call(who, entry.text, unnamed)

    def _fill(self, template: str, slots: Mapping[str, str]) -> str:
        return wording.fill(template, slots, self.stream)

    def _of_kind(self, entity: Entity, section: str) -> Entry:
        options: tuple[Entry, ...] = getattr(kinds.every()[entity.kind], section)
        return self._decks.draw(f"{entity.kind}:{section}", options, self._suits())

    def _of_mentions(self, section: str) -> Entry:
        return self._of("mentions", section)

    def _of(self, file: str, section: str, *traits: str) -> Entry:
        """The next entry that fits now; `traits` hold for this message beside those of the user."""
        options = wording.section(f"{file}.toml", section)
        return self._decks.draw(f"{file}:{section}", options, self._suits(*traits))

    def _suits(self, *traits: str) -> Callable[[Entry], bool]:
        occasion = self._now.also(*traits)
        return lambda entry: entry.suits(occasion)


def _about(exchange: Exchange, edges: tuple[Edge, ...]) -> Exchange:
    exchange.edges += edges
    exchange.about_people = True
    return exchange
