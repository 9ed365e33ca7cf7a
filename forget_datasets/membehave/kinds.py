"""The kinds of entities that people share in life, each with its phrases: one data file a kind."""

from dataclasses import dataclass, fields
from functools import cache
from typing import NamedTuple

from forget_datasets.membehave import wording
from forget_datasets.membehave.wording import Entry


class Entity(NamedTuple):
    """Something that people touch. The distinctive token stands between asterisks in the data file.

    `aliases` is what it is called for short; `day` the weekday on which it meets, should a phrase ask.
    """

    name: str
    kind: str
    aliases: tuple[str, ...]
    day: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of entity with everything that is ever said about one.

    asides    in the middle of something else, and what the assistant says to it, naming neither person nor entity
    asks      with a request of its own, and the reply    restates  the assistant says the fact back, whatever it was
    prompts   the assistant asks about a person           answers   the user's answer, and what the assistant says to it
    both      names two people at one entity              echoes    about the entity, naming nobody, and the reply
    clauses   the fact as a clause, for later             questions, confirms  probes
    """

    name: str
    entities: tuple[Entity, ...]
    asides: tuple[Entry, ...]
    asks: tuple[Entry, ...]
    prompts: tuple[Entry, ...]
    answers: tuple[Entry, ...]
    both: tuple[Entry, ...]
    echoes: tuple[Entry, ...]
    restates: tuple[Entry, ...]
    clauses: tuple[Entry, ...]
    questions: tuple[Entry, ...]
    confirms: tuple[Entry, ...]


@cache
def every() -> dict[str, Kind]:
    """All kinds by name, in the order of their files."""
    return {kind.name: kind for kind in map(_read, wording.names("kinds"))}


def _read(file: str) -> Kind:
    raw = wording.load(file)
    name = file.removeprefix("kinds/").removesuffix(".toml")
    lists = [f.name for f in fields(Kind) if f.name not in ("name", "entities")]
    return Kind(
        name,
        tuple(_entity(name, marked) for marked in raw["entities"]),
        **{section: wording.entries(file, section, raw[section]) for section in lists},
    )


def _entity(kind: str, marked: str) -> Entity:
    """The entity of a name such as `*Harbor* Book Club`: its short form is what the asterisks hold."""
    _, token, _ = marked.split("*")
    name = marked.replace("*", "")
    return Entity(name, kind, (token,) if token != name else ())
