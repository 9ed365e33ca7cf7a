"""What a process needs to play rows, as plain data: a seat can be sent to another process and taken there."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from forget_datasets.rows import GeneratedCase, Item
from forget_eval import adapters, forgeteval
from forget_eval.isolation import selection
from forget_eval.isolation.selection import Isolation
from forget_eval.protocols import Embedder
from forget_eval.transcripts import Transcript

if TYPE_CHECKING:
    from forget_eval.membehave.systems import Settings

Row = TypeVar("Row")


@dataclass(frozen=True)
class Seated(Generic[Row]):
    """A system that was made.

    Attributes:
        adapter: is described by a manifest.
        played: what is played against, and closed at the end.
        replay: plays a row against it.
        made: what a manifest says of how it was made an assistant.
    """

    adapter: object
    played: object
    replay: Callable[[Row], Transcript]
    made: dict[str, Any] = field(default_factory=dict)


class Seat(Protocol[Row]):
    """Makes a system wherever it is called; it can be pickled."""

    @property
    def name(self) -> str:
        """Of the adapter, as the user wrote it."""
        ...

    def take(self, embed: Embedder | None) -> Seated[Row]:
        """Makes the system. Raises what `selection.select` raises."""
        ...


@dataclass(frozen=True)
class CaseSeat:
    """Plays ForgetEval cases, with at most k texts a recall."""

    name: str
    k: int
    isolation: Isolation | None = None

    def take(self, embed: Embedder | None) -> Seated[GeneratedCase]:
        """Makes the memory."""
        memory = selection.select(self.name, embed, self.isolation)
        described = adapters.describe(memory)
        told, languages = bool(described["told_the_case"]), described.get("languages")
        play = partial(forgeteval.replay, memory=memory, k=self.k, told=told, languages=languages)
        return Seated(memory, memory, play)


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item as the runner knows rows."""

    item: Item

    @property
    def id(self) -> str:
        """The item's id."""
        return self.item.item_id


@dataclass(frozen=True)
class ItemSeat:
    """Plays MemBehave items."""

    name: str
    settings: "Settings"
    isolation: Isolation | None = None

    def take(self, embed: Embedder | None) -> Seated[ItemRow]:
        """Makes the assistant."""
        from forget_eval.membehave import replay, systems

        system = systems.load(self.name, embed, self.settings, self.isolation)
        play = replay.Replay(system.assistant, **{k: v for k, v in system.made.items() if isinstance(v, str)})
        return Seated(system.adapter, system.assistant, lambda row: play(row.item), system.made)
