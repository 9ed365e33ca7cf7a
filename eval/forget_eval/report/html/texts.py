"""The texts of an explorer, each stored once and cut where it is too long to be read on a page."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

LIMITS = (4000, 1000, 300)
"""Characters of a text that are stored, tried in this order until the whole fits."""


class Texts:
    """Collects texts; what refers to one holds its index.

    Args:
        limit: characters that are stored of a text; a longer one keeps its beginning and what lies around its first
            mark.
    """

    def __init__(self, limit: int = LIMITS[0]) -> None:
        self._limit = limit
        self._index: dict[str, int] = {}
        self.rows: list[str | dict[str, Any]] = []

    def add(self, text: str, marks: Sequence[str] = ()) -> int:
        """The index of a text.

        Args:
            text: of any length.
            marks: what a reader looks for in it; matters for a text that is cut, and there only the first time.
        """
        if text not in self._index:
            self._index[text] = len(self.rows)
            self.rows.append(text if len(text) <= self._limit else self._cut(text, marks))
        return self._index[text]

    def add_all(self, texts: Iterable[str], marks: Sequence[str] = ()) -> list[int]:
        """The index of each text."""
        return [self.add(text, marks) for text in texts]

    def _cut(self, text: str, marks: Sequence[str]) -> dict[str, Any]:
        """Its length, and (offset, piece) for each part that is stored."""
        half = self._limit // 2
        pieces = [(0, text[:half])]
        at = next((at for at in _places(text, marks) if at >= 0), -1)
        start = max(at - half // 2, half)
        if at + half // 4 > half and start < len(text):
            pieces.append((start, text[start : start + half]))
        return {"length": len(text), "parts": pieces}


def _places(text: str, marks: Sequence[str]) -> Iterator[int]:
    """Where each mark stands first; lower case may be longer by a character, which a window of hundreds forgives."""
    lowered = text.lower()
    for mark in marks:
        yield lowered.find(mark.lower())
