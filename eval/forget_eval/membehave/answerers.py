"""From recalled messages to an answer."""

import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from forget_datasets.errors import unknown

if TYPE_CHECKING:
    from forget_eval.membehave.chat import Chat

Answerer = Callable[[str, Sequence[str]], str]
"""The question and the recalled messages in, the answer out."""

NAMES = ("extractive", "chat")


def extractive(question: str, texts: Sequence[str]) -> str:
    """The recalled messages, one a line; a line break within a message becomes a space."""
    return "\n".join(" ".join(text.split()) for text in texts)


class ChatAnswerer:
    """A model answers from the recalled messages; how it is asked stands in `prompts.toml`."""

    def __init__(self, chat: "Chat") -> None:
        self._chat = chat

    def __call__(self, question: str, texts: Sequence[str]) -> str:
        """The model's reply. Raises EndpointError or ReplyError as `Chat.say`."""
        notes = "\n".join(f"- {' '.join(text.split())}" for text in texts) or "(none)"
        system, user = prompt("answer")
        content = user.format(notes=notes, question=question)
        return self._chat.say([{"role": "system", "content": system}, {"role": "user", "content": content}])


def answerer(name: str, chat: "Chat | None" = None) -> Answerer:
    """The answerer of a name; "chat" needs a model. Raises UserError for an unknown name."""
    if name not in NAMES:
        raise unknown("answerer", name, NAMES)
    if name == "extractive":
        return extractive
    if chat is None:
        raise ValueError("the chat answerer needs a chat model")
    return ChatAnswerer(chat)


@cache
def prompt(name: str) -> tuple[str, str]:
    """The system text and the template of the user's text of a prompt in `prompts.toml`."""
    data = tomllib.loads((files(__package__) / "prompts.toml").read_text(encoding="utf-8"))[name]
    return data["system"], data["user"]
