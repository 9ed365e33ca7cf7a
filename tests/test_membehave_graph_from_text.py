"""The gold graph is what the text says: read back from the messages alone, no edge is missing and none is too many.

The reader knows the names of people and entities and nothing else. A message that names a person under any alias and an
entity under its name or short form is a statement that the one touches the other.
"""

import re
from collections.abc import Iterable, Iterator

import pytest

from forget_datasets.membehave import Parameters
from forget_datasets.membehave.gold import Gold
from forget_datasets.membehave.history import History
from forget_datasets.membehave.metrics import normalise
from forget_datasets.membehave.triplets import make_history, make_triplet
from forget_datasets.membehave.world import make_world
from forget_datasets.rows import Session

SETTINGS = [
    (0, Parameters()),
    (17, Parameters()),
    (41, Parameters(sessions_per_user=60)),
    (5, Parameters(same_message=1.0)),
    (6, Parameters(same_message=0.0)),
    (3, Parameters(noise=0.2)),
    (4, Parameters(triplets_per_user=2)),
    (2, Parameters(triplets_per_user=3)),
]

Statement = tuple[str, str]


class Reader:
    """Finds names in texts, as whole tokens."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._meaning = {normalise(alias): name for name, alias in names}
        longest_first = sorted(self._meaning, key=len, reverse=True)
        self._pattern = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w)")

    def named(self, text: str) -> set[str]:
        return {self._meaning[found] for found in self._pattern.findall(normalise(text))}


def readers(gold: Gold, seed: int = 42) -> tuple[Reader, Reader]:
    """Of people: everybody in the world by name, acquaintances by relation as well. Of entities: all of the world."""
    world = make_world(seed)
    people = [(p.name, alias) for p in world.people for alias in (p.name, p.first, p.surname)]
    people += [(known.person.name, alias) for known in gold.known for alias in known.aliases]
    entities = [(e.name, alias) for group in world.entities.values() for e in group for alias in (e.name, *e.aliases)]
    return Reader(people), Reader(entities)


def statements(history: History, role: str) -> Iterator[tuple[Session, int, Statement]]:
    people, entities = readers(history.gold)
    for session in history.sessions:
        for index, message in enumerate(session.messages):
            if message.role == role:
                for person in people.named(message.content):
                    for entity in entities.named(message.content):
                        yield session, index, (person, entity)


@pytest.fixture(params=SETTINGS, ids=lambda s: f"{s[0]}-{s[1].triplets_per_user}-{s[1].same_message}-{s[1].noise}")
def history(request: pytest.FixtureRequest) -> History:
    index, parameters = request.param
    return make_history(index, 42, parameters)


def told(history: History) -> set[Statement]:
    return {(edge.person.name, edge.entity.name) for edge in history.gold.edges}


def test_the_user_states_every_edge_of_the_graph_once_and_no_other(history: History) -> None:
    found = [statement for _, _, statement in statements(history, "user")]
    assert set(found) == told(history)
    assert len(found) == len(set(found))


def test_evidence_stands_where_it_says_and_names_the_entity_in_full(history: History) -> None:
    places = {statement: (session, index) for session, index, statement in statements(history, "user")}
    assert set(history.evidence) == told(history)
    for key, evidence in history.evidence.items():
        session, index = places[key]
        assert (evidence.session_id, evidence.message_index) == (session.session_id, index)
        assert evidence.quote == session.messages[index].content
        assert evidence.entity in evidence.quote


def test_the_assistant_restates_told_edges_alone_and_only_later(history: History) -> None:
    said = list(statements(history, "assistant"))
    assert {statement for _, _, statement in said} <= told(history)
    for session, index, statement in said:
        evidence = history.evidence[statement]
        assert (evidence.session_id, evidence.message_index) < (session.session_id, index)


def test_the_assistant_sometimes_restates() -> None:
    history = make_history(0, 42, Parameters())
    restated = [statement for _, _, statement in statements(history, "assistant")]
    assert 15 <= len(restated) <= 0.4 * len(told(history)) + 6


def test_what_is_told_jointly_is_stated_nowhere_else(history: History) -> None:
    people, entities = readers(history.gold)
    for target in history.gold.targets:
        for edge in target.joint:
            pair = {edge.person.name, target.who.person.name}
            saying = [
                message
                for session in history.sessions
                for message in session.messages
                if edge.entity.name in entities.named(message.content) and pair & people.named(message.content)
            ]
            assert len(saying) == 1
            assert pair <= people.named(saying[0].content)


def test_the_rows_say_what_the_text_says() -> None:
    for index in (0, 1, 2):
        triplet, history = make_triplet(index, 42, Parameters()), make_history(index, 42, Parameters())
        read = {statement for _, _, statement in statements(history, "user")}
        for item in triplet.default:
            own = {entity for person, entity in read if person == item.target}
            assert {n.entity for n in item.neighbors} == own
            for neighbor in item.neighbors:
                others = {person for person, entity in read if entity == neighbor.entity} - {item.target}
                assert set(neighbor.shared_with) == others
