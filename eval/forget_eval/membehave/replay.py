"""The four steps of an item: ingest, ask every probe, ask to forget, ask every probe again.

What comes out is a transcript; nothing here judges it. The three items of a triplet have the same sessions, so one
ingest serves them all where the system can snapshot and restore.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from time import perf_counter
from typing import Any

from forget_datasets.rows import Item, ItemProbe, Session
from forget_eval.adapters import is_told
from forget_eval.membehave.bridge import DEPTH, DEPTH_OF, Bridge, messages
from forget_eval.membehave.chat import EndpointError
from forget_eval.membehave.forgetting import Forgotten
from forget_eval.protocols import Assistant
from forget_eval.recording import BadAnswerError, Steps, described, noun, plain, since
from forget_eval.transcripts import Transcript

LONGEST = 1 << 18
"""Characters of an answer. 50 recalled messages are far shorter; a longer answer is an error."""


def texts(item: Item) -> Iterator[str]:
    """The texts of an item that a memory may want to embed: messages, questions, names and the request."""
    from forget_eval.membehave.names import people, spoken

    yield from messages(item.sessions)
    for probe in item.probes:
        yield probe.question
    yield item.forget_request
    for name in people(item.forget_request):
        yield from spoken(name)


@dataclass(frozen=True, slots=True)
class _Ingested:
    sessions: Sequence[Session]
    state: object


class Replay:
    """Plays items against one assistant, one after the other.

    Args:
        assistant: the system under test. It must not be used for anything else in between.
        settings: what the transcript says of policy, answerer and the like.
    """

    def __init__(self, assistant: Assistant, **settings: str) -> None:
        self._assistant, self._settings = assistant, settings
        self._ingested: _Ingested | None = None

    def __call__(self, item: Item) -> Transcript:
        """Plays an item and records what the assistant answered.

        A `forget` that raises NotImplementedError ends the item as "n/a"; whatever else is raised, and an answer that
        is no string of at most `LONGEST` characters, ends it as "error". What was answered before then is kept.

        Returns:
            id, triplet_id, level, target; status "ok", "n/a" or "error"; `before` and `after`, one answer a probe,
            null if that step was not finished; `operations`, {"forget": {status, returned, seconds, …}};
            `error`, {kind, message, traceback, during} or null; `seconds` a step, which is "restore" in place of
            "ingest" where the ingest of the item before served. But for `seconds` an item has the same transcript
            wherever a run begins.

        Raises:
            EndpointError: the chat model is down; nothing is recorded, and the run can go on later.
        """
        play = _Play(self._assistant, item, self._settings, self._ingested)
        transcript = play.record()
        self._ingested = play.ingested
        return transcript


class _Play:
    def __init__(self, assistant: Assistant, item: Item, settings: dict[str, str], ingested: _Ingested | None) -> None:
        self._assistant, self._item, self.ingested = assistant, item, ingested
        self._steps = Steps()
        self._transcript: Transcript = {
            "id": item.item_id,
            "triplet_id": item.triplet_id,
            "level": item.level,
            "target": item.target,
            "status": "ok",
            "before": None,
            "after": None,
            "operations": {},
            **settings,
            "error": None,
            "seconds": self._steps.seconds,
        }

    def record(self) -> Transcript:
        transcript = self._transcript
        try:
            self._fill()
            transcript["before"] = self._steps.timed("before", self._ask_all)
            if self._forget():
                transcript["after"] = self._steps.timed("after", self._ask_all)
            else:
                transcript["status"] = "n/a"
        except (KeyboardInterrupt, EndpointError):
            raise
        except BaseException as error:  # a system may even exit the interpreter; the run goes on
            self.ingested = None
            transcript["status"] = "error"
            transcript["error"] = described(error, self._steps.now)
        return transcript

    def _fill(self) -> None:
        """Has the assistant know the item's history, by the snapshot of the item before if that will do."""
        self._steps.now = "ingest"
        if is_told(self._assistant):
            self._assistant._tell(self._item)  # type: ignore[attr-defined]
        if self._restored():
            return
        self.ingested = None
        self._steps.timed("ingest", lambda: self._assistant.ingest(self._item.sessions))
        self.ingested = self._steps.timed("snapshot", self._snapshot)

    def _restored(self) -> bool:
        restore = getattr(self._assistant, "restore", None)
        if restore is None or self.ingested is None or self.ingested.sessions != self._item.sessions:
            return False
        try:
            self._steps.timed("restore", partial(restore, self.ingested.state))
        except NotImplementedError:  # as if the method were missing
            return False
        return True

    def _snapshot(self) -> _Ingested | None:
        """The state after an ingest; None if the assistant can take none or put none back."""
        snapshot, restore = (getattr(self._assistant, name, None) for name in ("snapshot", "restore"))
        if snapshot is None or restore is None:
            return None
        try:
            return _Ingested(self._item.sessions, snapshot())
        except NotImplementedError:
            return None

    def _ask_all(self) -> list[str]:
        return [_checked(self._ask(probe)) for probe in self._item.probes]

    def _ask(self, probe: ItemProbe) -> object:
        if isinstance(self._assistant, Bridge):
            return self._assistant.ask(probe.question, k=DEPTH_OF.get(probe.family, DEPTH))
        return self._assistant.ask(probe.question)

    def _forget(self) -> bool:
        """Issues the request; False if the system cannot forget."""
        self._steps.now = "forget"
        outcome: dict[str, Any] = {"status": "error", "returned": None, "seconds": 0.0}
        self._transcript["operations"]["forget"] = outcome
        started = perf_counter()
        try:
            done = self._assistant.forget(self._item.forget_request)
            outcome.update(asdict(done) if isinstance(done, Forgotten) else {"returned": plain(done)}, status="ok")
        except NotImplementedError:
            outcome["status"] = "n/a"
        finally:
            outcome["seconds"] = self._steps.seconds["forget"] = since(started)
        return bool(outcome["status"] == "ok")


def _checked(answer: object) -> str:
    if not isinstance(answer, str):
        raise BadAnswerError(f"ask returned {noun(answer)}, not a text")
    if len(answer) > LONGEST:
        raise BadAnswerError(f"ask returned {len(answer):,} characters, more than {LONGEST:,}")
    return str.__str__(answer)
