"""Finds the people named in a request, by its capital letters alone: whoever serves a request knows no dataset."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby

# Letters, with apostrophes and hyphens inside, and the full stop of an abbreviation.
_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*\.?")
_POSSESSIVE = re.compile(r"['’]s$")


@dataclass(frozen=True, slots=True)
class _Lexicon:
    ordinary: frozenset[str]
    titles: frozenset[str]
    particles: frozenset[str]


def people(request: str) -> list[str]:
    """The names of the people in a request, as they are written there, in their order, none twice.

    A name is a run of two or more capitalised words with nothing but a space between them ("Maya Okonkwo", "Inês de
    la Cruz", "Anne-Marie O'Neil"). Words of `names.toml` that are capitalised for another reason (at the head of a
    sentence, say) end a run, titles are cut off, and so is a possessive ending. Only where there is no such run,
    single capitalised words count. So a request in lower case names nobody, and "Harbor Book Club" passes for a
    person: requests should name people.
    """
    runs = [run for run in map(_trimmed, _runs(request)) if run]
    full = [run for run in runs if len(run) > 1]
    return list(dict.fromkeys(" ".join(run) for run in full or runs))


def spoken(name: str) -> list[str]:
    """The forms under which a person is looked for: the full name, then the first name."""
    return list(dict.fromkeys([name, name.split()[0]]))


def _runs(request: str) -> list[list[str]]:
    """Words that follow each other with only spaces between, cut where one cannot be part of a name."""
    lexicon = _lexicon()
    runs: list[list[str]] = []
    end = -1
    for match in _WORD.finditer(request):
        adjacent = end >= 0 and request[end : match.start()].isspace()
        word = match[0].rstrip(".")
        abbreviated = match[0].endswith(".") and (len(word) == 1 or word.casefold() in lexicon.titles)
        end = match.end() if abbreviated else match.start() + len(word)
        if not runs or not adjacent:
            runs.append([])
        runs[-1].append(match[0] if abbreviated else word)
    return [list(part) for run in runs for inside, part in groupby(run, lambda w: _may_name(w, lexicon)) if inside]


def _may_name(word: str, lexicon: _Lexicon) -> bool:
    if word in lexicon.particles:
        return True
    return word[0].isupper() and not {word.casefold(), _POSSESSIVE.sub("", word).casefold()} & lexicon.ordinary


def _trimmed(run: list[str]) -> list[str]:
    """A run without titles and particles at its head, particles at its end, and the possessive of its last word."""
    lexicon = _lexicon()
    start, end = 0, len(run)
    while start < end and (run[start].rstrip(".").casefold() in lexicon.titles or run[start] in lexicon.particles):
        start += 1
    while end > start and run[end - 1] in lexicon.particles:
        end -= 1
    kept = run[start:end]
    return [*kept[:-1], _POSSESSIVE.sub("", kept[-1])] if kept else []


@cache
def _lexicon() -> _Lexicon:
    data = tomllib.loads((files(__package__) / "names.toml").read_text(encoding="utf-8"))
    return _Lexicon(*(frozenset(data[key]) for key in ("ordinary", "titles", "particles")))
