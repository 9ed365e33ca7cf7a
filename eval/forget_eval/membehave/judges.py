"""Judges read an answer into its canonical form, on which the deterministic metrics work.

The deterministic judge leaves answers as they are: `forget_datasets.membehave.metrics` matches whole tokens. A chat
model is asked one question a fact, and its verdicts become the shortest answer that says the same, so that both
judges share every metric.

A model that says neither yes nor no has not decided. A fact (the answer to a probe, or one entity of it) that it left
open makes the item unscored, and counts against the system in every rate: as known before and lost where it should
have stayed, as known before and still there where it should have gone, and as not known where recall itself is
measured. So it makes no denominator smaller, and no rate is better than it would be with any decision.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from forget_datasets.membehave import metrics
from forget_datasets.rows import Item, ItemProbe
from forget_eval.membehave.answerers import prompt
from forget_eval.membehave.chat import ReplyError

if TYPE_CHECKING:
    from forget_eval.membehave.chat import Chat

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
    """The answers of an item in canonical form, one a probe in each list, with the judgements behind them.

    Attributes:
        recalled: before the request, with nothing in it that is open: what recall is measured on.
        before, after: with everything open read against the system: what is kept and what is lost.
        undecided: how many facts are open, of those that a metric depends on.
    """

    recalled: list[str]
    before: list[str]
    after: list[str]
    undecided: int
    judgements: list[Judgement]


class ChatJudge:
    """A chat model as a judge; how it is asked stands in `prompts.toml`."""

    def __init__(self, chat: "Chat") -> None:
        self._chat = chat

    @property
    def model(self) -> str:
        """The model's name."""
        return self._chat.model

    def __call__(self, item: Item, before: Sequence[str], after: Sequence[str] | None, sentences: bool) -> Judged:
        """Judges all answers of an item, one a probe in each of the two lists.

        Args:
            item: the row.
            before: its answers before the request.
            after: those afterwards; None where there are none, so that the ones before still hold.
            sentences: whether answers are written; the deterministic verdicts beside the model's depend on it.

        Raises:
            EndpointError: the model is down; what was asked is in its cache, and the same call goes on from there.
        """
        judgements: list[Judgement] = []

        def heard(step: str, answers: Sequence[str]) -> list[list[_Reading]]:
            asked = [_Question(self._chat, item, number, step, answer) for number, answer in enumerate(answers)]
            return [question.read(sentences, judgements) for question in asked]

        first = heard(BEFORE, before)
        second = first if after is None else heard(AFTER, after)
        sides = [_sides(item, probe) for probe in item.probes]
        facts = [list(map(_settled, *of_probe)) for of_probe in zip(first, second, sides, strict=True)]
        return Judged(
            recalled=[_joined(fact.recalled for fact in found) for found in facts],
            before=[_joined(fact.before for fact in found) for found in facts],
            after=[_joined(fact.after for fact in found) for found in facts],
            undecided=sum(fact.open for found in facts for fact in found),
            judgements=judgements,
        )


@dataclass(frozen=True, slots=True)
class _Reading:
    """The line that stands for what an answer says of a fact; an undecided one says no more than is certain."""

    line: str
    decided: bool


@dataclass(frozen=True, slots=True)
class _Sides:
    """The lines by which a fact counts against the system, before and after the request.

    `unknown` is the line before that makes the one after irrelevant; None if there is none.
    """

    before: str
    after: str
    unknown: str | None


@dataclass(frozen=True, slots=True)
class _Fact:
    """One fact in the three lists of `Judged`."""

    recalled: str
    before: str
    after: str
    open: bool


def _settled(before: _Reading, after: _Reading, sides: _Sides) -> _Fact:
    if not before.decided:
        return _Fact(before.line, sides.before, sides.after, open=True)
    if not after.decided:
        return _Fact(before.line, before.line, sides.after, open=before.line != sides.unknown)
    return _Fact(before.line, before.line, after.line, open=False)


def _sides(item: Item, probe: ItemProbe) -> list[_Sides]:
    """The sides of each fact that a probe asks for."""
    if probe.scoring == "coverage":
        unknown = None if probe.family == "target" else ""  # of the target, what resurfaces is counted too
        return [_Sides(line, line, unknown) for line in (_tied(item, e) for e in probe.expected_entities)]
    known, unknown = _either_line(probe)
    return [_Sides(known, known if probe.family == "confirm" else unknown, unknown)]


@dataclass(frozen=True, slots=True)
class _Question:
    """One answer that a model is asked about."""

    chat: "Chat"
    item: Item
    number: int
    step: str
    answer: str

    def read(self, sentences: bool, judgements: list[Judgement]) -> list[_Reading]:
        """What the answer says of each fact that its probe asks for; what the model said is added to `judgements`."""
        item, answer, probe = self.item, self.answer, self.item.probes[self.number]

        def ask(question: str, expected: str, deterministic: bool) -> bool | None:
            judgements.append(self._ask(question, expected, deterministic))
            return judgements[-1].verdict

        if probe.scoring == "coverage":
            return [*_entities(item, probe, answer, sentences, ask)]
        if probe.family == "confirm":
            verdict = ask("conveys", "yes", metrics.affirmed(item, probe, answer, sentences))
        else:
            verdict = ask("conveys", probe.expected or "", metrics.answered(probe, answer))
        known, unknown = _either_line(probe)
        return [_Reading(known if verdict else unknown, verdict is not None)]

    def _ask(self, question: str, expected: str, deterministic: bool) -> Judgement:
        system, user = prompt(question)
        asked, person = self.item.probes[self.number].question, self.item.target
        content = user.format(question=asked, expected=expected, answer=self.answer, person=person)
        try:
            raw = self.chat.say([{"role": "system", "content": system}, {"role": "user", "content": content}])
            verdict = read_verdict(raw)
        except ReplyError as error:
            raw, verdict = f"<no reply: {error}>", None
        return Judgement(
            item=self.item.item_id,
            probe=self.number,
            step=self.step,
            question=question,
            expected=expected,
            prompt_sha256=prompt_hash(question),
            model=self.chat.model,
            raw=raw,
            verdict=verdict,
            deterministic=deterministic,
        )


_Ask = Callable[[str, str, bool], bool | None]


def _entities(item: Item, probe: ItemProbe, answer: str, sentences: bool, ask: _Ask) -> Iterator[_Reading]:
    held, tied = metrics.mentioned(item, probe, answer), metrics.attributed(item, probe, answer, sentences)
    for entity in probe.expected_entities:
        mentions = ask("mentions", entity, entity in held)
        if not mentions:
            yield _Reading("", mentions is not None)
            continue
        ties = ask("ties", entity, entity in tied)
        yield _Reading(_tied(item, entity) if ties else entity, ties is not None)


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


def _either_line(probe: ItemProbe) -> tuple[str, str]:
    """The lines of an answer that has the one fact of a probe, and of one that has not."""
    return ("yes", "no") if probe.family == "confirm" else (probe.expected or "", "")


def _tied(item: Item, entity: str) -> str:
    return f"{item.target}: {entity}"


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(filter(None, lines))
