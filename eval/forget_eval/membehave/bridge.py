"""Makes an assistant of a memory: every message is a fact, and an answer is made of what is recalled."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from forget_datasets.rows import Session
from forget_eval.membehave.answerers import Answerer, extractive
from forget_eval.membehave.forgetting import Deletion, Forgotten, Policy, named
from forget_eval.protocols import Memory
from forget_eval.recording import recalled

DEPTH = 10
"""How many messages are recalled for a question; `DEPTH_OF` has the exceptions."""
DEPTH_OF = {"target": 50, "alias": 50}
"""By family of the probe: these ask for everything about a person."""


class Bridge:
    """An assistant over a memory. It sees the conversations and the request, never the dataset.

    It can snapshot and restore if the memory can; else both are None.

    Args:
        memory: the system under test.
        answerer: from the recalled messages to an answer.
        policy: from the request to operations of the memory.
    """

    def __init__(self, memory: Memory, answerer: Answerer = extractive, policy: Policy = named) -> None:
        self.name = memory.name
        self._memory, self._answerer, self._policy = memory, answerer, policy
        self._chosen = False
        self._operation: str | None = None  # by which the memory deletes, once it is chosen
        snapshot, restore = getattr(memory, "snapshot", None), getattr(memory, "restore", None)
        self.snapshot: Callable[[], object] | None = snapshot if restore else None
        self.restore: Callable[[object], None] | None = restore if snapshot else None

    def ingest(self, sessions: Sequence[Session]) -> None:
        """Empties the memory and inscribes the messages of both sides in their order, those without text left out.

        At first, while the memory is empty, the policy finds out by which operation it deletes.
        """
        self._memory.reset()
        if not self._chosen:
            self._chosen, self._operation = True, self._policy.choose(self._memory)
            self._memory.reset()
        self._inscribe(messages(sessions))

    def ask(self, question: str, k: int = DEPTH) -> str:
        """The answer over the `k` best messages."""
        return self._answerer(question, recalled(self._memory.recall_texts(question, k=k), k))

    def forget(self, request: str) -> Forgotten:
        """Serves the request by the policy.

        Raises:
            NotImplementedError: the memory lacks what the policy needs.
            RuntimeError: nothing was ingested yet.
        """
        if not self._chosen:
            raise RuntimeError("a history must be ingested before somebody in it can be forgotten")
        if self._operation is None:
            raise NotImplementedError(f"{self.name} has none of {', '.join(self._policy.operations)}")
        return self._policy.serve(self._memory, request, Deletion(self._memory, self._operation))

    def _inscribe(self, texts: list[str]) -> None:
        many = getattr(self._memory, "inscribe_many", None)
        if many is not None:
            with suppress(NotImplementedError):
                many(list(texts))
                return
        for text in texts:
            self._memory.inscribe(text)

    def close(self) -> None:
        """Closes the memory, if it can be closed."""
        close = getattr(self._memory, "close", None)
        if close is not None:
            close()


def messages(sessions: Sequence[Session]) -> list[str]:
    """What a memory is told of a history: the text of each message, in order."""
    return [m.content for session in sessions for m in session.messages if m.content.strip()]
