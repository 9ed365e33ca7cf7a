"""What a user talks about apart from people: scripts of one to four exchanges that hang together."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from forget_datasets.membehave import wording
from forget_datasets.membehave.persona import Persona
from forget_datasets.membehave.wording import Entry, Fit, Occasion
from forget_datasets.seeding import Stream

_LATER = re.compile(r"~(\d*)")
"""Opens a turn that belongs to a later conversation, at least so many days on (two, if it does not say)."""

_SOON = 2

_LATEST = timedelta(days=30)
"""A part that found no conversation for so long after it was due is never told: nobody comes back to it."""


@dataclass(frozen=True, slots=True)
class Script:
    """A topic told in turns (what the user says, what the assistant replies), part after part.

    Parts after the first are told in later conversations, `pauses` days on at least. `fit` is when the first makes
    sense, and for whom. Of `rows` one is drawn as a whole, of each list in `slots` one value, anew for each play.
    """

    id: str
    parts: tuple[tuple[Entry, ...], ...]
    pauses: tuple[int, ...]
    fit: Fit
    slots: Mapping[str, Sequence[str]]
    rows: Sequence[Mapping[str, str]]


class Talk(NamedTuple):
    """Filled turns, to be told together; `later` if they take up an earlier conversation."""

    turns: tuple[Entry, ...]
    later: bool


class _Open(NamedTuple):
    """Parts still to be told, not before that moment."""

    due: datetime
    parts: Sequence[tuple[Entry, ...]]
    pauses: Sequence[int]


@cache
def every() -> tuple[Script, ...]:
    """All scripts of all topic files."""
    return tuple(_script(file, raw) for file in wording.names("topics") for raw in wording.load(file)["scripts"])


class Repertoire:
    """A user's scripts, each with its plays. What was played comes back only when nothing fresh is left."""

    def __init__(self, persona: Persona, *address: object) -> None:
        self._persona = persona
        self._stream = Stream(*address)
        self._scripts = [s for s in every() if s.fit.traits <= persona.tags]
        self._plays = dict.fromkeys((s.id for s in self._scripts), 0)
        self._rows: dict[str, list[int]] = {}
        self._waiting: list[_Open] = []

    def play(self, most: int, occasion: Occasion) -> Talk:
        """The next turns, at most so many: something left open in an earlier conversation, or a new topic."""
        now = occasion.moment
        self._waiting = [w for w in self._waiting if now <= w.due + _LATEST]
        due = [w for w in self._waiting if w.due <= now and len(w.parts[0]) <= most]
        due = [w for w in due if all(turn.suits(occasion) for turn in w.parts[0])]
        if due and self._stream.chance(0.7):
            self._waiting.remove(due[0])
            return Talk(self._begin(due[0].parts, due[0].pauses, now), True)
        script = self._stream.choice([s for s in self._fresh(most, occasion) for _ in s.parts[0]])
        self._plays[script.id] += 1
        return Talk(self._begin(self._filled(script), script.pauses, now), False)

    def _begin(self, parts: Sequence[tuple[Entry, ...]], pauses: Sequence[int], now: datetime) -> tuple[Entry, ...]:
        """The first part; the others are left open for later, from the morning of their day on."""
        if len(parts) > 1:
            morning = now.replace(hour=0, minute=0)
            self._waiting.append(_Open(morning + timedelta(days=pauses[0]), parts[1:], pauses[1:]))
        return parts[0]

    def _fresh(self, most: int, occasion: Occasion) -> list[Script]:
        """The fitting scripts that were played least; one with several rows is as good as new before one without."""
        fitting = [s for s in self._scripts if len(s.parts[0]) <= most and s.fit.suits(occasion)]
        worn = [(self._plays[s.id] // max(1, len(s.rows)), self._plays[s.id]) for s in fitting]
        least = min(worn)
        return [s for s, wear in zip(fitting, worn, strict=True) if wear == least]

    def _filled(self, script: Script) -> list[tuple[Entry, ...]]:
        slots = dict(self._persona.slots) | {k: self._stream.choice(v) for k, v in script.slots.items()}
        if script.rows:
            slots |= script.rows[self._next_row(script)]
        return [tuple(self._fill(turn, slots) for turn in part) for part in script.parts]

    def _fill(self, turn: Entry, slots: Mapping[str, str]) -> Entry:
        text, reply = (wording.fill(template, slots, self._stream) for template in (turn.text, turn.reply))
        return turn._replace(text=wording.capital(text), reply=reply)

    def _next_row(self, script: Script) -> int:
        left = self._rows.get(script.id) or self._stream.sample(range(len(script.rows)), len(script.rows))
        self._rows[script.id] = left[1:]
        return left[0]


def _script(file: str, raw: Mapping[str, Any]) -> Script:
    name = f"{file}:{raw['id']}"
    parts: list[tuple[Entry, ...]] = []
    pauses: list[int] = []
    for turn in wording.entries(name, "turn", raw["turns"]):
        if later := _LATER.match(turn.text):
            parts.append((turn._replace(text=turn.text[later.end() :]),))
            pauses.append(int(later[1] or _SOON))
        else:
            parts[-1:] = [(*parts[-1], turn)] if parts else [(turn,)]
    first, last = raw.get("hours", (0, -1))
    not_on = frozenset(day for turn in parts[0] for day in turn.fit.not_on)
    fit = Fit(
        frozenset(raw.get("months", [])), frozenset(range(first, last + 1)), frozenset(raw.get("needs", [])), not_on
    )
    return Script(name, tuple(parts), tuple(pauses), fit, raw.get("slots", {}), raw.get("rows", []))
