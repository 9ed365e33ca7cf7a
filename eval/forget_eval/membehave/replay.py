"""The four steps of an item: ingest, ask every probe, ask to forget, ask every probe again.

What comes out is a transcript; nothing here judges it. The three items of a triplet have the same sessions, so one
ingest serves them all where the system can snapshot and restore.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from forget_datasets.rows import Item, ItemProbe, Session
from forget_eval.membehave.bridge import DEPTH, DEPTH_OF, Bridge, messages
from forget_eval.membehave.chat import EndpointError
from forget_eval.membehave.forgetting import Forgotten
from forget_eval.protocols import Assistant
from forget_eval.recording import BadAnswerError, described, noun, plain, since
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
            `shared_ingest`, whether the ingest of the item before served; `error`, {kind, message, traceback, during}
            or null; `seconds` a step.

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
        self._step = ""
        self._seconds: dict[str, float] = {}
        self._transcript: Transcript = {
            "id": item.item_id,
            "triplet_id": item.triplet_id,
            "level": item.level,
            "target": item.target,
            "status": "ok",
            "before": None,
            "after": None,
            "operations": {},
            "shared_ingest": False,
            **settings,
            "error": None,
            "seconds": self._seconds,
        }

    def record(self) -> Transcript:
        transcript = self._transcript
        try:
            self._timed("ingest", self._ingest)
            transcript["before"] = self._timed("before", self._ask_all)
            if self._forget():
                transcript["after"] = self._timed("after", self._ask_all)
            else:
                transcript["status"] = "n/a"
        except (KeyboardInterrupt, EndpointError):
            raise
        except BaseException as error:  # a system may even exit the interpreter; the run goes on
            self.ingested = None
            transcript["status"] = "error"
            transcript["error"] = described(error, self._step)
        return transcript

    def _ingest(self) -> None:
        tell = getattr(self._assistant, "_tell", None)
        if tell is not None:
            tell(self._item)
        snapshot, restore = (getattr(self._assistant, name, None) for name in ("snapshot", "restore"))
        if self.ingested is not None and restore is not None and self.ingested.sessions == self._item.sessions:
            restore(self.ingested.state)
            self._transcript["shared_ingest"] = True
            return
        self.ingested = None
        self._assistant.ingest(self._item.sessions)
        if snapshot is not None and restore is not None:
            self.ingested = _Ingested(self._item.sessions, snapshot())

    def _ask_all(self) -> list[str]:
        return [_checked(self._ask(probe)) for probe in self._item.probes]

    def _ask(self, probe: ItemProbe) -> object:
        if isinstance(self._assistant, Bridge):
            return self._assistant.ask(probe.question, k=DEPTH_OF.get(probe.family, DEPTH))
        return self._assistant.ask(probe.question)

    def _forget(self) -> bool:
        """Issues the request; False if the system cannot forget."""
        self._step = "forget"
        outcome: dict[str, Any] = {"status": "error", "returned": None, "seconds": 0.0}
        self._transcript["operations"]["forget"] = outcome
        started = perf_counter()
        try:
            done = self._assistant.forget(self._item.forget_request)
            outcome.update(asdict(done) if isinstance(done, Forgotten) else {"returned": plain(done)}, status="ok")
        except NotImplementedError:
            outcome["status"] = "n/a"
        finally:
            outcome["seconds"] = self._seconds["forget"] = since(started)
        return bool(outcome["status"] == "ok")

    def _timed(self, step: str, action: Any) -> Any:
        self._step = step
        started = perf_counter()
        try:
            return action()
        finally:
            self._seconds[step] = since(started)


def _checked(answer: object) -> str:
    if not isinstance(answer, str):
        raise BadAnswerError(f"ask returned {noun(answer)}, not a text")
    if len(answer) > LONGEST:
        raise BadAnswerError(f"ask returned {len(answer):,} characters, more than {LONGEST:,}")
    return str.__str__(answer)
