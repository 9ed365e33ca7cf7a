"""Who the user is: traits that decide which topics fit, small constants of a life, and a way of typing."""

from collections.abc import Mapping
from dataclasses import dataclass

from forget_datasets.membehave import wording
from forget_datasets.seeding import Stream

VOICES = ("neat", "neat", "casual", "hurried")


@dataclass(frozen=True, slots=True)
class Persona:
    """A user's traits (`tags`), the values that its topics may name (`slots`), and its voice."""

    tags: frozenset[str]
    slots: Mapping[str, str]
    voice: str

    @property
    def proper(self) -> frozenset[str]:
        """Words of this life that keep their capital, such as the name of the dog."""
        return frozenset(self.slots.values()) | frozenset(wording.load("persona.toml")["proper"])

    def types(self, text: str, keep: frozenset[str], stream: Stream) -> str:
        """The text as this user types it: a neat voice with capitals and stops, the others now and then without."""
        if self.voice == "neat":
            return wording.ended(wording.capital(text))
        careless = {"casual": 0.35, "hurried": 0.75}[self.voice]
        if stream.chance(careless):
            text = wording.lower(text, keep)
        if stream.chance(careless) and text.endswith(".") and not text.endswith(".."):
            text = text[:-1]
        return text


def draw_persona(stream: Stream) -> Persona:
    """One option of each trait of the persona file, and one value of each of its slots."""
    tags: list[str] = []
    slots: dict[str, str] = {}
    for trait in wording.load("persona.toml")["traits"]:
        option = stream.choice(trait["options"])
        tags += option.get("tags", [])
        slots |= {name: stream.choice(values) for name, values in option.get("slots", {}).items()}
    return Persona(frozenset(tags), slots, stream.choice(VOICES))
