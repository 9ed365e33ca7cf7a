"""Judges read an answer into its canonical form, on which the deterministic metrics work.

The deterministic judge leaves answers as they are: `forget_datasets.membehave.metrics` matches whole tokens. A chat
model is asked one question a fact, and its verdicts become the shortest answer that says the same, so that both
judges share every metric. Whatever a model says that is neither yes nor no is unscored: it counts against the system,
and the item is marked.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from forget_datasets.membehave import metrics
from forget_datasets.rows import Item, ItemProbe
from forget_eval.membehave.answerers import prompt
from forget_eval.membehave.chat import ReplyError

if TYPE_CHECKING:
    from forget_eval.membehave.chat import Chat

NAMES = ("deterministic", "chat")
BEFORE, AFTER = "before", "after"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One question to a judge, and what it said.

    Attributes:
        item, probe, step: which answer: the item's id, the number of the probe, "before" or "after".
        question: which prompt: "conveys", "mentions" or "ties".
        expected: the answer or entity that was looked for.
        prompt_sha256: of the wording, with its slots empty.
        model, raw: who said what.
        verdict: None where `raw` is neither yes nor no.
        deterministic: what the deterministic judge says to the same.
    """

    item: str
    probe: int
    step: str
    question: str
    expected: str
    prompt_sha256: str
    model: str
    raw: str
    verdict: bool | None
    deterministic: bool

    def to_row(self) -> dict[str, Any]:
        """The judgement as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Judged:
    """The answers of an item in canonical form, with the judgements behind them."""

    before: list[str]
    after: list[str]
    judgements: list[Judgement]

    @property
    def undecided(self) -> int:
        """How many judgements are neither yes nor no."""
        return sum(j.verdict is None for j in self.judgements)


class ChatJudge:
    """A chat model as a judge; how it is asked stands in `prompts.toml`."""

    def __init__(self, chat: "Chat") -> None:
        self._chat = chat

    @property
    def model(self) -> str:
        """The model's name."""
        return self._chat.model

    def __call__(self, item: Item, before: Sequence[str], after: Sequence[str], sentences: bool) -> Judged:
        """Judges all answers of an item, one a probe in each of the two lists.

        Raises:
            EndpointError: the model is down; what was asked is in its cache, and the same call goes on from there.
        """
        found: list[Judgement] = []

        def judged(step: str, answers: Sequence[str]) -> list[str]:
            return [
                self._canonical(item, number, step, answer, sentences, found) for number, answer in enumerate(answers)
            ]

        return Judged(judged(BEFORE, before), judged(AFTER, after), found)

    def _canonical(
        self, item: Item, number: int, step: str, answer: str, sentences: bool, found: list[Judgement]
    ) -> str:
        probe = item.probes[number]

        def ask(question: str, expected: str, plain: bool) -> bool | None:
            found.append(self._ask(item, number, step, question, expected, answer, plain))
            return found[-1].verdict

        if probe.scoring == "coverage":
            return _entities(item, probe, answer, step, sentences, ask)
        if probe.family == "confirm":
            verdict = ask("conveys", "yes", metrics.affirmed(item, probe, answer, sentences))
            return _yes_or_no(verdict, step)
        expected = probe.expected or ""
        return expected if ask("conveys", expected, metrics.answered(probe, answer)) else ""

    def _ask(
        self, item: Item, number: int, step: str, question: str, expected: str, answer: str, plain: bool
    ) -> Judgement:
        system, user = prompt(question)
        content = user.format(
            question=item.probes[number].question, expected=expected, answer=answer, person=item.target
        )
        try:
            raw = self._chat.say([{"role": "system", "content": system}, {"role": "user", "content": content}])
        except ReplyError as error:
            raw = f"<no reply: {error}>"
        verdict = read_verdict(raw)
        return Judgement(
            item.item_id, number, step, question, expected, prompt_hash(question), self.model, raw, verdict, plain
        )


Ask = Callable[[str, str, bool], bool | None]


def prompt_hash(name: str) -> str:
    """The sha256 of a prompt's wording."""
    return sha256("\0".join(prompt(name)).encode()).hexdigest()


def read_verdict(raw: str) -> bool | None:
    """True for a reply that opens with the word yes, False with no; None for anything else, or for both."""
    words: list[str] = re.findall(r"[a-z']+", raw.casefold())
    opening = words[0] if words else ""
    if opening not in ("yes", "no") or {"yes", "no"} <= set(words):
        return None
    return opening == "yes"


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa of two judges (Cohen 1960): their agreement beyond chance, 1 if it is perfect.

    None without pairs, or where both always say the same one word, so that chance alone explains everything.
    """
    if not pairs:
        return None
    n = len(pairs)
    agreed = sum(a == b for a, b in pairs) / n
    first, second = sum(a for a, _ in pairs) / n, sum(b for _, b in pairs) / n
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else (agreed - chance) / (1 - chance)


def agreement(judgements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How far a chat judge and the deterministic one agree, over the judgements that are yes or no."""
    pairs = [(j["verdict"], j["deterministic"]) for j in judgements if j["verdict"] is not None]
    found = kappa(pairs)
    return {
        "kappa": None if found is None else round(found, 12),
        "agreed": sum(a == b for a, b in pairs),
        "n": len(pairs),
        "undecided": len(judgements) - len(pairs),
    }


def _entities(item: Item, probe: ItemProbe, answer: str, step: str, sentences: bool, ask: Ask) -> str:
    """One line an entity that the answer mentions, with the target's name where it is tied to the target."""
    plain, tied = metrics.mentioned(item, probe, answer), metrics.attributed(item, probe, answer, sentences)
    held_against = step == AFTER  # what nobody decided was not known before, and is not gone after
    lines = []
    for entity in probe.expected_entities:
        mentions = ask("mentions", entity, entity in plain)
        if mentions is None:
            lines += [f"{item.target}: {entity}"] * held_against
        elif mentions:
            ties = ask("ties", entity, entity in tied)
            is_tied = held_against if ties is None else ties
            lines.append(f"{item.target}: {entity}" if is_tied else entity)
    return "\n".join(lines)


def _yes_or_no(verdict: bool | None, step: str) -> str:
    if verdict is None:
        return "yes" if step == AFTER else "no"
    return "yes" if verdict else "no"
