"""The four controls as memories: told the case, they store nothing and answer as `forget_datasets` says they would."""

from dataclasses import dataclass, field
from typing import ClassVar

from forget_datasets.forgeteval.controls import CONTROLS
from forget_datasets.rows import OPERATIONS, GeneratedCase
from forget_datasets.verdicts import Check
from forget_eval.protocols import Kind


@dataclass(frozen=True)
class _Nothing:
    """A query that is not the case's own requires and forbids nothing."""

    must_contain: list[str] = field(default_factory=list)
    must_not_contain: list[str] = field(default_factory=list)


class Control:
    """A memory whose answers follow from the case (`forget_datasets.forgeteval.controls`)."""

    name: ClassVar[str]
    operations: ClassVar = dict.fromkeys(OPERATIONS, Kind.EMULATED)
    parallel = True

    def __init__(self) -> None:
        self._case: GeneratedCase | None = None
        self._inscribed = 0

    def _tell(self, case: GeneratedCase) -> None:
        """Called by the runner between `reset` and the first `inscribe`."""
        self._case = case

    def reset(self) -> None:
        """Forgets the case."""
        self._case = None
        self._inscribed = 0

    def inscribe(self, text: str) -> int:
        """Counts; the text is in the case."""
        self._inscribed += 1
        return self._inscribed

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        """What the control answers to one of the case's queries, cut at k."""
        if self._case is None:
            raise RuntimeError(f"control '{self.name}' must be told the case before it is asked")
        return CONTROLS[self.name](self._case, _check(self._case, query))[:k]

    def supersede(self, old_query: str, new_text: str) -> None:
        """Nothing to do: the answer follows from the case."""

    def release(self, query: str) -> int:
        """Nothing to do."""
        return 0

    def purge(self, query: str) -> int:
        """Nothing to do."""
        return 0


class Null(Control):
    """Returns nothing."""

    name = "null"


class KeepAll(Control):
    """Ignores every mutation."""

    name = "keep-all"


class WipeAll(Control):
    """Empties itself on any mutation."""

    name = "wipe-all"


class Oracle(Control):
    """Keeps exactly the survivors."""

    name = "oracle"


def _check(case: GeneratedCase, query: str) -> Check:
    if query == case.final_query:
        return case
    return next((probe for probe in case.probes if probe.query == query), _Nothing())
