"""The generator: families in order, their templates taking turns, every case proven before it leaves."""

from collections.abc import Iterator
from typing import NamedTuple

from forget_datasets.errors import UserError, unknown
from forget_datasets.forgeteval import engine, languages, screening
from forget_datasets.rows import FAMILIES, GeneratedCase

TOP_K = 10
"""How many texts a system may answer a query with (ForgetEval spec, "The run loop")."""


class Profile(NamedTuple):
    """A usual size of the dataset."""

    n_per_family: int
    distractors: int


PROFILES = {"smoke": Profile(10, 4), "standard": Profile(50, 4), "full": Profile(200, 4), "stress": Profile(50, 50)}


def make_case(lang: str, family: str, template: str, index: int, seed: int = 42, distractors: int = 4) -> GeneratedCase:
    """The case of one address, proven. Index counts within the template, from 0.

    Raises:
        UserError: unknown language, family or template; an index beyond the capacity; too many distractors.
        ScreeningError: the language file lets an ambiguous case through.
    """
    language = languages.load(lang)
    if index < 0 or distractors < 0:
        raise UserError(f"index is {index} and distractors {distractors}; neither can be negative.")
    if family not in language.templates:
        raise unknown("family", family, language.templates)
    if template not in language.templates[family]:
        raise unknown(f"template of {family}", template, language.templates[family])
    case = engine.expand(language, language.templates[family][template], index, seed, distractors)
    screening.require_proof(case)
    return case


def stream_cases(
    n_per_family: int, seed: int = 42, distractors: int = 4, lang: str = "en", start: int = 0
) -> Iterator[GeneratedCase]:
    """The cases `start` to `n_per_family` - 1 of each family, families in order, one at a time.

    Raises UserError as `make_case` does, and for a negative number.
    """
    for name, value in (("n_per_family", n_per_family), ("distractors", distractors), ("start", start)):
        if value < 0:
            raise UserError(f"{name} is {value}; it cannot be negative.")
    for family in FAMILIES:
        templates = list(languages.load(lang).templates[family])
        for i in range(start, n_per_family):
            yield make_case(lang, family, templates[i % len(templates)], i // len(templates), seed, distractors)


def expand_range(n_per_family: int, seed: int, distractors: int, lang: str, places: range) -> Iterator[GeneratedCase]:
    """Those of the 5 x `n_per_family` cases that stand in some places, not yet proven: whoever audits them does that.

    Raises UserError as `make_case`.
    """
    language = languages.load(lang)
    for place in places:
        number, i = divmod(place, n_per_family)
        templates = [*language.templates[FAMILIES[number]].values()]
        index, turn = divmod(i, len(templates))
        yield engine.expand(language, templates[turn], index, seed, distractors)


def generate(n_per_family: int, seed: int = 42, distractors: int = 4, lang: str = "en") -> list[GeneratedCase]:
    """5 x `n_per_family` cases, the same bytes every call (ForgetEval spec, "Deterministic").

    A smaller `n_per_family` gives a subset of a larger one, case for case.
    """
    return list(stream_cases(n_per_family, seed, distractors, lang))
