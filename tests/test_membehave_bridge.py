"""From a memory to an assistant, and the four steps of an item."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from forget_datasets.rows import Item, Message, Session
from forget_eval.adapters.reference import ReferenceMemory
from forget_eval.membehave.bridge import Bridge, messages
from forget_eval.membehave.chat import EndpointError
from forget_eval.membehave.controls import ControlAssistant
from forget_eval.membehave.forgetting import single
from forget_eval.membehave.replay import LONGEST, Replay, texts
from forget_eval.protocols import Assistant

ITEM = Item.from_row(json.loads((Path(__file__).parent / "membehave_item.json").read_text(encoding="utf-8")))
OTHER = replace(ITEM, item_id="ana#Hugo Petit", target="Hugo Petit", forget_request="Forget Hugo Petit.")
ABOUT_MAYA = 5  # messages of ITEM that name Maya


def bag_of_words(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors that count words, so that no model is needed."""
    rows = np.full((len(texts), 256), 1e-3, dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().split():
            row[crc32(word.strip(".,!?").encode()) % 256] += 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Store(ReferenceMemory):
    """The reference store, over words; counts how often it is filled."""

    fills = 0

    def __init__(self) -> None:
        super().__init__(bag_of_words)

    def inscribe_many(self, texts: Sequence[str]) -> list[int]:
        self.fills += 1
        return super().inscribe_many(texts)


def test_a_message_is_a_fact_and_an_answer_is_what_is_recalled_one_a_line() -> None:
    assistant = Bridge(Store())
    assert isinstance(assistant, Assistant)
    assistant.ingest(
        [Session("s", "2025-01-01T00:00:00+00:00", [Message("user", "Soup\nagain."), Message("assistant", " ")])]
    )
    assert assistant.ask("soup") == "Soup again."


def test_both_sides_of_a_conversation_are_told_in_their_order() -> None:
    told = messages(ITEM.sessions)
    assert len(told) == 12
    assert told[0].startswith("Soup again.")
    assert told[1].startswith("Nice for her!")


def test_a_memory_that_takes_one_fact_at_a_time_is_told_the_same() -> None:
    class Slow(Store):
        inscribe_many = None  # type: ignore[assignment]

        def inscribe(self, text: str) -> int:
            return ReferenceMemory.inscribe_many(self, [text])[0]

    slow, fast = Bridge(Slow()), Bridge(Store())
    for assistant in (slow, fast):
        assistant.ingest(ITEM.sessions)
    assert slow.ask("Maya") == fast.ask("Maya")


def test_everything_is_recalled_about_a_person_and_little_for_the_rest() -> None:
    depths: list[tuple[str, int]] = []

    class Watched(Store):
        def recall_texts(self, query: str, k: int = 5) -> list[str]:
            depths.append((query, k))
            return super().recall_texts(query, k)

    Replay(Bridge(Watched(), policy=single))(ITEM)
    asked = [(probe.question, 50 if probe.family in ("target", "alias") else 10) for probe in ITEM.probes]
    assert depths == [*asked, *asked]


def test_the_four_steps_of_an_item() -> None:
    transcript = Replay(Bridge(Store()), policy="named", answerer="extractive")(ITEM)
    assert [transcript[key] for key in ("id", "triplet_id", "level", "target")] == [
        "ana#Maya Okonkwo",
        "ana#0",
        "low",
        "Maya Okonkwo",
    ]
    assert (transcript["status"], transcript["policy"], transcript["answerer"]) == ("ok", "named", "extractive")
    before, after = transcript["before"], transcript["after"]
    assert len(before) == len(after) == len(ITEM.probes)
    assert before[0].count("\n") == 11  # all twelve messages, since k covers them
    assert after[0].count("\n") == 11 - ABOUT_MAYA
    assert "Maya" not in after[0]
    assert "Tomasz Baran has been in the Harbor Book Club for years." in after[1]
    forget = transcript["operations"]["forget"]
    assert (forget["status"], forget["removed"], forget["returned"]) == ("ok", ABOUT_MAYA, ABOUT_MAYA)
    json.dumps(transcript)


def test_one_ingest_serves_the_items_of_a_triplet() -> None:
    memory = Store()
    replay = Replay(Bridge(memory))
    first, second = replay(ITEM), replay(OTHER)
    alone = Replay(Bridge(Store()))(OTHER)
    assert memory.fills == 1
    assert ("ingest" in first["seconds"], "restore" in second["seconds"]) == (True, True)
    assert "ingest" not in second["seconds"]
    assert (second["before"], second["after"]) == (alone["before"], alone["after"])


def test_other_sessions_are_ingested_anew() -> None:
    memory = Store()
    replay = Replay(Bridge(memory))
    replay(ITEM)
    transcript = replay(replace(OTHER, sessions=ITEM.sessions[:2]))
    assert memory.fills == 2
    assert len(transcript["before"][0].splitlines()) == 8


def test_a_memory_that_cannot_restore_is_filled_for_every_item() -> None:
    class Forward(Store):
        restore = None  # type: ignore[assignment]

    memory = Forward()
    replay = Replay(Bridge(memory))
    assert ["ingest" in replay(item)["seconds"] for item in (ITEM, OTHER)] == [True, True]
    assert memory.fills == 2


@pytest.mark.parametrize("lacking", ["snapshot", "restore"])
def test_a_method_that_is_not_implemented_is_as_good_as_missing(lacking: str) -> None:
    def declines(self: Store, *_: object) -> None:
        raise NotImplementedError

    memory = type("Declining", (Store,), {lacking: declines})()
    replay = Replay(Bridge(memory))
    assert [replay(item)["status"] for item in (ITEM, OTHER, ITEM)] == ["ok"] * 3
    assert memory.fills == 3


def test_filling_at_once_that_is_not_implemented_is_done_one_by_one() -> None:
    class Slow(Store):
        def inscribe_many(self, texts: Sequence[str]) -> list[int]:
            if len(texts) > 1:
                raise NotImplementedError
            return super().inscribe_many(texts)

    assert Replay(Bridge(Slow()))(ITEM)["before"] == Replay(Bridge(Store()))(ITEM)["before"]


def test_a_snapshot_that_breaks_is_an_error_of_the_system() -> None:
    class Broken(Store):
        def snapshot(self) -> Any:
            raise OSError("no space left")

    transcript = Replay(Bridge(Broken()))(ITEM)
    assert (transcript["status"], transcript["error"]["during"]) == ("error", "snapshot")


def test_an_item_has_the_same_transcript_wherever_a_run_begins() -> None:
    """Times apart, whether its history was told anew or put back."""

    def untimed(transcript: dict[str, Any]) -> dict[str, Any]:
        del transcript["seconds"], transcript["operations"]["forget"]["seconds"]
        return transcript

    replay = Replay(Bridge(Store()))
    replay(ITEM)
    assert untimed(replay(OTHER)) == untimed(Replay(Bridge(Store()))(OTHER))


def test_a_memory_that_cannot_forget_ends_the_item_as_not_applicable() -> None:
    class Keeping(Store):
        purge = release = None  # type: ignore[assignment]

    transcript = Replay(Bridge(Keeping()))(ITEM)
    assert (transcript["status"], transcript["after"], transcript["error"]) == ("n/a", None, None)
    assert transcript["operations"]["forget"]["status"] == "n/a"
    assert len(transcript["before"]) == len(ITEM.probes)


class Declining(Store):
    """Says of both deletions that it has none."""

    def purge(self, query: str) -> int:
        raise NotImplementedError

    release = purge


@pytest.mark.parametrize("request_text", ["Forget Maya Okonkwo.", "Forget Nobody Known.", "forget somebody"])
def test_whether_a_system_can_forget_does_not_depend_on_what_it_recalls(request_text: str) -> None:
    assert Replay(Bridge(Declining()))(replace(ITEM, forget_request=request_text))["status"] == "n/a"
    assert Replay(Bridge(Store()))(replace(ITEM, forget_request=request_text))["status"] == "ok"


def test_the_history_is_told_to_a_memory_that_is_empty() -> None:
    """A memory that was asked what it can do, and keeps a note of it, is emptied once more."""
    calls: list[str] = []

    class Noted(Store):
        def reset(self) -> None:
            calls.append("reset")
            super().reset()

        def purge(self, query: str) -> int:
            calls.append("purge")
            return super().purge(query)

        def inscribe_many(self, texts: Sequence[str]) -> list[int]:
            calls.append("inscribe")
            return super().inscribe_many(texts)

    assistant = Bridge(Noted())
    calls.clear()
    for _ in range(2):
        assistant.ingest(ITEM.sessions)
    assert calls == ["reset", "purge", "reset", "inscribe", "reset", "inscribe"]


def test_a_bridge_forgets_nobody_before_it_was_told_anything() -> None:
    with pytest.raises(RuntimeError, match="must be ingested"):
        Bridge(Store()).forget("Forget Maya Okonkwo.")


def test_an_item_that_breaks_costs_nobody_else() -> None:
    class Fragile(Store):
        def purge(self, query: str) -> int:
            if "Okonkwo" in query:
                raise SystemExit("enough")
            return super().purge(query)

    replay = Replay(Bridge(Fragile()))
    broken, well = replay(ITEM), replay(OTHER)
    assert (broken["status"], broken["error"]["kind"], broken["error"]["during"]) == ("error", "SystemExit", "forget")
    assert broken["before"] is not None
    assert broken["after"] is None
    assert (well["status"], "ingest" in well["seconds"]) == ("ok", True)


class Answering:
    """An assistant of its own that gives one answer to everything."""

    name = "answering"

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def ingest(self, sessions: Sequence[Session]) -> None: ...

    def ask(self, question: str) -> str:
        if isinstance(self._answer, Exception):
            raise self._answer
        answer: str = self._answer
        return answer

    def forget(self, request: str) -> object:
        return {"deleted": 3}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "ask returned None, not a text"),
        (["Maya"], "a value of type list"),
        ("x" * (LONGEST + 1), "262,145 characters"),
    ],
)
def test_an_answer_that_is_none_ends_the_item_as_an_error(answer: Any, said: str) -> None:
    transcript = Replay(Answering(answer))(ITEM)
    assert (transcript["status"], transcript["error"]["kind"]) == ("error", "BadAnswerError")
    assert said in transcript["error"]["message"]
    assert transcript["before"] is None


def test_an_assistant_of_its_own_is_asked_by_the_question_alone() -> None:
    transcript = Replay(Answering(""))(ITEM)
    assert transcript["before"] == transcript["after"] == [""] * len(ITEM.probes)
    assert transcript["operations"]["forget"]["returned"] == "<dict>"


def test_an_endpoint_that_is_down_stops_the_run() -> None:
    with pytest.raises(EndpointError):
        Replay(Answering(EndpointError("down")))(ITEM)


@pytest.mark.parametrize("name", ["null", "keep-all", "wipe-all", "redactor", "oracle"])
def test_a_control_is_told_the_item(name: str) -> None:
    from forget_datasets.membehave.controls import answers

    transcript = Replay(ControlAssistant(name))(ITEM)
    assert transcript["before"] == [answers(name, ITEM, probe, False) for probe in ITEM.probes]
    assert transcript["after"] == [answers(name, ITEM, probe, True) for probe in ITEM.probes]


def test_all_that_a_memory_embeds_is_known_beforehand() -> None:
    """So that a whole history is embedded in one go, and the replay finds every vector."""
    seen: set[str] = set()

    def watched(asked: Sequence[str]) -> np.ndarray:
        seen.update(asked)
        return bag_of_words(asked)

    Replay(Bridge(ReferenceMemory(watched)))(ITEM)
    Replay(Bridge(ReferenceMemory(watched), policy=single))(ITEM)
    assert seen - {"width"} <= set(texts(ITEM))
