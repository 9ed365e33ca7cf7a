"""The system of the golden runs: it finds what shares the most words with a query, and deletes what it finds first.

It lacks `release`, and a purge of an address breaks it, so that a run of it holds every way in which a case can end.
"""

from typing import ClassVar


class Keyword:
    """Texts, each with its words."""

    name = "keyword"
    operations: ClassVar = {"supersede": "native", "purge": "native"}
    choosers: ClassVar = {"supersede": "system", "purge": "system"}

    def reset(self) -> None:
        self.facts: dict[str, set[str]] = {}

    def inscribe(self, text: str) -> int:
        self.facts[text] = _words(text)
        return len(self.facts)

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        shared = {text: len(words & _words(query)) for text, words in self.facts.items()}
        return sorted((text for text, n in shared.items() if n), key=lambda text: -shared[text])[: min(k, 3)]

    def supersede(self, old_query: str, new_text: str) -> None:
        self._delete_first(old_query)
        self.inscribe(new_text)

    def purge(self, query: str) -> int:
        if "@" in query:
            raise LookupError("no address is ever found")
        return self._delete_first(query)

    def _delete_first(self, query: str) -> int:
        gone = self.recall_texts(query)[:1]
        for text in gone:
            del self.facts[text]
        return len(gone)


def _words(text: str) -> set[str]:
    return {word.strip(".,;:?!'\"()").lower() for word in text.split() if len(word) > 3}
