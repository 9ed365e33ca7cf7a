"""Questions that do not measure memory are refused, each for its own reason; and the graph on which they rest."""

import pytest

from forget_datasets.membehave import Parameters, screening
from forget_datasets.membehave.gold import SHARED, Edge, shared_sizes
from forget_datasets.membehave.kinds import Entity
from forget_datasets.membehave.recorded import Recorded, entangle, level_of, record
from forget_datasets.membehave.screening import fault, guess
from forget_datasets.membehave.triplets import make_history
from forget_datasets.membehave.world import World, make_world
from forget_datasets.seeding import Stream

NEVER = ["Maya Calloway", "Maya", "my cousin"]


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(42)


@pytest.fixture
def club(world: World) -> Entity:
    """A club that no guesser would name first."""
    commonest = guess(world, "club", "Where?")
    return next(e for e in world.entities["club"] if e != commonest and world.members[e.name])


def refused(world: World, entity: Entity, question: str, quote: str | None = None, *more: Entity) -> str | None:
    person = world.people[0]
    told = [Edge(person, e) for e in (entity, *more)]
    quote = f"She is in the {entity.name}." if quote is None else quote
    return fault(question, person, entity, quote, NEVER, world, Recorded({e: e for e in told}))


def test_a_good_question_passes(world: World, club: Entity) -> None:
    assert refused(world, club, "Which group does this person meet?") is None


@pytest.mark.parametrize("form", ["{name}", "{short}", "{upper}"])
def test_the_answer_must_not_be_in_the_question(world: World, club: Entity, form: str) -> None:
    said = form.format(name=club.name, short=club.aliases[0], upper=club.aliases[0].upper())
    assert refused(world, club, f"Who goes to {said}?") == "answer in question"


@pytest.mark.parametrize("name", NEVER)
def test_the_target_must_not_be_in_the_question(world: World, club: Entity, name: str) -> None:
    assert refused(world, club, f"Where did {name} go with them?") == "names the target"


def test_two_entities_of_a_kind_are_two_right_answers(world: World, club: Entity) -> None:
    second = next(e for e in world.entities["club"] if e != club)
    assert refused(world, club, "Which group is it?", None, second) == "two right answers"


def test_the_answer_must_stand_in_its_quote(world: World, club: Entity) -> None:
    assert refused(world, club, "Which group is it?", f"She goes to {club.aliases[0]}.") == "not in quote"


def test_the_commonest_entity_of_a_kind_is_guessable(world: World) -> None:
    commonest = guess(world, "club", "Where?")
    assert len(world.members[commonest.name]) == max(len(world.members[e.name]) for e in world.entities["club"])
    assert refused(world, commonest, "Which group is it?") == "guessable"


def test_a_question_that_gives_a_word_of_the_name_is_guessable(world: World) -> None:
    opera = next(e for e in world.entities["club"] if e.name == "Cadenza Opera Club")
    assert guess(world, "club", "Which opera evening is it?") == opera
    assert refused(world, opera, "Which opera evening is it?") == "guessable"


def test_what_many_people_share_is_guessable(world: World, club: Entity) -> None:
    crowd = World(world.people, world.entities, world.touched, {**world.members, club.name: world.people[:13]})
    assert refused(crowd, club, "Which group is it?") == "guessable"  # 13 of 120 people


@pytest.mark.parametrize(
    ("shared", "level"), [(0, "low"), (2, "low"), (3, "med"), (4, "med"), (5, "high"), (13, "high")]
)
def test_levels_count_shared_entities(shared: int, level: str) -> None:
    assert level_of(shared) == level


@pytest.mark.parametrize("seed", [42, 7])
def test_the_sizes_of_triplets_go_round_so_that_the_means_hold(seed: int) -> None:
    """60 is a multiple of the lengths of all three lists; each size is known from its index alone."""
    drawn = [shared_sizes(index, seed) for index in range(60)]
    for level, mean in (("low", 1.4), ("med", 3.6), ("high", 103 / 12)):
        assert sum(sizes[level] for sizes in drawn) / 60 == pytest.approx(mean)
        size = len(SHARED[level])
        assert sorted(sizes[level] for sizes in drawn[:size]) == sorted(SHARED[level])
    assert shared_sizes(41, seed) == drawn[41]


def test_without_noise_the_recorded_graph_is_the_gold_graph() -> None:
    gold = make_history(0, 42, Parameters()).gold
    assert record(gold, 0.0, Stream("x")).sources == {edge: edge for edge in gold.edges}


def test_full_noise_records_nothing_right_and_reads_it_from_messages_about_others() -> None:
    gold = make_history(0, 42, Parameters()).gold
    recorded = record(gold, 1.0, Stream("x"))
    assert recorded.sources
    assert not set(recorded.sources) & set(gold.edges)
    for edge, source in recorded.sources.items():
        assert source in gold.edges
        assert source.entity == edge.entity
        assert source.person != edge.person


def test_entanglement_counts_told_edges_of_other_people() -> None:
    gold = make_history(0, 42, Parameters()).gold
    recorded = record(gold, 0.0, Stream("x"))
    for target in gold.targets:
        found = entangle(target.who, recorded)
        assert found.degree == len(target.edges)
        assert found.shared == len({edge.entity for edge in target.others})
        assert found.level == target.level


def test_the_checks_state_the_bounds_of_a_session() -> None:
    assert (screening.FEWEST_MESSAGES, screening.MOST_MESSAGES) == (6, 14)
