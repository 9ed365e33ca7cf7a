"""A user's whole history: sessions, the message behind each told edge, and how much of what it is made of."""

from collections import Counter
from dataclasses import dataclass

from forget_datasets.membehave.dialogue import Exchange, Teller
from forget_datasets.membehave.gold import Edge, Gold
from forget_datasets.membehave.parameters import Parameters
from forget_datasets.membehave.persona import Persona
from forget_datasets.membehave.plan import plan
from forget_datasets.membehave.world import World
from forget_datasets.rows import Evidence, Message, Session
from forget_datasets.seeding import Stream


@dataclass(frozen=True, slots=True)
class Makeup:
    """What a user's messages are made of; shares are of the messages of one role.

    phrase_share  the largest share of the messages that one entry of a phrase file takes part in
    fact_share    of the user's messages, those that state an edge
    people_share  of the user's messages, those that state an edge or mention a person plainly
    """

    user_messages: int
    phrase: str
    phrase_share: float
    fact_share: float
    people_share: float


@dataclass(frozen=True, slots=True)
class History:
    """What a user told: `evidence` has one entry for each told edge, by person's and entity's name."""

    user: str
    gold: Gold
    sessions: tuple[Session, ...]
    evidence: dict[tuple[str, str], Evidence]
    makeup: Makeup


def assistant_of(user: str) -> str:
    """The listener's id: each user has an assistant of its own."""
    return f"{user}-assistant"


def tell(
    user: str, persona: Persona, world: World, gold: Gold, parameters: Parameters, *address: object
) -> History | None:
    """The history that a gold graph gives, from streams of that address alone; None if it does not fit."""
    slots = plan(gold, Stream(*address, "plan"), parameters)
    if slots is None:
        return None
    teller = Teller(world, gold, persona, address)
    sessions: list[Session] = []
    evidence: dict[tuple[str, str], Evidence] = {}
    exchanges: list[Exchange] = []
    for number, slot in enumerate(slots, 1):
        told = teller.tell(slot)
        session = Session(f"{user}-s{number:03d}", slot.start.isoformat(), _messages(told))
        evidence |= {_key(e): _evidence(user, session, 2 * i, e) for i, x in enumerate(told) for e in x.edges}
        sessions.append(session)
        exchanges += told
    return History(user, gold, tuple(sessions), evidence, _makeup(exchanges))


def _messages(exchanges: list[Exchange]) -> list[Message]:
    return [m for x in exchanges for m in (Message("user", x.text), Message("assistant", x.reply))]


def _key(edge: Edge) -> tuple[str, str]:
    return edge.person.name, edge.entity.name


def _evidence(user: str, session: Session, index: int, edge: Edge) -> Evidence:
    return Evidence(
        person=edge.person.name,
        entity=edge.entity.name,
        session_id=session.session_id,
        message_index=index,
        speaker_id=user,
        listener_id=assistant_of(user),
        quote=session.messages[index].content,
    )


def _makeup(exchanges: list[Exchange]) -> Makeup:
    uses = Counter(entry for x in exchanges for entry in dict.fromkeys(x.entries))
    replies = Counter(entry for x in exchanges for entry in dict.fromkeys(x.reply_entries))
    phrase, most = max([*uses.items(), *replies.items()], key=lambda use: (use[1], use[0]))
    n = len(exchanges)
    return Makeup(
        user_messages=n,
        phrase=phrase,
        phrase_share=most / n,
        fact_share=sum(bool(x.edges) for x in exchanges) / n,
        people_share=sum(x.about_people for x in exchanges) / n,
    )
