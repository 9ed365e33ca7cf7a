"""Words and whole tokens in any script. Standard library only.

Scripts that put spaces between words have tokens that one can see; Chinese, Japanese, Thai and their like do not. There
a change of script is a boundary (`alice@acme.io` ends before the Han sign in `alice@acme.io的`), and between two signs
of one script none is asked for: without a dictionary nothing tells the name 周慧敏 from its neighbours in 周慧敏的记录.
Katakana is the exception, since a name written in it is a run of its own: マリア is not found in マリアンヌ. Hangul,
which hangs its particles on foreign words, is treated as Katakana is.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby, pairwise
from unicodedata import category, name, normalize

_CONNECTORS = frozenset(".@+-/:_~#")
_UNSPACED = {
    "CJK": "han",
    "IDEOGRAPHIC": "han",
    "BOPOMOFO": "bopomofo",
    "HIRAGANA": "hiragana",
    "HENTAIGANA": "hiragana",
    "KATAKANA": "katakana",
    "KATAKANA-HIRAGANA": "katakana",
    "THAI": "thai",
    "LAO": "lao",
    "KHMER": "khmer",
    "MYANMAR": "myanmar",
    "TAI": "tai",
    "HANGUL": "hangul",
}
_ONE_RUN = frozenset({"katakana", "hangul"})  # scripts in which a run of signs is one word
_OUTSIDE, _SPACED = "", "spaced"


@lru_cache(maxsize=1 << 16)
def _kind(char: str) -> str:
    """Empty for what is no letter, digit or mark; else the script if it is one without spaces, else "spaced"."""
    if category(char)[0] not in "LNM":
        return _OUTSIDE
    return _UNSPACED.get(name(char, "").split(" ", 1)[0], _SPACED)


def fold(text: str) -> str:
    """A text as it is compared: letters and digits in their plain forms, no case, single spaces.

    Full-width punctuation stays as it is: the colon of `编号：7731` separates, that of `id:7731` connects.
    """
    if not text.isascii():
        text = re.sub(r"\w+", lambda run: normalize("NFKC", run[0]), normalize("NFC", text))
    folded = " ".join(text.casefold().split())
    return folded if folded.isascii() else normalize("NFC", folded)


def holds(identifier: str, text: str) -> bool:
    """Whether a text contains an identifier as a whole token; nothing contains the empty identifier.

    A match must not touch a word character (Unicode letter, digit, mark), nor one of `. @ + - / : _ ~ #` with a word
    character beyond it: `alice@acme.io` is in neither `alice@acme.io.uk` nor `b.alice@acme.io`. Both are folded first.
    """
    needle, hay = fold(identifier), fold(text)
    return bool(needle) and any(_is_whole(hay, at, at + len(needle)) for at in _places(needle, hay))


def words(text: str) -> list[str]:
    """The terms by which a text is found: whole words, and pairs of neighbours where a script has no spaces.

    A run of one sign stands for itself. Terms come in their order, repeated as they are in the text.
    """
    terms = []
    for kind, run in _runs(fold(text)):
        if kind == _SPACED or len(run) == 1:
            terms.append(run)
        else:
            terms.extend(a + b for a, b in pairwise(run))
    return terms


def sure_words(identifier: str) -> list[str]:
    """The terms that every text holding an identifier has; empty if that cannot be said of any.

    A single sign of a script without spaces hides within the pairs of a longer run, so it is left out.
    """
    return [term for term in words(identifier) if len(term) > 1 or _kind(term) == _SPACED]


def _runs(folded: str) -> Iterator[tuple[str, str]]:
    if folded.isascii():
        yield from ((_SPACED, run) for run in re.findall(r"[a-z0-9]+", folded))
        return
    for kind, run in groupby(folded, _kind):
        if kind != _OUTSIDE:
            yield kind, "".join(run)


def _places(needle: str, hay: str) -> Iterator[int]:
    at = hay.find(needle)
    while at >= 0:
        yield at
        at = hay.find(needle, at + 1)


def _is_whole(hay: str, start: int, end: int) -> bool:
    before = hay[max(0, start - 2) : start][::-1]
    return not (_extends(before, hay[start]) or _extends(hay[end : end + 2], hay[end - 1]))


def _extends(outside: str, edge: str) -> bool:
    """Whether the one or two characters beyond an edge, nearest first, make the token longer than the match."""
    if not outside:
        return False
    if outside[0] in _CONNECTORS:
        return len(outside) > 1 and _joins(outside[1], edge)
    return _joins(outside[0], edge)


def _joins(char: str, edge: str) -> bool:
    kind, inner = _kind(char), _kind(edge)
    if kind == _OUTSIDE:
        return False
    if kind == _SPACED:
        return inner in (_SPACED, _OUTSIDE)
    return kind == inner and kind in _ONE_RUN
