"""What the reference store and Lethe do inside, beyond what every adapter is asked."""

import sqlite3
import sys
from collections.abc import Iterable, Sequence
from math import log
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forget_eval import adapters, embedding, policies
from forget_eval.adapters.by_id import HidingStore, Id, StoreById
from forget_eval.adapters.lexical import LexicalIndex
from forget_eval.embedding import Embedder
from forget_eval.policies import Hit


@pytest.fixture(scope="module")
def embed() -> Embedder:
    """The offline default, without the disk."""
    return embedding.load("minilm-int8", cache=False)


def test_a_purge_leaves_no_row_in_lethe(embed: Embedder) -> None:
    memory: Any = adapters.load("lethe", embed=embed)
    kept = ["Hugo takes fencing lessons.", "The canteen serves soup on Friday."]
    memory.inscribe_many(["Dana's locker opens with k77a1.", *kept, "Dana lent k77a1 to the caretaker."])
    memory.release("the locker of Dana")  # a fact that sank must be deleted as well
    assert len(_rows(memory, "memory")) == 4  # a release keeps its rows
    assert memory.purge("k77a1") == 2
    assert sorted(_rows(memory, "memory")) == sorted(_rows(memory, "memory_fts")) == kept
    assert memory._store.conn.execute("SELECT count(*) FROM memory_vec").fetchone()[0] == 2
    memory.close()


def _rows(lethe: Any, table: str) -> list[str]:
    """The texts in a table of Lethe's own database, whatever a recall would show."""
    return [text for (text,) in lethe._store.conn.execute(f"SELECT text FROM {table}")]


def test_the_reference_store_outgrows_its_first_rows(embed: Embedder) -> None:
    memory: Any = adapters.load("reference", embed=embed)
    texts = [f"Locker {i} belongs to team {i % 7}." for i in range(100)]
    for text in texts:
        memory.inscribe(text)
    for i in (0, 15, 16, 17, 99):
        assert memory.recall_texts(texts[i], k=1) == [texts[i]]


def test_an_exact_identifier_wins_where_its_meaning_does_not(embed: Embedder) -> None:
    numbers = ["7f3a9c1e8b2e", "7f3a9c1e8b3d", "7f3a9c1e8d2b", "7f3a9c1e2b8d", "7f3a9c8e1b2d", "7f3a9c1e8b2d"]
    tickets = [f"Ticket {number} is about the lift." for number in numbers]
    query = f"What is ticket {numbers[-1]} about?"
    assert (embed(tickets) @ embed([query])[0]).argmax() != 5  # by cosine another ticket comes first
    memory: Any = adapters.load("reference", embed=embed)
    memory.inscribe_many(tickets)
    assert memory.recall_texts(query, k=1) == [tickets[-1]]


def test_a_snapshot_is_put_back_as_often_as_one_likes(embed: Embedder) -> None:
    memory: Any = adapters.load("reference", embed=embed)
    shed = "The code for the bicycle shed is 40962."
    memory.inscribe_many(["Priya works at Shopify.", "Hugo takes fencing lessons.", shed])
    memory.release("the code for the bicycle shed")
    state = memory.snapshot()
    for _ in range(2):
        memory.purge("Priya")
        memory.supersede("what Hugo does", "Hugo takes judo lessons.")
        assert memory.recall_texts("Hugo", k=10) == ["Hugo takes judo lessons."]
        memory.restore(state)
        assert sorted(memory.recall_texts("Hugo", k=10)) == ["Hugo takes fencing lessons.", "Priya works at Shopify."]
    assert memory.purge("40962") == 1


class Shelf(StoreById):
    """Facts by number, all as near as they are early; what is deleted is noted. Nothing of it can be changed."""

    def __init__(self) -> None:
        self.facts: dict[Id, str] = {}
        self.deleted: list[list[Id]] = []

    def inscribe(self, text: str) -> int:
        self.facts[len(self.facts) + 10] = text
        return len(self.facts) + 9

    def _nearest(self, query: str, k: int) -> list[Hit]:
        return [Hit(id, text, -float(id)) for id, text in self.facts.items()][:k]

    def _stored(self) -> Iterable[tuple[Id, str]]:
        return self.facts.items()

    def _delete(self, ids: Sequence[Id]) -> None:
        self.deleted.append(list(ids))
        for id in ids:
            del self.facts[id]


def test_a_store_that_acts_by_id_is_told_which() -> None:
    shelf = Shelf()
    for text in ("Ann has k77a1.", "Ben sings.", "Cleo lent k77a1.", "Dan has k77a12."):
        shelf.inscribe(text)
    assert shelf.recall_texts("any", k=2) == ["Ann has k77a1.", "Ben sings."]
    assert shelf.purge("k77a1") == 2
    assert shelf.purge("k77a1") == 0
    assert shelf.deleted == [[10, 12]]  # once, and not for nothing


def test_a_fact_that_cannot_be_changed_is_deleted_and_one_added() -> None:
    shelf = Shelf()
    shelf.supersede("Ann", "Ann has a cat.")
    assert shelf.deleted == []
    shelf.supersede("Ann", "Ann has a dog.")
    assert shelf.deleted == [[10]]
    assert shelf.recall_texts("Ann") == ["Ann has a dog."]


def test_only_a_store_that_can_hide_facts_has_a_release() -> None:
    class Hiding(HidingStore, Shelf):
        def _hide(self, hits: Sequence[Hit]) -> None:
            self.deleted.append([hit.id for hit in hits])

    assert not hasattr(Shelf(), "release")
    hiding = Hiding()
    assert hiding.release("any") == 0
    assert hiding.deleted == []
    for text in ("one", "two", "three"):
        hiding.inscribe(text)
    assert hiding.release("any") == 1  # the gaps are equally wide: the first counts
    assert hiding.deleted == [[10]]


SIGNS = "ab1.@ 周慧敏さくマリ김"


@settings(deadline=None)
@given(st.lists(st.text(SIGNS, max_size=12), max_size=8), st.text(SIGNS, max_size=5))
def test_the_lexical_index_misses_no_holder(texts: list[str], identifier: str) -> None:
    index = LexicalIndex()
    for id, text in enumerate(texts):
        index.add(id, text)
    assert set(policies.holding(identifier, texts)) <= set(index.candidates(identifier))
    for id, text in enumerate(texts):
        index.remove(id, text)
    assert index.candidates(identifier) == []
    assert index.weights(identifier) == {}


def test_rare_words_weigh_more() -> None:
    index = LexicalIndex()
    for id, text in enumerate(["code of Ann", "code of Ben", "soup"]):
        index.add(id, text)
    weights = index.weights("the code of Ann")
    assert weights[0] == pytest.approx(1 - _rarity(3, 0) / (_rarity(3, 0) + 2 * _rarity(3, 2) + _rarity(3, 1)))
    assert weights[1] < weights[0]
    assert 2 not in weights


def _rarity(facts: int, holders: int) -> float:
    return log(1 + (facts - holders + 0.5) / (holders + 0.5))


def test_lethe_leaves_the_standard_sqlite_in_place(embed: Embedder) -> None:
    adapters.load("lethe", embed=embed)
    assert sys.modules["sqlite3"] is sqlite3
    assert sqlite3.__name__ == "sqlite3"
