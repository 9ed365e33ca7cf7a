"""Phrases from data files: loading, choosing, filling. It knows no sentence and no fact."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from forget_datasets.seeding import Stream

_CHOICE = re.compile(r"\[([^\[\]|]*(?:\|[^\[\]|]*)+)\]")
_SLOT = re.compile(r"\{(\w+)\}")
_SENTENCE = re.compile(r"^(\W*)(\w)")


class Entry(NamedTuple):
    """One entry of a phrase file: where it stands, what the user says, what the assistant replies ("" if nothing)."""

    id: str
    text: str
    reply: str = ""


@cache
def load(name: str) -> dict[str, Any]:
    """The parsed phrase file of that name, e.g. `kinds/club.toml`."""
    return tomllib.loads((resources.files(__package__) / "phrases" / name).read_text(encoding="utf-8"))


@cache
def names(folder: str) -> tuple[str, ...]:
    """The phrase files of a folder, sorted."""
    found = (resources.files(__package__) / "phrases" / folder).iterdir()
    return tuple(sorted(f"{folder}/{path.name}" for path in found if path.name.endswith(".toml")))


def entries(file: str, section: str, raw: Iterable[Any]) -> tuple[Entry, ...]:
    """The entries of a list of texts, or of pairs of a text and its reply."""
    return tuple(
        Entry(f"{file}:{section}:{i}", *([text] if isinstance(text, str) else text)) for i, text in enumerate(raw)
    )


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
    """The text with a full stop, unless it ends with a sign of its own."""
    return text if text[-1] in ".!?)" else f"{text}."


def _value(key: str, slots: Mapping[str, str]) -> str:
    return slots[key] if key in slots else capital(slots[key[0].lower() + key[1:]])


class Deck:
    """Entries drawn in a seeded order, each once before any comes again, so that none is worn out."""

    def __init__(self, options: Sequence[Entry], *address: object) -> None:
        if not options:
            raise ValueError(f"no phrases to draw from at {address}")
        self._options = options
        self._stream = Stream(*address)
        self._left: list[Entry] = []

    def draw(self) -> Entry:
        """The next entry."""
        if not self._left:
            self._left = self._stream.sample(self._options, len(self._options))
        return self._left.pop()


class Decks:
    """One deck a list of phrases, made when first asked for."""

    def __init__(self, *address: object) -> None:
        self._address = address
        self._decks: dict[str, Deck] = {}

    def draw(self, name: str, options: Sequence[Entry]) -> Entry:
        """The next entry of the list known by `name`."""
        if name not in self._decks:
            self._decks[name] = Deck(options, *self._address, name)
        return self._decks[name].draw()
