"""From the name of a system to an assistant."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forget_datasets.errors import UserError
from forget_datasets.membehave.controls import CONTROLS
from forget_eval import adapters
from forget_eval.guest import hosting
from forget_eval.isolation import selection
from forget_eval.isolation.selection import Isolation
from forget_eval.membehave.answerers import answerer
from forget_eval.membehave.bridge import DEPTH, DEPTH_OF, Bridge
from forget_eval.membehave.chat import OPTIONS, Chat
from forget_eval.membehave.controls import ControlAssistant
from forget_eval.membehave.forgetting import policy
from forget_eval.protocols import Assistant, Embedder

_KINDS = (adapters.MANDATORY, adapters.ASSISTANT)


@dataclass(frozen=True)
class Model:
    """A chat model: the base URL of its endpoint, its name there, and further fields of a request."""

    url: str
    name: str
    options: Mapping[str, Any] = field(default_factory=lambda: dict(OPTIONS))

    def connect(self, fresh: bool = False, repeat: int = 1) -> Chat:
        """A client that keeps replies on disk. Raises UserError for a URL that is none, or a missing package."""
        return Chat(self.url, self.name, options=self.options, cache=cache_folder(), fresh=fresh, repeat=repeat)


@dataclass(frozen=True)
class Settings:
    """How a memory is made an assistant. An assistant of its own and a control take no notice of it.

    Attributes:
        fresh: whether the model is asked again what it was asked in earlier runs.
        repeat: which repeat of a run this is.
    """

    forget_policy: str = "named"
    answerer: str = "extractive"
    model: Model | None = None
    fresh: bool = False
    repeat: int = 1

    def check(self) -> None:
        """Raises UserError for an unknown policy or answerer, and for a chat answerer without a model."""
        policy(self.forget_policy)
        if self.answerer == "chat" and self.model is None:
            raise UserError(
                "--answerer chat needs --chat-url and --chat-model: the endpoint and the model that answers."
            )
        if self.answerer != "chat":
            answerer(self.answerer)


@dataclass(frozen=True)
class System:
    """An assistant under test, the adapter behind it, and what the manifest says of how it was made."""

    assistant: Assistant
    adapter: object
    made: dict[str, Any]


def is_control(name: str) -> bool:
    """Whether a name is that of a MemBehave control."""
    return name in CONTROLS


def wants_embedder(name: str, isolation: Isolation | None = None) -> bool:
    """Whether the adapter of a name takes an embedder. Raises UserError if there is no such adapter."""
    return not is_control(name) and selection.wants_embedder(name, isolation, _KINDS, [*CONTROLS])


def may_be_several(name: str, isolation: Isolation | None = None) -> bool:
    """Whether a system may run in several processes; see `selection.may_be_several`."""
    return is_control(name) or selection.may_be_several(name, isolation, _KINDS, [*CONTROLS])


def load(name: str, embed: Embedder | None, settings: Settings, isolation: Isolation | None = None) -> System:
    """The system of a name: a control, a memory behind the bridge, or an assistant of its own.

    Raises:
        UserError: an unknown name, a missing package, a class that is neither memory nor assistant or cannot be made.
        EnvironmentFault: a process of its own cannot be started for it.
    """
    if is_control(name):
        control = ControlAssistant(name)
        return System(control, control, {"answerer": "control"})
    settings.check()
    adapter = selection.select(name, embed, isolation, _KINDS, [*CONTROLS])
    with hosting(f"adapter '{name}' cannot be used"):
        return System(adapter, adapter, {"answerer": "own"}) if _answers(adapter) else _bridged(adapter, settings)


def cache_folder() -> Path:
    """Where replies of chat models are kept, beside the vectors."""
    from forget_eval.embedding.cache import folder

    return folder() / "chat"


def _bridged(memory: Any, settings: Settings) -> System:
    model = settings.model if settings.answerer == "chat" else None
    chat = model.connect(settings.fresh, settings.repeat) if model else None
    bridge = Bridge(memory, answerer(settings.answerer, chat), policy(settings.forget_policy))
    made: dict[str, Any] = {"answerer": settings.answerer, "forget_policy": settings.forget_policy}
    made["recall"] = {"default": DEPTH, **DEPTH_OF}
    if chat is not None:
        made["model"] = {"url": chat.base_url, "name": chat.model, "options": chat.options}
    return System(bridge, memory, made)


def _answers(adapter: object) -> bool:
    """Whether an adapter is an assistant of its own, and needs no bridge."""
    return all(callable(getattr(adapter, method, None)) for method in adapters.ASSISTANT)
