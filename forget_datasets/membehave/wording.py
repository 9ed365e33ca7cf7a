"""Phrases from data files: loading, choosing, filling. It knows no sentence and no fact."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from forget_datasets.seeding import Stream

_CHOICE = re.compile(r"\[([^\[\]|]*(?:\|[^\[\]|]*)+)\]")
_SLOT = re.compile(r"\{(\w+)\}")
_SENTENCE = re.compile(r"^(\W*)(\w)")
_ENDED = re.compile(r"[.!?]\"?$|\)$")
_TAG = re.compile(r"<([^<>]*)> ")
_SPAN = re.compile(r"(\d+)(?:-(\d+))?")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEKDAY = re.compile(rf"\b({'|'.join(_WEEKDAYS)})\b")


class Occasion(NamedTuple):
    """When something is said, and what holds then: traits of the user, and what the message is there for."""

    moment: datetime
    traits: frozenset[str]

    def also(self, *traits: str) -> "Occasion":
        """The occasion with further traits."""
        return Occasion(self.moment, self.traits.union(traits))


class Fit(NamedTuple):
    """When a phrase fits: months and hours (empty: all of them), traits that must hold, weekdays that it must not be.

    "On Saturday" is said on any day but a Saturday, so a phrase that names a day is not for that day.
    """

    months: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    traits: frozenset[str] = frozenset()
    not_on: frozenset[int] = frozenset()

    def suits(self, occasion: Occasion) -> bool:
        """Whether one would say it then."""
        month, hour = occasion.moment.month, occasion.moment.hour
        timely = (not self.months or month in self.months) and (not self.hours or hour in self.hours)
        return timely and occasion.moment.weekday() not in self.not_on and self.traits <= occasion.traits


class Entry(NamedTuple):
    """One entry of a phrase file: where it stands, what the user says, what the assistant replies ("" if nothing)."""

    id: str
    text: str
    reply: str = ""
    fit: Fit = Fit()

    def suits(self, occasion: Occasion) -> bool:
        """Whether one would say it then."""
        return self.fit.suits(occasion)


@cache
def load(name: str) -> dict[str, Any]:
    """The parsed phrase file of that name, e.g. `kinds/club.toml`."""
    return tomllib.loads((resources.files(__package__) / "phrases" / name).read_text(encoding="utf-8"))


@cache
def names(folder: str) -> tuple[str, ...]:
    """The phrase files of a folder, sorted."""
    found = (resources.files(__package__) / "phrases" / folder).iterdir()
    return tuple(sorted(f"{folder}/{path.name}" for path in found if path.name.endswith(".toml")))


@cache
def section(file: str, name: str) -> tuple[Entry, ...]:
    """The entries of a list of a phrase file."""
    return entries(file, name, load(file)[name])


def entries(file: str, section: str, raw: Iterable[Any]) -> tuple[Entry, ...]:
    """The entries of a list of texts, or of pairs of a text and its reply; a text may begin with when it fits.

    Raises ValueError for a tag such as `<months 5>` that says something else.
    """
    found = []
    for i, item in enumerate(raw):
        text, reply = (item, "") if isinstance(item, str) else item
        tag = _TAG.match(text)
        text = text[tag.end() :] if tag else text
        found.append(Entry(f"{file}:{section}:{i}", text, reply, _fit(tag[1] if tag else "", text)))
    return tuple(found)


def weekdays(text: str) -> frozenset[int]:
    """The weekdays that a text names (Monday is 0); "Mondays" names none in particular."""
    return frozenset(_WEEKDAYS.index(day) for day in _WEEKDAY.findall(text))


def _fit(tag: str, text: str) -> Fit:
    months: set[int] = set()
    hours: set[int] = set()
    traits = set()
    for part in filter(None, tag.split(", ")):
        word, *spans = part.split(" ")
        if word == "months" and spans:
            months |= _span(spans, 1, 12)
        elif word == "hours" and spans:
            hours |= _span(spans, 0, 23)
        elif word.isalpha() and word not in ("months", "hours") and not spans:
            traits.add(word)
        else:
            raise ValueError(f"{tag!r} of {text!r}: give months or hours with numbers, or a single word, by commas")
    return Fit(frozenset(months), frozenset(hours), frozenset(traits), weekdays(text))


def _span(spans: Iterable[str], low: int, high: int) -> set[int]:
    """The numbers of spans such as 2-4 and 11-1, which run over the end."""
    found = set()
    for span in spans:
        ends = _SPAN.fullmatch(span)
        if ends is None or not all(low <= int(end or low) <= high for end in ends.groups()):
            raise ValueError(f"{span!r} is no span of {low} to {high}")
        first, last = int(ends[1]), int(ends[2] or ends[1])
        size = high - low + 1
        found |= {low + (first - low + i) % size for i in range((last - first) % size + 1)}
    return found


def fill(template: str, slots: Mapping[str, str], stream: Stream) -> str:
    """A template as text: `[this|that]` is one of its parts, `{slot}` a value, `{Slot}` the value with a capital.

    Raises KeyError for a slot without a value.
    """
    while (found := _CHOICE.search(template)) is not None:
        template = template[: found.start()] + stream.choice(found[1].split("|")) + template[found.end() :]
    return _SLOT.sub(lambda slot: _value(slot[1], slots), template)


def capital(text: str) -> str:
    """The text with its first letter in upper case."""
    return _SENTENCE.sub(lambda found: found[1] + found[2].upper(), text, count=1)


def lower(text: str, keep: frozenset[str]) -> str:
    """The text with its first letter in lower case, unless the first word is one of `keep`, an "I" or an acronym."""
    word = re.split(r"[^\w]", text, maxsplit=1)[0]
    if word in keep or word in ("I", "") or word[1:] != word[1:].lower():
        return text
    return text[0].lower() + text[1:]


def follow(lead: str, text: str, keep: frozenset[str]) -> str:
    """`text` after `lead`; it starts small unless the lead ends a sentence."""
    return f"{lead} {capital(text) if lead[-1] in '.!?' else lower(text, keep)}"


def ended(text: str) -> str:
    """The text with a full stop, unless it ends with a sign of its own, be it within quotation marks."""
    return text if _ENDED.search(text) else f"{text}."


def _value(key: str, slots: Mapping[str, str]) -> str:
    return slots[key] if key in slots else capital(slots[key[0].lower() + key[1:]])


def _anything(entry: Entry) -> bool:
    return True


class Deck:
    """Entries drawn in a seeded order, each once before any comes again, so that none is worn out.

    One that does not suit waits on top until it does.
    """

    def __init__(self, options: Sequence[Entry], *address: object) -> None:
        if not options:
            raise ValueError(f"no phrases to draw from at {address}")
        self._options = options
        self._stream = Stream(*address)
        self._left: list[Entry] = []

    def draw(self, suits: Callable[[Entry], bool] = _anything) -> Entry:
        """The next entry that suits. Raises ValueError if none does."""
        place = self._place(suits)
        if place is None:
            self._left = self._stream.sample(self._options, len(self._options)) + self._left
            place = self._place(suits)
        if place is None:
            raise ValueError(f"none of {self._options} suits")
        return self._left.pop(place)

    def _place(self, suits: Callable[[Entry], bool]) -> int | None:
        """Where the topmost entry is that suits."""
        return next((i for i in reversed(range(len(self._left))) if suits(self._left[i])), None)


class Decks:
    """One deck a list of phrases, made when first asked for."""

    def __init__(self, *address: object) -> None:
        self._address = address
        self._decks: dict[str, Deck] = {}

    def draw(self, name: str, options: Sequence[Entry], suits: Callable[[Entry], bool] = _anything) -> Entry:
        """The next entry that suits of the list known by `name`."""
        if name not in self._decks:
            self._decks[name] = Deck(options, *self._address, name)
        return self._decks[name].draw(suits)
