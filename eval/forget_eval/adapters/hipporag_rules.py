"""Triples out of English sentences, by fixed rules: what HippoRAG has in place of a language model.

The rules know closed classes of words and the commonest verbs (`hipporag_rules.toml`), and see one text at a time. A
clause is cut at its predicate: what stands before is the subject, what comes after the object. Each further preposition
gives a triple of its own: "Ana moved to Porto in May" is (Ana, moved to, Porto) and (Ana, moved in, May).
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

Triple = tuple[str, str, str]

_DATA = Path(__file__).with_suffix(".toml")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_PIECE = re.compile(r"[,;:()\[\]{}]+(?=\s|$)|(?<=\s)[(\[{]+|\s+[-–—]+\s+")
_CUT_SHORT = re.compile(r"(?<=\w)['’](m|re|ve|ll|d)\b")
_MARGIN = " \t\r.,;:!?\"'“”‘’«»()[]{}<>*_…"
_VOWELS = "aeiou"


class _Lexicon(NamedTuple):
    """Words in lower case. Strong are forms that are seldom nouns: auxiliaries, -s, -ed and irregular ones."""

    articles: frozenset[str]
    auxiliaries: frozenset[str]
    adverbs: frozenset[str]
    prepositions: frozenset[str]
    joints: frozenset[str]
    strong: frozenset[str]
    weak: frozenset[str]
    contractions: dict[str, str]

    def is_predicate(self, word: str) -> bool:
        return word.lower() in self.strong or word.lower() in self.weak

    def follows(self, word: str) -> bool:
        """Whether a word goes on with a predicate that has begun."""
        lower = word.lower()
        return self.is_predicate(word) or lower in self.adverbs or (lower.endswith("ly") and lower.islower())


def sha256_of_rules() -> str:
    """The hash of this file and of its words: what was extracted follows from them and the text alone."""
    return sha256(Path(__file__).read_bytes() + _DATA.read_bytes()).hexdigest()


def triples(text: str) -> list[Triple]:
    """The (subject, predicate, object) of a text, in its order, each once; no part is empty of letters and digits."""
    found = (triple for sentence in _SENTENCE.split(text) for triple in _of_sentence(sentence))
    return list(dict.fromkeys(triple for triple in found if all(map(_is_said, triple))))


def entities(found: Sequence[Triple]) -> list[str]:
    """The subjects and objects, each once."""
    return list(dict.fromkeys(end for triple in found for end in (triple[0], triple[2])))


def _of_sentence(sentence: str) -> Iterator[Triple]:
    """A clause that begins with its predicate has the subject of the one before, which may be nothing but a subject."""
    words, subject = _lexicon(), ""
    for clause in _clauses(_CUT_SHORT.sub(lambda cut: f" {words.contractions[cut[1]]}", sentence), words):
        at = _predicate(clause, words, bool(subject))
        if at is not None or not subject:
            subject = _named(clause[:at], words) or subject
        if at is not None:
            yield from _of_clause(subject, clause[at:], words)


def _clauses(sentence: str, words: _Lexicon) -> Iterator[list[str]]:
    """Word lists. A joint ends a clause only if a predicate follows, so that "salt and pepper" stays one."""
    for piece in _PIECE.split(sentence):
        clause: list[str] = []
        tokens = [token for word in piece.replace("’", "'").split() if (token := word.strip(_MARGIN))]
        for i, token in enumerate(tokens):
            rest = tokens[i + 1 :]
            if token.lower() in words.joints and any(map(words.is_predicate, rest)):
                yield clause
                clause = []
            else:
                clause.append(token)
        yield clause


def _predicate(clause: Sequence[str], words: _Lexicon, has_subject: bool) -> int | None:
    """Where the predicate begins, after a subject: at the first strong form, else a weak one, else a preposition.

    At the end of a clause neither of the latter two is taken for one: no object follows.
    """
    for forms in (words.strong, words.weak, words.prepositions):
        for i, token in enumerate(clause if forms is words.strong else clause[:-1]):
            if token.lower() in forms and (has_subject or _named(clause[:i], words)):
                return i
    return None


def _of_clause(subject: str, tokens: Sequence[str], words: _Lexicon) -> Iterator[Triple]:
    end = 1
    while end < len(tokens) and words.follows(tokens[end]):
        end += 1
    verb, relation = " ".join(tokens[:end]), list(tokens[:end])
    part: list[str] = []
    for token in tokens[end:]:
        if token.lower() in words.prepositions:
            if part:
                yield subject, " ".join(relation), _named(part, words)
                relation, part = [verb], []
            relation.append(token)
        else:
            part.append(token)
    yield subject, " ".join(relation), _named(part, words)


def _named(tokens: Sequence[str], words: _Lexicon) -> str:
    """A phrase without the adverbs before and after it, and without its articles."""
    kept = [token for token in tokens if token.lower() not in words.articles]
    while kept and kept[0].lower() in words.adverbs:
        kept.pop(0)
    while kept and kept[-1].lower() in words.adverbs:
        kept.pop()
    return " ".join(kept)


def _is_said(part: str) -> bool:
    """HippoRAG itself keeps nothing else of a part: one without would be the same entity as every other such."""
    return re.search("[A-Za-z0-9]", part) is not None


@cache
def _lexicon() -> _Lexicon:
    data = tomllib.loads(_DATA.read_text("utf-8"))
    contractions = data.pop("contractions")
    told = {name: frozenset(listed.split()) for name, listed in data.items()}
    verbs, irregular = told.pop("verbs"), told.pop("irregular")
    thirds, pasts, gerunds = (frozenset(forms) for forms in zip(*map(_inflected, verbs), strict=True))
    strong = told["auxiliaries"] | irregular | thirds | pasts
    return _Lexicon(**told, strong=strong, weak=(verbs | gerunds) - strong, contractions=contractions)


def _inflected(verb: str) -> tuple[str, str, str]:
    """-s, -ed and -ing of a regular verb; of the others, a form or two that nobody writes."""
    if verb.endswith("e"):
        return f"{verb}s", f"{verb}d", f"{verb[:-1]}ing"
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return f"{verb[:-1]}ies", f"{verb[:-1]}ied", f"{verb}ing"
    third = f"{verb}es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else f"{verb}s"
    stem = verb + verb[-1] if _doubles(verb) else verb
    return third, f"{stem}ed", f"{stem}ing"


def _doubles(verb: str) -> bool:
    """Short ones with one vowel before one consonant: stopped, planning."""
    if len(verb) < 3 or verb[-1] in _VOWELS + "wxy" or verb[-2] not in _VOWELS or verb[-3] in _VOWELS:
        return False
    return sum(letter in _VOWELS for letter in verb) == 1
