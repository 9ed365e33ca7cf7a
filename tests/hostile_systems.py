"""Memory systems that misbehave, each in one way, and `Clean`, which passes every case: what they are without it.

`Clean` is a store with a crib: the file that $CRIB names has the cases, so that it knows which facts an operation is
about and which facts answer a query. What it answers it has been given, and what it has forgotten it does not hold.
Run by `tests/test_hostile.py`, in the process of the command or in a worker.
"""

import atexit
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

CRIB = "CRIB"
ODD = 12
"""The number of the one case at which some misbehave; it is a purge."""


class Clean:
    """Forgets what it is asked to, and recalls the rest. `number` is that of the case, from the first operation on."""

    name = "clean"

    def __init__(self) -> None:
        crib = json.loads(Path(os.environ[CRIB]).read_text())
        self._cases = {frozenset(case["facts"]): (number, case) for number, case in enumerate(crib)}
        self.reset()

    def reset(self) -> None:
        self.facts: list[str] = []
        self.number = -1
        self.case: dict[str, Any] = {}

    def inscribe(self, text: str) -> int:
        self.facts.append(text)
        return len(self.facts)

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        wanted = [*self.case["asked"].get(query, []), query]
        return [fact for fact in self.facts if _holds(fact, wanted)][:k]

    def supersede(self, old_query: str, new_text: str) -> None:
        self.forget()
        self.facts.append(new_text)

    def release(self, query: str) -> int:
        return self.forget()

    def purge(self, query: str) -> int:
        return self.forget()

    def forget(self) -> int:
        """What every operation does: drops the facts with a string that the case forbids."""
        if not self.case:
            self.number, self.case = self._cases[frozenset(self.facts)]
        before = len(self.facts)
        self.facts = [fact for fact in self.facts if not _holds(fact, self.case["forbidden"])]
        return before - len(self.facts)


# Faulty answers -------------------------------------------------------------------------------------------------------


class PurgesNothing(Clean):
    name = "purges-nothing"

    def purge(self, query: str) -> int:
        kept = list(self.facts)
        self.forget()
        self.facts = kept
        return 3


class WipesAll(Clean):
    name = "wipes-all"

    def forget(self) -> int:
        super().forget()
        count, self.facts = len(self.facts), []
        return count


class _Hiding(Clean):
    """Only marks what it should forget, and `hides` says whether it shows."""

    def reset(self) -> None:
        super().reset()
        self.asked: list[str] = []

    def forget(self) -> int:
        kept = list(self.facts)
        super().forget()
        self.facts = kept
        return 1

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        found = super().recall_texts(query, k)
        hidden = self.hides(query)
        self.asked.append(query)
        return [fact for fact in found if not hidden or not _holds(fact, self.case["forbidden"])]

    def hides(self, query: str) -> bool:
        raise NotImplementedError


class ForgetsForTheFinalQuery(_Hiding):
    name = "final-only"

    def hides(self, query: str) -> bool:
        return not self.asked


class HidesUntilAskedTwice(_Hiding):
    name = "hides-once"

    def hides(self, query: str) -> bool:
        return query not in self.asked


class Echoes(Clean):
    name = "echoes"

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        return [query]


class ReturnsTooMany(Clean):
    name = "too-many"

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        return [*super().recall_texts(query, k), *["filler"] * k]


class _Long(list[str]):
    """Says that it is short, and never ends."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Any:
        return itertools.repeat("without end")


class LiesAboutItsLength(Clean):
    name = "lies"

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        return _Long(["one"])


class Generates(Clean):
    name = "generates"

    def recall_texts(self, query: str, k: int = 5) -> Any:
        yield from super().recall_texts(query, k)


# Faults of some cases -------------------------------------------------------------------------------------------------


class RaisesOnEveryThird(Clean):
    name = "every-third"

    def forget(self) -> int:
        done = super().forget()
        if self.number % 3 == 2:
            raise LookupError("out of order")
        return done


class _Unspeakable(Exception):
    """Breaks whoever looks at it."""

    def __str__(self) -> str:
        sys.exit("not even a message")

    @property
    def __notes__(self) -> list[str]:
        raise ValueError("nor notes")


class RaisesTheUnspeakable(Clean):
    name = "unspeakable"

    def forget(self) -> int:
        done = super().forget()
        if self.number == ODD:
            raise _Unspeakable
        return done


class _AtOdd(Clean):
    """Does its worst at one case."""

    def forget(self) -> int:
        done = super().forget()
        if self.number == ODD:
            self.worst()
        return done

    def worst(self) -> None:
        raise NotImplementedError


class LeavesPolitely(_AtOdd):
    name = "sys-exit"

    def worst(self) -> None:
        sys.exit(0)


class Leaves(_AtOdd):
    name = "os-exit"

    def worst(self) -> None:
        os._exit(0)


class ClosesAllFiles(_AtOdd):
    """Pipes of a worker included."""

    name = "closes-all"

    def worst(self) -> None:
        os.closerange(0, 200)


class Sleeps(_AtOdd):
    """Past the timeout, and not to be woken."""

    name = "sleeps"

    def worst(self) -> None:
        signal.signal(signal.SIGABRT, signal.SIG_IGN)
        while True:
            time.sleep(600)


class Recurses(_AtOdd):
    name = "recurses"

    def worst(self) -> None:
        self.worst()


class RecursesUntilMemoryIsShort(_AtOdd):
    name = "recurses-on"

    def worst(self) -> None:
        sys.setrecursionlimit(1 << 30)

        def again(kept: list[Any]) -> None:
            again([kept] * 10_000)

        again([])


class AllocatesWithoutEnd(_AtOdd):
    name = "allocates"

    def worst(self) -> None:
        kept = []
        while True:
            kept.append(bytearray(1 << 24))


# Harmless in their answers --------------------------------------------------------------------------------------------


class Prints(Clean):
    name = "prints"

    def forget(self) -> int:
        print("printed by the system")
        subprocess.run(["echo", "printed by a child"], check=True)
        return super().forget()


class ChangesTheListItWasGiven(Clean):
    name = "mutates"

    def inscribe_many(self, texts: list[str]) -> list[int]:
        self.facts = list(texts)
        texts[:] = ["nothing of it"] * 3
        texts.append("more")
        return [0]

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        for answer in self.answers:
            answer[:] = ["changed afterwards"]
        self.answers.append(super().recall_texts(query, k))
        return self.answers[-1]

    def reset(self) -> None:
        super().reset()
        self.answers: list[list[str]] = []


class Forks(Clean):
    name = "forks"

    def forget(self) -> int:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        return super().forget()


class ForksAndComesBack(Clean):
    """The child does all that its parent does."""

    name = "forks-back"

    def forget(self) -> int:
        done = super().forget()
        if self.number == ODD:
            os.fork()
        return done


class _Text(str):
    """A text that shows something else wherever Python lets it."""

    def __str__(self) -> str:
        return "shown"

    def __len__(self) -> int:
        return 3

    def lower(self) -> str:
        return "lowered"


class ReturnsTextsOfItsOwn(Clean):
    name = "own-texts"

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        return list(map(_Text, super().recall_texts(query, k)))


class ChangesItsDeclarations(Clean):
    name = "declares"
    operations: ClassVar[Any] = {"purge": "native"}

    def forget(self) -> int:
        type(self).operations = None
        type(self).name = "somebody else"
        type(self)._tell = print  # type: ignore[attr-defined]
        return super().forget()


class PatchesTheStandardLibrary(Clean):
    name = "patches"

    def forget(self) -> int:
        json.dumps = lambda *_, **__: "{}"  # type: ignore[assignment]
        json.JSONEncoder.default = None  # type: ignore[assignment,method-assign]
        time.perf_counter = time.time = time.monotonic = lambda: "noon"  # type: ignore[assignment,return-value]
        return super().forget()


class ClosesStandardFiles(Clean):
    name = "closes"

    def forget(self) -> int:
        sys.stdout.close()
        sys.stderr.close()
        for descriptor in (1, 2):
            with suppress(OSError):  # Python may have closed it with the stream
                os.close(descriptor)
        return super().forget()


class WantsTheLastWord(Clean):
    name = "at-exit"

    def __init__(self) -> None:
        super().__init__()
        atexit.register(lambda: os.write(1, b"the last word\n"))
        atexit.register(print, "and the one before")


class LeavesAThread(Clean):
    name = "thread"

    def __init__(self) -> None:
        super().__init__()
        threading.Thread(target=threading.Event().wait).start()


def _holds(fact: str, strings: list[str]) -> bool:
    return any(string.casefold() in fact.casefold() for string in strings)
