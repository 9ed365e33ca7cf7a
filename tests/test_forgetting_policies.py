"""From a request to deletions: names are found in the text alone, and policies do as published."""

from collections.abc import Sequence
from itertools import count
from zlib import crc32

import numpy as np
import pytest

from forget_datasets.errors import UserError
from forget_datasets.membehave.metrics import mentions
from forget_eval.adapters.reference import ReferenceMemory
from forget_eval.membehave.forgetting import Deletion, Forgotten, Policy, named, policy, single
from forget_eval.membehave.names import people, spoken
from forget_eval.recording import BadAnswerError

REQUEST = "Please forget everything about my cousin Maya Okonkwo. The others can stay."


def bag_of_words(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors that count words, so that no model is needed."""
    rows = np.full((len(texts), 256), 1e-3, dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().split():
            row[crc32(word.strip(".,!?").encode()) % 256] += 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Store(ReferenceMemory):
    """The reference store, over words."""

    def __init__(self) -> None:
        super().__init__(bag_of_words)


def filled(memory: ReferenceMemory, *texts: str) -> ReferenceMemory:
    memory.inscribe_many(texts)
    return memory


def serve(chosen: Policy, memory: ReferenceMemory) -> Forgotten:
    """Serves REQUEST on a filled memory, by the operation that one like it has when it is empty."""
    operation = chosen.choose(type(memory)())
    assert operation is not None
    return chosen.serve(memory, REQUEST, Deletion(memory, operation))


def left(memory: ReferenceMemory) -> set[str]:
    return set(memory.recall_texts("what is there", k=1000))


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        (REQUEST, ["Maya Okonkwo"]),
        ("Forget Maya Okonkwo.", ["Maya Okonkwo"]),
        ("Maya Okonkwo: forget everything.", ["Maya Okonkwo"]),
        ("hey, can you drop Maya Okonkwo's stuff? thanks", ["Maya Okonkwo"]),
        ("Delete Maya Okonkwo’s details. I mean it.", ["Maya Okonkwo"]),
        ("I'd like Dr. Inês de la Cruz gone, please.", ["Inês de la Cruz"]),
        ("Wipe Anne-Marie O'Neil. Wipe Łukasz Baran too.", ["Anne-Marie O'Neil", "Łukasz Baran"]),
        ("Forget Maya Okonkwo, and I mean Maya Okonkwo.", ["Maya Okonkwo"]),
        ("On Monday I told you about Maya Okonkwo. Please Forget Her.", ["Maya Okonkwo"]),
        ("Please forget my aunt Maya.", ["Maya"]),
        ("Forget Aunt Maya!", ["Maya"]),
        ("please forget maya okonkwo", []),
        ("", []),
    ],
)
def test_people_of_a_request(request_text: str, expected: list[str]) -> None:
    assert people(request_text) == expected


def test_a_person_is_looked_for_by_full_name_and_then_first_name() -> None:
    assert spoken("Maya Okonkwo") == ["Maya Okonkwo", "Maya"]
    assert spoken("Maya") == ["Maya"]


def test_named_removes_every_text_that_holds_a_name_as_a_whole_token() -> None:
    memory = filled(
        Store(),
        "Maya Okonkwo joined a book club.",
        "Maya's cake was dry.",
        "MAYA called.",
        "Mayan ruins.",
        "Soup again.",
    )
    done = serve(named, memory)
    assert left(memory) == {"Mayan ruins.", "Soup again."}
    assert done == Forgotten("purge", ["Maya Okonkwo", "Maya"], rounds=1, returned=3, removed=3)


def test_named_goes_on_while_more_is_recalled() -> None:
    """120 texts at 50 a recall: rounds of 50, 50 and 20 for the full name; the first name then finds nothing."""
    memory = filled(Store(), *(f"Maya Okonkwo bought {i} apples." for i in range(120)))
    done = serve(named, memory)
    assert left(memory) == set()
    assert (done.rounds, done.returned, done.removed) == (3, 120, 120)


def test_a_round_that_removes_nothing_is_the_last_of_its_name() -> None:
    class Stubborn(Store):
        def purge(self, query: str) -> int:
            return 3  # says so, and does nothing

    memory = filled(Stubborn(), "Maya joined a club.", "Maya Okonkwo called.")
    done = serve(named, memory)
    assert left(memory) == {"Maya joined a club.", "Maya Okonkwo called."}
    assert (done.rounds, done.returned, done.removed) == (2, 12, 0)


def test_named_gives_up_after_two_hundred_rounds_a_name() -> None:
    numbers = count()

    class Hydra(Store):
        def purge(self, query: str) -> int:
            removed = super().purge(query)
            self.inscribe(f"Maya Okonkwo, head {next(numbers)}")
            return removed

    done = serve(named, filled(Hydra(), "Maya Okonkwo called."))
    assert done.rounds == 400


def test_what_is_still_there_after_the_last_round_is_not_removed() -> None:
    """It shows one of its two facts at a time, in turn, and deletes nothing."""

    class Alternating(Store):
        asked = 0

        def recall_texts(self, query: str, k: int = 5) -> list[str]:
            self.asked += 1
            return [("Maya Okonkwo called.", "Maya Okonkwo moved.")[self.asked % 2]]

        def purge(self, query: str) -> int:
            return 0

    done = serve(named, filled(Alternating()))
    assert (done.rounds, done.returned, done.removed) == (400, 0, 0)


@pytest.mark.parametrize("text", ["Maya/Hugo came.", "I met non-Maya people.", "user Maya_x wrote."])
def test_a_name_is_deleted_wherever_scoring_would_find_it(text: str) -> None:
    memory = filled(Store(), text)
    serve(named, memory)
    assert left(memory) == set()
    assert mentions(text, ["Maya"])


def test_a_memory_without_purge_releases_instead() -> None:
    class Releasing(Store):
        purge = None  # type: ignore[assignment]

    memory = filled(Releasing(), "Maya joined a club.", "Soup again.", "Trains were late.")
    assert serve(named, memory).operation == "release"
    assert left(memory) == {"Soup again.", "Trains were late."}


def test_an_operation_that_is_not_implemented_is_none() -> None:
    class Declining(Store):
        def purge(self, query: str) -> int:
            raise NotImplementedError

    memory = filled(Declining(), "Maya joined a club.", "Soup again.")
    assert serve(named, memory).operation == "release"
    assert left(memory) == {"Soup again."}


@pytest.mark.parametrize("chosen", [named, single])
def test_a_memory_without_either_cannot_forget(chosen: Policy) -> None:
    class Keeping(Store):
        purge = release = None  # type: ignore[assignment]

    class Declining(Store):
        def purge(self, query: str) -> int:
            raise NotImplementedError

        release = purge

    assert chosen.choose(Keeping()) is None
    assert chosen.choose(Declining()) is None


def test_an_operation_that_breaks_is_one_that_the_memory_has() -> None:
    class Broken(Store):
        def purge(self, query: str) -> int:
            raise SystemExit("no such table")

    assert named.choose(Broken()) == "purge"


def test_a_memory_that_no_longer_has_its_operation_is_broken() -> None:
    class Moody(Store):
        def purge(self, query: str) -> int:
            if self._texts:
                raise NotImplementedError
            return 0

    with pytest.raises(RuntimeError, match="purge raised NotImplementedError"):
        serve(named, filled(Moody(), "Maya joined a club."))


def test_what_is_recalled_for_a_name_is_checked() -> None:
    class Odd(Store):
        def recall_texts(self, query: str, k: int = 5) -> list[str]:
            return [None]  # type: ignore[list-item]

    with pytest.raises(BadAnswerError, match="a list that holds None"):
        serve(named, Odd())


def test_single_releases_the_whole_request_once() -> None:
    asked: list[str] = []

    class Listening(Store):
        def release(self, query: str) -> int:
            if self._texts:
                asked.append(query)
            return super().release(query)

    memory = filled(Listening(), "everything about my cousin Maya Okonkwo", "Soup again.", "Trains were late.")
    done = serve(single, memory)
    assert asked == [REQUEST]
    assert done == Forgotten("release", [], rounds=1, returned=1, removed=None)
    assert left(memory) == {"Soup again.", "Trains were late."}


def test_an_unknown_policy_gets_a_hint() -> None:
    assert policy("single") is single
    with pytest.raises(UserError, match="Did you mean 'named'"):
        policy("name")


class OneAtATime(Store):
    """Holds the same text several times, and a purge takes one copy."""

    def purge(self, query: str) -> int:
        held = [id for id, text in self._texts.items() if query in text]
        self._delete(held[:1])
        return 10**5000


def test_copies_of_one_text_are_removed_until_none_is_left() -> None:
    memory = filled(OneAtATime(), *["Maya Okonkwo runs."] * 4, "It rains.")
    done = serve(named, memory)
    assert left(memory) == {"It rains."}
    assert (done.rounds, done.returned) == (4, None)  # a count that no store can mean is not kept
