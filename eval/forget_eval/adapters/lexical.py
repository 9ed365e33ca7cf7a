"""A lexical index whose terms suit scripts with and without spaces (`tokens.words`)."""

import math

from forget_datasets.tokens import sure_words, words


class LexicalIndex:
    """Postings: which facts have a term. Facts are known by a number and removed with the text they were added with."""

    def __init__(self) -> None:
        self._facts: set[int] = set()
        self._holders: dict[str, set[int]] = {}

    def add(self, id: int, text: str) -> None:
        """Adds a fact under a new id."""
        self._facts.add(id)
        for term in set(words(text)):
            self._holders.setdefault(term, set()).add(id)

    def remove(self, id: int, text: str) -> None:
        """Takes a fact out."""
        self._facts.discard(id)
        for term in set(words(text)):
            holders = self._holders[term]
            holders.discard(id)
            if not holders:
                del self._holders[term]

    def candidates(self, identifier: str) -> list[int]:
        """Facts that may hold an identifier as a whole token, in the order of their ids; none that does is left out."""
        terms = sure_words(identifier)
        if not terms:
            return sorted(self._facts)
        return sorted(set.intersection(*(self._holders.get(term, set()) for term in terms)))

    def weights(self, query: str) -> dict[int, float]:
        """The share of a query's terms that each fact has, 0 to 1; a term counts by its inverse document frequency."""
        terms = [(term, self._rarity(term)) for term in sorted(set(words(query)))]
        total = sum(rarity for _, rarity in terms)
        shares: dict[int, float] = {}
        for term, rarity in terms:
            for id in self._holders.get(term, ()):
                shares[id] = shares.get(id, 0.0) + rarity / total
        return shares

    def copy(self) -> "LexicalIndex":
        """An index of its own with the same facts."""
        twin = LexicalIndex()
        twin._facts = set(self._facts)
        twin._holders = {term: set(ids) for term, ids in self._holders.items()}
        return twin

    def _rarity(self, term: str) -> float:
        holders = len(self._holders.get(term, ()))
        return math.log1p((len(self._facts) - holders + 0.5) / (holders + 0.5))
