"""Languages as data: a TOML file becomes pools, phrasings and templates. Nothing here knows any language.

The format is described in CONTRIBUTING.md, "Add a language".
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from string import Formatter
from typing import Any

from forget_datasets.errors import UserError, unknown
from forget_datasets.forgeteval.pools import Listed, Patterned, Pool
from forget_datasets.rows import FAMILIES, OPERATIONS

Phrasings = tuple[str, ...]
_NOUNS = {str: "string", list: "list", dict: "table"}
_TEMPLATE_KEYS = {
    "slots", "extras", "facts", "bystander", "mutations", "question", "require", "forbid", "leaks", "survivors",
    "aligned",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MutationForm:
    """A mutation before its slots are filled; `text` is empty but for a supersede."""

    op: str
    query: Phrasings
    text: Phrasings


@dataclass(frozen=True, slots=True)
class SurvivorForm:
    """A survivor probe before its slots are filled."""

    question: Phrasings
    require: str


@dataclass(frozen=True)
class Template:
    """One sub-template of a family in one language."""

    family: str
    name: str
    slots: Mapping[str, str]
    extras: Mapping[str, str]
    facts: tuple[Phrasings, ...]
    bystander: tuple[Phrasings, ...]
    mutations: tuple[MutationForm, ...]
    question: Phrasings
    require: Phrasings
    forbid: Phrasings
    leaks: tuple[Phrasings, ...]
    survivors: tuple[SurvivorForm, ...]
    aligned: bool

    @property
    def checked(self) -> Phrasings:
        """The forms of all strings that a verdict looks for."""
        return (*self.require, *self.forbid, *(s.require for s in self.survivors))

    def phrasings(self) -> Iterator[str]:
        """Every text of the template, slots unfilled."""
        for group in (*self.facts, *self.bystander, self.question, *self.leaks):
            yield from group
        for mutation in self.mutations:
            yield from (*mutation.query, *mutation.text)
        for survivor in self.survivors:
            yield from survivor.question


@dataclass(frozen=True)
class Language:
    """All data of one language."""

    tag: str
    name: str
    pools: Mapping[str, Pool]
    distractors: tuple[str, ...]
    templates: Mapping[str, Mapping[str, Template]]

    def capacity(self, template: Template) -> int:
        """How many distinct cases the slots of a template can make; extras and phrasings do not count."""
        return self._capacities[template.family, template.name]

    @cached_property
    def _capacities(self) -> dict[tuple[str, str], int]:
        return {
            (t.family, t.name): self._combinations(t) for family in self.templates.values() for t in family.values()
        }

    def _combinations(self, template: Template) -> int:
        total, used = 1, dict.fromkeys(self.pools, 0)
        for pool in template.slots.values():
            total *= self.pools[pool].size - used[pool]
            used[pool] += 1
        return total

    @cached_property
    def folded_distractors(self) -> tuple[str, ...]:
        """The distractors ready for `screening.meets`."""
        return tuple(fold(text) for text in self.distractors)


def fold(text: str) -> str:
    """A text as both of its caseless forms, so that one search sees either."""
    lower = text.lower()
    if text.isascii() or lower == (casefold := text.casefold()):
        return lower
    return f"{lower}\n{casefold}"


def forms(string: str) -> tuple[str, ...]:
    """What of a string is looked for in folded texts: its caseless forms, mostly one and the same."""
    lower = string.lower()
    return (lower,) if string.isascii() else (lower, string.casefold())


def slots_of(phrase: str) -> list[str]:
    """The slot names of a phrasing, in order."""
    return [field for _, field, _, _ in Formatter().parse(phrase) if field is not None]


def available() -> list[str]:
    """The tags of all languages, in alphabetical order."""
    found = (entry.name for entry in files(__name__).iterdir())
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


@lru_cache
def load(tag: str) -> Language:
    """The language of a BCP 47 tag. Raises UserError for an unknown one or a file that breaks the format."""
    if tag not in available():
        raise unknown("language", tag, available())
    text = (files(__name__) / f"{tag}.toml").read_text(encoding="utf-8")
    language = parse(text, source=f"{tag}.toml")
    if language.tag != tag:
        raise UserError(f"{tag}.toml: its tag is '{language.tag}'; it must be that of the file's name")
    return language


def parse(text: str, source: str) -> Language:
    """A language from the text of its file. Raises UserError naming `source` and the place."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{source}: {error}") from error
    _require_shape(data, source)
    pools: dict[str, Pool] = {name: Listed(values) for name, values in data.get("pools", {}).items()}
    for name, pattern in data.get("patterns", {}).items():
        pools[name] = Patterned([pattern] if isinstance(pattern, str) else pattern)
    templates: dict[str, dict[str, Template]] = {}
    for family in FAMILIES:
        entries = data.get("templates", {}).get(family, {})
        if not entries:
            raise UserError(f"{source}: family '{family}' has no template")
        templates[family] = {
            name: _template(entry, family, name, pools, f"{source}, templates.{family}.{name}")
            for name, entry in entries.items()
        }
    return Language(data["tag"], data["name"], pools, tuple(data["distractors"]), templates)


def _require_shape(data: Mapping[str, Any], source: str) -> None:
    for key, wanted in (("tag", str), ("name", str), ("distractors", list), ("pools", dict), ("templates", dict)):
        if not isinstance(data.get(key), wanted):
            raise UserError(f"{source}: key '{key}' is missing or no {_NOUNS[wanted]}")
    for name, values in data["pools"].items():
        if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
            raise UserError(f"{source}: pool '{name}' is no list of strings")


def _phrasings(value: Any, place: str) -> Phrasings:
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise UserError(f"{place}: {value!r} is no list of phrasings")
    return tuple(value)


def _template(entry: Mapping[str, Any], family: str, name: str, pools: Mapping[str, Pool], place: str) -> Template:
    if strange := sorted(set(entry) - _TEMPLATE_KEYS):
        raise UserError(f"{place}: unknown key '{strange[0]}' (known: {', '.join(sorted(_TEMPLATE_KEYS))})")
    try:
        template = Template(
            family,
            name,
            slots=entry["slots"],
            extras=entry.get("extras", {}),
            facts=tuple(_phrasings(group, place) for group in entry["facts"]),
            bystander=tuple(_phrasings(group, place) for group in entry.get("bystander", [])),
            mutations=tuple(
                MutationForm(m["op"], _phrasings(m["query"], place), tuple(m.get("text", ())))
                for m in entry["mutations"]
            ),
            question=_phrasings(entry["question"], place),
            require=tuple(entry.get("require", ())),
            forbid=tuple(entry["forbid"]),
            leaks=tuple(_phrasings(group, place) for group in entry["leaks"]),
            survivors=tuple(SurvivorForm(_phrasings(s["question"], place), s["require"]) for s in entry["survivors"]),
            aligned=entry.get("aligned", False),
        )
    except KeyError as error:
        raise UserError(f"{place}: key {error} is missing") from error
    except TypeError as error:
        raise UserError(f"{place}: a value has the wrong type ({error})") from error
    _check(template, pools, place)
    return template


def _check(template: Template, pools: Mapping[str, Pool], place: str) -> None:
    slots = {**template.slots, **template.extras}
    for slot, pool in slots.items():
        if pool not in pools:
            raise UserError(f"{place}: slot '{slot}' names the pool '{pool}', which the file does not have")
    for pool in set(slots.values()):
        if list(slots.values()).count(pool) > pools[pool].size:
            raise UserError(f"{place}: pool '{pool}' has too few values for its slots")
    for phrase in (*template.phrasings(), *template.checked):
        try:
            names = slots_of(phrase)
        except ValueError as error:
            raise UserError(f"{place}: '{phrase}' has an unbalanced brace ({error})") from error
        for slot in names:
            if slot not in slots:
                raise UserError(f"{place}: '{phrase}' uses the slot '{slot}', which slots and extras do not have")
    for mutation in template.mutations:
        if mutation.op not in OPERATIONS:
            raise UserError(f"{place}: unknown op '{mutation.op}' (known: {', '.join(OPERATIONS)})")
        if bool(mutation.text) != (mutation.op == "supersede"):
            raise UserError(f"{place}: a supersede has a text, a {mutation.op} must not")
    if len(template.leaks) != len(template.forbid):
        raise UserError(
            f"{place}: leaks has {len(template.leaks)} lists of phrasings; "
            f"it needs one for each string of forbid, of which there are {len(template.forbid)}"
        )
    for form, group in zip(template.forbid, template.leaks, strict=True):
        for phrase in group:
            if form not in phrase:
                raise UserError(f"{place}: the leak query '{phrase}' must name '{form}'")
    lengths = {len(g) for g in (*template.facts, *(m.text for m in template.mutations if m.text))}
    if template.aligned and len(lengths) != 1:
        raise UserError(f"{place}: aligned, but its facts and texts have {sorted(lengths)} phrasings")
