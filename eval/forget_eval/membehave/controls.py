"""The controls as assistants: told the item, they ingest nothing and answer as `forget_datasets` says they would."""

from collections.abc import Sequence

from forget_datasets.membehave import controls
from forget_datasets.rows import Item, Session


class ControlAssistant:
    """An assistant whose answers follow from the item (`forget_datasets.membehave.controls`)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._item: Item | None = None
        self._asked_to_forget = False

    def _tell(self, item: Item) -> None:
        """Called by the replay before `ingest`."""
        self._item = item

    def ingest(self, sessions: Sequence[Session]) -> None:
        """Begins anew; the history is in the item."""
        self._asked_to_forget = False

    def ask(self, question: str) -> str:
        """What the control answers to one of the item's questions."""
        if self._item is None:
            raise RuntimeError(f"control '{self.name}' must be told the item before it is asked")
        probe = next((p for p in self._item.probes if p.question == question), None)
        return "" if probe is None else controls.answers(self.name, self._item, probe, self._asked_to_forget)

    def forget(self, request: str) -> None:
        """From now on the control answers as after the request."""
        self._asked_to_forget = True
