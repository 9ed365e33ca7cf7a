"""Operations of packages that act by id: shared policies choose the facts, and an adapter says how each is touched."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from forget_eval import policies
from forget_eval.policies import Hit

Id = int | str


class StoreById(ABC):
    """Recalls, supersedes and purges. It has no release: not every package can hide a fact."""

    @abstractmethod
    def inscribe(self, text: str) -> Id:
        """Adds a fact and returns its id."""

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        """The texts of at most k facts, the nearest first."""
        return [hit.text for hit in self._nearest(query, k)]

    def supersede(self, old_query: str, new_text: str) -> None:
        """Replaces the nearest fact; in an empty store, the text is added."""
        old = policies.best(self._nearest(old_query, 1))
        if old is None:
            self.inscribe(new_text)
        else:
            self._replace(old.id, new_text)

    def purge(self, query: str) -> int:
        """Deletes every stored fact that holds the identifier, hidden ones too, and says how many."""
        stored = list(self._stored())
        gone = [stored[i][0] for i in policies.holding(query, (text for _, text in stored))]
        if gone:
            self._delete(gone)
        return len(gone)

    @abstractmethod
    def _nearest(self, query: str, k: int) -> list[Hit]:
        """At most k facts that can be recalled, in falling order of their scores."""

    def _replace(self, id: Id, text: str) -> None:
        """Puts a text in the place of a fact. A package that changes none deletes it and adds one."""
        self._delete([id])
        self.inscribe(text)

    @abstractmethod
    def _stored(self) -> Iterable[tuple[Id, str]]:
        """Id and text of everything that is stored, whether or not it can be recalled."""

    @abstractmethod
    def _delete(self, ids: Sequence[Id]) -> None:
        """Deletes facts; there is at least one."""


class BatchStore(StoreById):
    """A store whose package adds many facts at once."""

    def inscribe(self, text: str) -> Id:
        """Adds a fact and returns its id."""
        return self.inscribe_many([text])[0]

    @abstractmethod
    def inscribe_many(self, texts: Sequence[str]) -> Sequence[Id]:
        """Adds facts and returns their ids, in the order of the texts."""


class HidingStore(StoreById):
    """A store that can hide facts from recall without deleting them."""

    def release(self, query: str) -> int:
        """Hides the facts that stand out under the query, and says how many."""
        hits = policies.released(self._nearest(query, policies.POOL))
        if hits:
            self._hide(hits)
        return len(hits)

    @abstractmethod
    def _hide(self, hits: Sequence[Hit]) -> None:
        """Hides facts; there is at least one."""
