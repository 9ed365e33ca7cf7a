"""Replaying cases: what is recorded, what a broken system does to a run, and how a run goes on after a kill."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.rows import GeneratedCase, Probe
from forget_eval import runner, transcripts
from forget_eval.forgeteval import replay, texts
from forget_eval.transcripts import Transcript, Writer


class PlainMemory:
    """A user's own class: the six methods and nothing else. A query touches the facts that share its last word."""

    name = "plain"

    def reset(self) -> None:
        self.facts: list[str] = []

    def inscribe(self, text: str) -> int:
        self.facts.append(text)
        return len(self.facts)

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        return [fact for fact in self.facts if _key(query) in fact][:k]

    def supersede(self, old_query: str, new_text: str) -> None:
        self.release(old_query)
        self.inscribe(new_text)

    def release(self, query: str) -> int:
        kept = [fact for fact in self.facts if _key(query) not in fact]
        gone, self.facts = len(self.facts) - len(kept), kept
        return gone

    def purge(self, query: str) -> int:
        return self.release(query)


def _key(query: str) -> str:
    return query.rstrip("?").split()[-1]


def case(number: int = 1, op: str = "purge") -> GeneratedCase:
    mutation = (op, "the key sk_1", "Hugo's key is sk_2.") if op == "supersede" else (op, "the key sk_1")
    return GeneratedCase(
        id=f"purge__api_key__{number:03d}",
        family="purge",
        template="api_key",
        setup_facts=["Hugo's key is sk_1.", "Leila's key is sk_9.", "The lift squeaks."],
        mutations=[mutation],
        final_query="Whose is the key?",
        must_contain=["sk_9"],
        must_not_contain=["sk_1"],
        probes=[
            Probe("survivor", "What is Leila's key?", ["sk_9"], []),
            Probe("leak", "What about sk_1?", [], ["sk_1"]),
        ],
        n_distractors=1,
    )


def without_times(transcript: Transcript) -> Transcript:
    operations = [{**operation, "seconds": 0} for operation in transcript["operations"]]
    return {**transcript, "operations": operations, "seconds": {}}


def run(path: Path, cases: Sequence[GeneratedCase], memory: Any, **options: Any) -> list[Transcript]:
    with Writer(path) as writer:
        runner.run(cases, partial(replay, memory=memory), writer, runner.Options(**options))
    return [without_times(t) for t in transcripts.read(path)]


def test_a_replay_records_every_answer() -> None:
    assert without_times(replay(case(), PlainMemory())) == {
        "id": "purge__api_key__001",
        "status": "ok",
        "operations": [{"op": "purge", "status": "ok", "returned": 1, "seconds": 0}],
        "final": ["Leila's key is sk_9."],
        "probes": [["Leila's key is sk_9."], []],
        "again": [[]],
        "store": 3,
        "error": None,
        "seconds": {},
    }


def test_every_step_has_its_seconds() -> None:
    transcript = replay(case(), PlainMemory())
    assert list(transcript["seconds"]) == ["reset", "inscribe", "final", "probes", "again"]
    assert {type(seconds) for seconds in transcript["seconds"].values()} == {float}
    assert type(transcript["operations"][0]["seconds"]) is float


def test_ten_texts_are_asked_for() -> None:
    asked = []

    class Asked(PlainMemory):
        def recall_texts(self, query: str, k: int = 5) -> list[str]:
            asked.append(k)
            return []

    replay(case(), Asked())
    assert asked == [10] * 4


class Lacking(PlainMemory):
    purge = None  # type: ignore[assignment]


class Refusing(PlainMemory):
    def purge(self, query: str) -> int:
        raise NotImplementedError("this store cannot delete")


@pytest.mark.parametrize("kind", [Lacking, Refusing])
def test_an_operation_that_is_lacking_is_not_applicable(kind: type) -> None:
    transcript = without_times(replay(case(), kind()))
    assert transcript["status"] == "n/a"
    assert transcript["operations"] == [{"op": "purge", "status": "n/a", "returned": None, "seconds": 0}]
    assert transcript["final"] is None
    assert transcript["error"] is None


def test_what_a_mandatory_method_does_not_implement_is_an_error() -> None:
    class NoRecall(PlainMemory):
        def recall_texts(self, query: str, k: int = 5) -> list[str]:
            raise NotImplementedError

    assert replay(case(), NoRecall())["status"] == "error"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "returned None, not a list of texts"),
        ("Leila's key is sk_9.", "returned a string, not a list of texts"),
        ({"texts": []}, "returned a value of type dict"),
        (["a"] * 11, "returned 11 texts, more than k = 10"),
        (["a", None], "holds None, not texts alone"),
        ([1], "holds a value of type int"),
        ([b"a"], "holds a value of type bytes"),
    ],
)
def test_an_answer_that_is_none_is_an_error_with_its_reason(answer: Any, reason: str) -> None:
    class Odd(PlainMemory):
        def recall_texts(self, query: str, k: int = 5) -> list[str]:
            return answer  # type: ignore[no-any-return]

    transcript = replay(case(), Odd())
    assert transcript["status"] == "error"
    assert transcript["final"] is None
    assert reason in transcript["error"]["message"]
    assert transcript["error"]["during"] == "final"


def test_ten_texts_or_a_tuple_are_fine() -> None:
    class Full(PlainMemory):
        def recall_texts(self, query: str, k: int = 5) -> list[str]:
            return ("a",) * k  # type: ignore[return-value]

    assert replay(case(), Full())["final"] == ["a"] * 10


def _raise(error: BaseException) -> Callable[..., Any]:
    def method(*_: object, **__: object) -> Any:
        raise error

    return method


@pytest.mark.parametrize("method", ["reset", "inscribe", "purge", "recall_texts"])
@pytest.mark.parametrize("error", [ValueError("no such row"), SystemExit(3), MemoryError(), AttributeError("purge")])
def test_whatever_is_raised_is_an_error_with_its_traceback(method: str, error: BaseException) -> None:
    memory = PlainMemory()
    setattr(memory, method, _raise(error))
    transcript = replay(case(), memory)
    assert transcript["status"] == "error"
    assert transcript["error"]["kind"] == type(error).__name__
    assert transcript["error"]["message"] == str(error)
    assert transcript["error"]["during"] == {"recall_texts": "final"}.get(method, method)
    assert "raise error" in transcript["error"]["traceback"]


def test_endless_recursion_is_an_error_of_one_case(tmp_path: Path) -> None:
    class Deep(PlainMemory):
        def purge(self, query: str) -> int:
            return self.purge(query)

    found = run(tmp_path / "t.jsonl", [case(1), case(2, "release")], Deep())
    assert [t["status"] for t in found] == ["error", "ok"]


def test_a_memory_that_breaks_on_a_probe_has_answered_the_final_query() -> None:
    class Shy(PlainMemory):
        def recall_texts(self, query: str, k: int = 5) -> list[str]:
            if "sk_1" in query:
                raise RuntimeError("asked about a deleted key")
            return super().recall_texts(query, k)

    transcript = replay(case(), Shy())
    assert transcript["status"] == "error"
    assert transcript["final"] == ["Leila's key is sk_9."]
    assert transcript["probes"] == [["Leila's key is sk_9."]]
    assert transcript["error"]["during"] == "probes"


def test_an_interrupt_is_not_swallowed() -> None:
    memory = PlainMemory()
    memory.release = _raise(KeyboardInterrupt())  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        replay(case(op="release"), memory)


def test_broken_cases_do_not_stop_a_run(tmp_path: Path) -> None:
    class EveryThird(PlainMemory):
        count = 0

        def purge(self, query: str) -> int:
            self.count += 1
            if self.count % 3 == 0:
                raise RuntimeError("again")
            return super().purge(query)

    found = run(tmp_path / "t.jsonl", [case(i) for i in range(1, 8)], EveryThird())
    assert [t["status"] for t in found] == ["ok", "ok", "error", "ok", "ok", "error", "ok"]


def test_returned_objects_are_told_by_their_type() -> None:
    class Chatty(PlainMemory):
        def purge(self, query: str) -> int:
            super().purge(query)
            return object()  # type: ignore[return-value]

    assert replay(case(), Chatty())["operations"][0]["returned"] == "<object>"


def test_the_case_is_told_after_the_reset_and_before_the_facts() -> None:
    calls: list[str] = []

    class Told(PlainMemory):
        def reset(self) -> None:
            calls.append("reset")
            super().reset()

        def _tell(self, told: GeneratedCase) -> None:
            calls.append(told.id)

        def inscribe(self, text: str) -> int:
            calls.append(text)
            return super().inscribe(text)

    replay(case(), Told())
    assert calls == ["reset", "purge__api_key__001", *case().setup_facts]


def test_facts_go_in_together_where_a_memory_offers_that() -> None:
    class Many(PlainMemory):
        def inscribe_many(self, facts: list[str]) -> list[int]:
            self.facts += facts
            facts.clear()  # the list is the memory's own
            return []

        def inscribe(self, text: str) -> int:
            raise AssertionError("inscribed one by one")

    told = case()
    assert without_times(replay(told, Many())) == without_times(replay(case(), PlainMemory()))
    assert told == case()


def test_a_list_that_is_changed_later_changes_nothing() -> None:
    class Reusing(PlainMemory):
        answer: list[str] = []  # noqa: RUF012

        def recall_texts(self, query: str, k: int = 5) -> list[str]:
            self.answer[:] = super().recall_texts(query, k)
            return self.answer

    assert without_times(replay(case(), Reusing())) == without_times(replay(case(), PlainMemory()))


def test_texts_are_embedded_once_a_chunk_before_the_replay(tmp_path: Path) -> None:
    events: list[Any] = []

    class Noting(PlainMemory):
        def reset(self) -> None:
            events.append("reset")
            super().reset()

    run(
        tmp_path / "t.jsonl",
        [case(1), case(2, "supersede"), case(3)],
        Noting(),
        texts=texts,
        embed=lambda batch: events.append(list(batch)),
        chunk=2,
    )
    queries = ["the key sk_1", "Whose is the key?", "What is Leila's key?", "What about sk_1?"]
    assert events == [
        [*case().setup_facts, *queries, "Hugo's key is sk_2."],
        "reset",
        "reset",
        [*case().setup_facts, *queries],
        "reset",
    ]


def test_what_a_system_prints_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Loud(PlainMemory):
        def purge(self, query: str) -> int:
            print("deleting", query)
            return super().purge(query)

    run(tmp_path / "t.jsonl", [case()], Loud())
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "deleting the key sk_1\n")
    assert sys.stdout is not sys.stderr


def test_a_run_cut_at_every_byte_ends_with_the_same_transcripts(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    cases = [case(1), case(2, "supersede"), case(3, "release")]
    whole = run(path, cases, PlainMemory())
    content = path.read_bytes()
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        assert run(path, cases, PlainMemory()) == whole


def test_a_finished_run_plays_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    run(path, [case(1)], PlainMemory())
    before = path.read_bytes()
    broken = PlainMemory()
    broken.reset = _raise(AssertionError("played"))  # type: ignore[method-assign]
    run(path, [case(1)], broken)
    assert path.read_bytes() == before


def test_rows_are_read_a_chunk_at_a_time(tmp_path: Path) -> None:
    read = 0

    def endless() -> Any:
        nonlocal read
        while True:
            read += 1
            yield case(read)

    class Stopping(PlainMemory):
        def reset(self) -> None:
            if read >= 4:
                raise KeyboardInterrupt
            super().reset()

    path = tmp_path / "t.jsonl"
    with Writer(path) as writer, pytest.raises(KeyboardInterrupt):
        runner.run(endless(), partial(replay, memory=Stopping()), writer, runner.Options(chunk=2))
    assert len(list(transcripts.read(path))) == 2
    assert read == 4
