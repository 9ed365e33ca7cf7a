"""Every adapter through the same tests; what one does not declare is asserted to be n/a."""

import gc
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.forgeteval.controls import CONTROLS
from forget_datasets.rows import OPERATIONS, GeneratedCase, Probe
from forget_datasets.verdicts import failures
from forget_eval import adapters
from forget_eval.embedding import Embedder
from forget_eval.forgeteval import replay

pytest_plugins = ("tests.plain_memory",)

STORES = ["reference", "lethe"]
PLAIN_ADAPTER = "plain_memory_module:PlainMemory"
LACKING = {PLAIN_ADAPTER: {"supersede", "release"}}  # it has no supersede, and its release is not implemented
IN_PROCESS = ("null", "keep-all", "wipe-all", "oracle", "reference", "lethe")
"""What needs no environment of its own; the other systems have tests/test_systems.py."""


@pytest.fixture(params=[*IN_PROCESS, PLAIN_ADAPTER])
def memory(request: pytest.FixtureRequest, embed: Embedder, module_of_a_user: Path) -> Iterator[Any]:
    """Every adapter, built-in or a class of the user's own."""
    made: Any = adapters.load(request.param, embed=embed)
    yield made
    getattr(made, "close", lambda: None)()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, embed: Embedder) -> Iterator[Any]:
    """The adapters that keep what they are given and do all three operations."""
    made: Any = adapters.load(request.param, embed=embed)
    made.reset()
    yield made
    getattr(made, "close", lambda: None)()


def _case(old: str, new: str) -> GeneratedCase:
    return GeneratedCase(
        id="supersession__job__001",
        family="supersession",
        setup_facts=[f"Priya works at {old}.", "Hugo takes fencing lessons.", "The canteen serves soup on Friday."],
        mutations=[("supersede", "the company where Priya works", f"Priya now works at {new}.")],
        final_query="Where does Priya work?",
        must_contain=[new],
        must_not_contain=[old],
        probes=[
            Probe("survivor", "What does Hugo do in his spare time?", ["fencing"], []),
            Probe("leak", old, [], [old]),
        ],
    )


def _play(memory: Any, case: GeneratedCase, k: int = 10) -> list[list[str]]:
    """The answers to the final query and the probes; operations that the memory lacks are left out."""
    memory.reset()
    if hasattr(memory, "_tell"):
        memory._tell(case)
    for fact in case.setup_facts:
        memory.inscribe(fact)
    for operation, *arguments in case.mutations:
        if operation in adapters.operations(memory):
            getattr(memory, operation)(*arguments)
    return [memory.recall_texts(query, k=k) for query in [case.final_query, *(p.query for p in case.probes)]]


# All adapters ---------------------------------------------------------------------------------------------------------


def test_answers_are_lists_of_at_most_k_texts(memory: Any) -> None:
    for k in (1, 2, 10):
        for answer in _play(memory, _case("Shopify", "Figma"), k):
            assert isinstance(answer, list)
            assert len(answer) <= k
            assert all(isinstance(text, str) for text in answer)


def test_it_has_a_name_and_says_how_it_does_each_operation(memory: Any) -> None:
    assert memory.name
    assert set(adapters.operations(memory)) <= set(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_replay_is_na_where_an_operation_is_lacking_and_nowhere_else(memory: Any, operation: str) -> None:
    arguments = ("Priya", "Priya works at Figma.") if operation == "supersede" else ("Priya",)
    transcript = replay(replace(_case("Shopify", "Figma"), mutations=[(operation, *arguments)]), memory)
    status = "n/a" if operation in LACKING.get(memory.name, ()) else "ok"
    assert transcript["status"] == status, transcript["error"]
    assert [(told["op"], told["status"]) for told in transcript["operations"]] == [(operation, status)]
    assert (transcript["final"] is None) is (status == "n/a")


def test_a_reset_lets_nothing_of_one_case_into_the_next(memory: Any) -> None:
    one, contrary = _case("Shopify", "Figma"), _case("Figma", "Shopify")
    fresh = _play(memory, contrary)
    _play(memory, one)
    assert _play(memory, contrary) == fresh


def test_resets_grow_nothing(memory: Any) -> None:
    def size() -> tuple[int, int]:
        gc.collect()
        return len(gc.get_objects()), len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    case = _case("Shopify", "Figma")
    for _ in range(20):
        _play(memory, case)
    objects, files = size()
    for _ in range(200):
        _play(memory, case)
    more_objects, more_files = size()
    assert more_files - files < 100  # less than one for every second reset; the interpreter has files of its own
    assert more_objects - objects < 100


# Stores ---------------------------------------------------------------------------------------------------------------


def test_a_store_passes_an_easy_case(store: Any) -> None:
    case = _case("Shopify", "Figma")
    final, survivor, leak = _play(store, case)
    assert failures(case, final) == []
    assert failures(case.probes[0], survivor) == []
    assert failures(case.probes[1], leak) == []


def test_a_superseded_fact_is_replaced(store: Any) -> None:
    store.inscribe_many(["Priya works at Shopify.", "Hugo takes fencing lessons."])
    store.supersede("the company where Priya works", "Priya now works at Figma.")
    assert store.recall_texts("Where does Priya work?", k=10)[0] == "Priya now works at Figma."
    assert sorted(store.recall_texts("Shopify", k=10)) == ["Hugo takes fencing lessons.", "Priya now works at Figma."]


def test_the_first_supersede_of_an_empty_store_adds_the_text(store: Any) -> None:
    store.supersede("the company where Priya works", "Priya works at Figma.")
    assert store.recall_texts("Priya", k=10) == ["Priya works at Figma."]


def test_released_facts_are_hidden_and_the_rest_stays(store: Any) -> None:
    code = "The code for the bicycle shed is 40962."
    store.inscribe_many([code, "Hugo takes fencing lessons.", "The canteen serves soup on Friday."])
    assert store.release("the code for the bicycle shed") == 1
    assert sorted(store.recall_texts("What is the code for the shed?", k=10)) == [
        "Hugo takes fencing lessons.",
        "The canteen serves soup on Friday.",
    ]


def test_a_release_takes_as_many_facts_as_are_about_its_subject(store: Any) -> None:
    subject = [
        "Leila sings in the harbour choir.",
        "Leila sings at the choir's summer fete.",
        "Leila sings the alto part.",
        "Leila sings on Thursday evenings.",
        "Leila sings old sea songs.",
    ]
    peer = "Omar repairs bicycles on Saturdays."
    others = ["The lift squeaks in winter.", "The canteen serves soup on Friday.", "Parking costs two euros an hour."]
    store.inscribe_many([subject[0], peer, *subject[1:], *others])
    assert store.release("everything about Leila") == 5
    for query in ("Leila", "What does Leila sing?", "What does Omar do on Saturdays?"):
        assert sorted(store.recall_texts(query, k=10)) == sorted([peer, *others])


def test_a_purge_takes_all_holders_and_no_sibling(store: Any) -> None:
    mine = ["alice@acme.io asked for a paper invoice.", "The voucher of ALICE@ACME.IO has run out."]
    others = ["alice@acme.io.uk prefers to be called.", "bob@acme.io moved to Bern.", "b.alice@acme.io is away."]
    store.inscribe_many([*mine, *others])
    assert store.purge("alice@acme.io") == 2
    assert sorted(store.recall_texts("alice@acme.io", k=10)) == sorted(others)
    assert store.purge("alice@acme.io") == 0
    assert store.purge("carol@acme.io") == 0


def test_a_purge_finds_names_in_scripts_without_spaces(store: Any) -> None:
    store.inscribe_many(["周慧敏的病历在三楼。", "患者周慧敏对青霉素过敏。", "佐伯遥香さんは入院中です。"])
    assert store.purge("周慧敏") == 2
    assert store.purge("佐伯遥香") == 1
    assert store.recall_texts("周慧敏", k=10) == []


def test_a_purge_reaches_facts_that_no_recall_shows(store: Any) -> None:
    store.inscribe_many(["The key of Dana is k77a1.", "Hugo takes fencing lessons.", "The canteen serves soup."])
    store.release("the key of Dana")
    assert store.purge("k77a1") == 1


def test_twins_are_facts_of_their_own(store: Any) -> None:
    ids = [store.inscribe("Hugo takes fencing lessons.") for _ in range(2)]
    assert len(set(ids)) == 2
    assert store.recall_texts("Hugo", k=10) == ["Hugo takes fencing lessons."] * 2
    assert store.purge("Hugo") == 2


def test_many_at_once_is_the_same_as_one_by_one(store: Any) -> None:
    case = _case("Shopify", "Figma")
    one_by_one = _play(store, case)
    store.reset()
    assert len(set(store.inscribe_many(case.setup_facts))) == 3
    store.supersede(*case.mutations[0][1:])
    assert [
        store.recall_texts(query, k=10) for query in [case.final_query, *(p.query for p in case.probes)]
    ] == one_by_one


def test_no_texts_at_all(store: Any) -> None:
    assert list(store.inscribe_many([])) == []
    assert store.recall_texts("anything", k=10) == []
    assert store.release("anything") == 0
    assert store.purge("anything") == 0


# Controls -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONTROLS)
@pytest.mark.parametrize("k", [1, 2, 10])
def test_a_control_answers_as_the_data_says(name: str, k: int) -> None:
    case = _case("Shopify", "Figma")
    expected = [CONTROLS[name](case, need)[:k] for need in (case, *case.probes)]
    assert _play(adapters.load(name), case, k) == expected


def test_a_control_must_be_told_the_case() -> None:
    control: Any = adapters.load("oracle")
    control.reset()
    with pytest.raises(RuntimeError, match="must be told"):
        control.recall_texts("anything")
