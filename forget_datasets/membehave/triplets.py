"""Triplets of a user: drawn, told and screened, and drawn anew until every item can be measured."""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from forget_datasets.errors import UserError
from forget_datasets.membehave import gold as golden
from forget_datasets.membehave.history import History, Makeup, tell
from forget_datasets.membehave.items import Drawn, draw_item, same_message
from forget_datasets.membehave.metrics import mentions, target_names
from forget_datasets.membehave.parameters import Parameters
from forget_datasets.membehave.persona import draw_persona
from forget_datasets.membehave.probes import Tally
from forget_datasets.membehave.recorded import Entangled, Recorded, entangle, record
from forget_datasets.membehave.world import VERSION, World, make_world
from forget_datasets.rows import LEVELS, Item
from forget_datasets.seeding import Stream

PHRASE_SHARE = 0.02
"""At most this share of a user's messages holds any one entry of a phrase file."""

PEOPLE_SHARE = 1 / 3
"""At most this share of a user's messages is about people."""

_ATTEMPTS = 2000
_NEAR = 2  # degrees within a triplet differ by no more


class Edges(NamedTuple):
    """Edges of a target: recorded as told, recorded and never told, told and not recorded."""

    right: int
    spurious: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of a triplet for the manifest; those by level are keyed low, med, high.

    questions     ripple and control questions written, rephrased, and dropped by reason, by level
    mentions      user messages that name the target, by level
    edges         edges of the target that are right, spurious and dropped (the latter two by noise alone), by level
    same_message  shared entities of which another person is told in the target's own message, by level
    makeup        what the user's messages are made of
    rejected      draws of the user thrown away before this one, by reason
    """

    questions: dict[str, Tally]
    mentions: dict[str, int]
    edges: dict[str, Edges]
    same_message: dict[str, int]
    makeup: Makeup
    rejected: dict[str, int]


@dataclass(frozen=True, slots=True)
class Triplet:
    """Three items of one user, low, med and high: as in config `default`, and as in `extended`."""

    index: int
    default: tuple[Item, ...]
    extended: tuple[Item, ...]
    figures: Figures


def make_triplet(index: int, seed: int, parameters: Parameters) -> Triplet:
    """The triplet of an index, from its own address alone.

    Raises:
        UserError: a negative index; noise so strong that no draw keeps the three levels apart.
    """
    if index < 0:
        raise UserError(f"triplet {index}: indices count from 0.")
    user, k = divmod(index, parameters.triplets_per_user)
    return _user(user, seed, parameters).triplets[k]


def make_history(index: int, seed: int, parameters: Parameters) -> History:
    """The history behind a triplet, with its gold graph; raises what `make_triplet` raises."""
    make_triplet(index, seed, parameters)
    return _user(index // parameters.triplets_per_user, seed, parameters).history


class _User(NamedTuple):
    history: History
    triplets: tuple[Triplet, ...]


@lru_cache(maxsize=2)
def _user(number: int, seed: int, parameters: Parameters) -> _User:
    """All triplets of a user: they share one history."""
    world = make_world(seed)
    rejected: Counter[str] = Counter()
    for attempt in range(_ATTEMPTS):
        found = _attempt(number, seed, world, parameters, "membehave", VERSION, seed, "user", number, attempt)
        if not isinstance(found, str):
            history, drawn = found
            first = number * parameters.triplets_per_user
            triplets = (_triplet(first + k, d, history, rejected) for k, d in enumerate(drawn))
            return _User(history, tuple(triplets))
        rejected[found] += 1
    raise UserError(
        f"user {number}: none of {_ATTEMPTS} draws gave three levels ({dict(rejected)}). "
        f"Lower noise (now {parameters.noise})."
    )


def _attempt(
    number: int, seed: int, world: World, parameters: Parameters, *address: object
) -> tuple[History, list[dict[str, Drawn]]] | str:
    """The history and the items of each triplet by level, or why the draw is thrown away."""
    persona = draw_persona(Stream(*address, "persona"))
    first = number * parameters.triplets_per_user
    sizes = [golden.shared_sizes(first + k, seed) for k in range(parameters.triplets_per_user)]
    gold = golden.draw(world, persona, Stream(*address, "gold"), parameters.same_message, sizes)
    if gold is None:
        return "too few shared entities"
    recorded = record(gold, parameters.noise, Stream(*address, "noise"))
    triplets = [_by_level(gold, recorded, k) for k in range(parameters.triplets_per_user)]
    if not all(triplets):
        return "levels or degrees apart"
    user = f"user-{number + 1:04d}"
    history = tell(user, persona, world, gold, parameters, *address)
    if history is None or history.makeup.people_share > PEOPLE_SHARE or history.makeup.phrase_share > PHRASE_SHARE:
        return "too little ordinary talk"
    found = []
    for k, triplet in enumerate(triplets):
        items = [draw_item(world, history, recorded, e, f"{user}#{k}", *address) for e in triplet.values()]
        drawn = [item for item in items if item is not None]
        if len(drawn) < len(LEVELS):
            return "an item without ripple or control probes"
        found.append(dict(zip(LEVELS, drawn, strict=True)))
    return history, found


def _by_level(gold: golden.Gold, recorded: Recorded, k: int) -> dict[str, Entangled]:
    """The targets of a triplet by recorded level; empty unless each level is there once and the degrees are near."""
    entangled = [entangle(target.who, recorded) for target in gold.targets[3 * k : 3 * k + 3]]
    degrees = [e.degree for e in entangled]
    by_level = {e.level: e for e in entangled}
    if len(by_level) < len(LEVELS) or max(degrees) - min(degrees) > _NEAR:
        return {}
    return {level: by_level[level] for level in LEVELS}


def _triplet(index: int, drawn: dict[str, Drawn], history: History, rejected: Counter[str]) -> Triplet:
    items = {level: d.default for level, d in drawn.items()}
    told = [m.content for s in items["low"].sessions for m in s.messages if m.role == "user"]
    figures = Figures(
        questions={level: d.tally for level, d in drawn.items()},
        mentions={level: sum(mentions(t, target_names(item)) for t in told) for level, item in items.items()},
        edges={level: _edges(item, history) for level, item in items.items()},
        same_message={level: same_message(item) for level, item in items.items()},
        makeup=history.makeup,
        rejected=dict(rejected),
    )
    return Triplet(index, tuple(items.values()), tuple(d.extended for d in drawn.values()), figures)


def _edges(item: Item, history: History) -> Edges:
    recorded = {n.entity for n in item.neighbors}
    told = {entity for person, entity in history.evidence if person == item.target}
    return Edges(len(recorded & told), len(recorded - told), len(told - recorded))
