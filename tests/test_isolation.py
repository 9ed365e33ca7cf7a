"""Adapters in a process of their own: what travels."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.errors import DataFault, EnvironmentFault, UserError
from forget_datasets.forgeteval import generate
from forget_datasets.rows import Message, Session
from forget_eval import adapters, embedding, forgeteval
from forget_eval.isolation.messages import AdapterFault, WorkerTraceback
from forget_eval.isolation.process import Limits
from forget_eval.isolation.proxy import WorkerMemory
from forget_eval.isolation.selection import Isolation, may_be_several, select, wants_embedder
from forget_eval.recording import BadAnswerError, plain, recalled
from tests.isolated_systems import SYSTEMS, Isolated, digits

pytest_plugins = ("tests.isolated_systems",)
pytestmark = pytest.mark.usefixtures("apart")


def test_it_has_exactly_the_methods_of_its_class(isolated: Isolated) -> None:
    memory = isolated("Plain")
    assert memory.name == "plain"
    assert [hasattr(memory, op) for op in ("supersede", "release", "purge")] == [False, False, True]
    assert not hasattr(memory, "snapshot")
    assert not hasattr(memory, "inscribe_many")
    assert (memory.operations, memory.choosers) == ({"purge": "native"}, {"purge": "policy"})
    assert memory.described_by_worker()["class"] == "systems:Plain"
    assert memory.described_by_worker()["isolation"] == {"environment": None}


def test_facts_go_in_and_come_back(isolated: Isolated) -> None:
    memory = isolated("Plain")
    long = "Ω" * 500_000 + " end"
    texts = ["a lone \udc00 surrogate", "line\nbreak \u2028", long]
    assert [memory.inscribe(text) for text in texts] == [1, 2, 3]
    assert memory.recall_texts("", k=10) == texts
    assert memory.recall_texts("end") == [long]
    memory.reset()
    assert memory.recall_texts("") == []


def test_two_at_once_do_not_mix(isolated: Isolated) -> None:
    one, two = isolated("Plain"), isolated("Plain")
    one.inscribe("of one")
    two.inscribe("of two")
    assert (one.recall_texts("of"), two.recall_texts("of")) == (["of one"], ["of two"])
    assert one.purge("numbers") != two.purge("numbers")


def test_what_is_printed_stays_out_of_the_way(isolated: Isolated, capfd: pytest.CaptureFixture[str]) -> None:
    memory = isolated("Plain")
    assert memory.purge("talk") == 1
    assert memory.recall_texts("x") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "what",
    [
        *("of_bytes", "of_int64", "of_bool", "of_array", "of_tuple", "of_list", "of_dict"),
        *("of_none", "of_nan", "of_huge", "of_object", "of_text"),
    ],
)
def test_a_transcript_shows_of_a_value_what_it_shows_in_process(what: str, isolated: Isolated, direct: Any) -> None:
    assert plain(isolated("Plain").purge(what)) == plain(direct["Plain"]().purge(what))


@pytest.mark.parametrize("what", ["of_mixed", "of_str", "of_many", "of_none", "of_dict", "of_array", "of_list"])
def test_a_bad_answer_is_refused_with_the_same_words(what: str, isolated: Isolated, direct: Any) -> None:
    memory = isolated("Odd")
    with pytest.raises(BadAnswerError) as there:
        recalled(memory.recall_texts(what), 10)
    with pytest.raises(BadAnswerError) as here:
        recalled(direct["Odd"]().recall_texts(what), 10)
    assert str(there.value) == str(here.value)


def test_texts_of_other_types_are_texts(isolated: Isolated) -> None:
    assert recalled(isolated("Odd").recall_texts("of_texts"), 10) == ["a", "b"]


def test_an_exception_keeps_its_name_its_message_and_its_place(isolated: Isolated) -> None:
    memory = isolated("Plain")
    with pytest.raises(AdapterFault, match="no such fact \udc00") as caught:
        memory.purge("wrong")
    assert type(caught.value).__name__ == "LookupError"
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert "systems.py" in str(caught.value.__cause__)
    memory.inscribe("it lives on")
    assert memory.recall_texts("lives") == ["it lives on"]


def test_what_a_class_cannot_do_is_not_implemented_here_either(isolated: Isolated) -> None:
    with pytest.raises(NotImplementedError, match="no purge today"):
        isolated("Plain").purge("lacking")


@pytest.mark.parametrize(("how", "kind"), [("leave", "SystemExit"), ("mute", "Mute")])
def test_whatever_is_raised_is_a_fault(how: str, kind: str, isolated: Isolated) -> None:
    with pytest.raises(AdapterFault) as caught:
        isolated("Plain").purge(how)
    assert type(caught.value).__name__ == kind


def test_vectors_come_from_the_run(isolated: Isolated) -> None:
    memory = isolated("Embedding", digits)
    assert memory.wants_embedder
    assert memory.recall_texts("four") == ["[[4.0, 0.5, 0.25]]", "3"]
    assert memory.recall_texts("x" * 1_000_000) == ["[[1000000.0, 0.5, 0.25]]", "3"]


def test_vectors_can_be_asked_for_by_several_threads(isolated: Isolated) -> None:
    assert isolated("Embedding", digits).release("x") == 12


def test_an_embedder_takes_lists(isolated: Isolated) -> None:
    with pytest.raises(AdapterFault, match="takes a list of texts"):
        isolated("Embedding", digits).purge("x")


def test_an_embedder_that_fails_fails_the_call_alone(isolated: Isolated) -> None:
    def picky(texts: Sequence[str]) -> Any:
        if "bad" in texts:
            raise ValueError("no vector for this")
        return digits(texts)

    memory = isolated("Embedding", picky)
    with pytest.raises(AdapterFault, match="no vector for this"):
        memory.recall_texts("bad")
    assert memory.recall_texts("good")[0] == "[[4.0, 0.5, 0.25]]"


def test_snapshots_are_kept_there_and_dropped_when_nobody_has_them(isolated: Isolated) -> None:
    memory = isolated("Keeping")
    memory.inscribe("first")
    state = memory.snapshot()
    memory.inscribe("second")
    later = memory.snapshot()
    memory.restore(state)
    assert memory.recall_texts("") == ["first"]
    memory.restore(later)
    assert memory.recall_texts("") == ["first", "second"]
    del later
    kept = memory.snapshot()
    assert memory.release("") == 2
    with pytest.raises(AdapterFault):
        memory.purge("exit")
    memory.reset()
    with pytest.raises(AdapterFault, match="that held this snapshot"):
        memory.restore(kept)


def test_an_assistant_can_be_isolated(isolated: Isolated) -> None:
    sessions = [Session("s1", "2026-01-01T00:00:00+00:00", [Message("user", "I met Maya."), Message("assistant", "!")])]
    assistant = isolated("Companion", kinds=(adapters.MANDATORY, adapters.ASSISTANT))
    assert assistant.ingest(sessions) is None
    assert assistant.ask("Whom?") == "I met Maya."
    with pytest.raises(NotImplementedError):
        assistant.forget("Maya")


def test_a_child_of_the_run_gets_a_worker_of_its_own(isolated: Isolated) -> None:
    memory = isolated("Plain")
    memory.inscribe("of the parent")
    child = os.fork()
    if child == 0:
        memory.reset()
        os._exit(len(memory.recall_texts("")))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert memory.recall_texts("") == ["of the parent"]


def test_a_worker_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(SYSTEMS.replace("import numpy as np", "np = None"), encoding="utf-8")
    bare = [sys.executable, "-I", "-S"]
    memory = WorkerMemory("bare:Plain", bare, None, Limits(), (adapters.MANDATORY,), {})
    memory.reset()
    assert memory.inscribe("x") == 1
    memory.close()


def test_a_class_that_cannot_be_made_says_why() -> None:
    with pytest.raises(UserError, match=r"adapter 'systems:Unmakeable' cannot be made: OSError: no disk at all"):
        select("systems:Unmakeable", isolation=Isolation(True))
    with pytest.raises(UserError, match="Did you mean 'Plain'"):
        select("systems:Plan", isolation=Isolation(True))


def test_a_fault_of_the_machine_is_one_wherever_it_is_raised(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"^no room on the disk$"):
        select("systems:Full", isolation=Isolation(True))
    (tmp_path / "torn.py").write_text("from forget_datasets.errors import DataFault\nraise DataFault('a torn file')")
    with pytest.raises(DataFault, match=r"^a torn file$"):
        wants_embedder("torn:Any", Isolation(True))


def test_a_worker_that_ends_without_a_word_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "gone.py").write_text("import os\nos._exit(3)")
    with pytest.raises(UserError) as caught:
        may_be_several("gone:Any", Isolation(True))
    assert str(caught.value) == "adapter 'gone:Any': its worker exited with status 3"


def test_an_interpreter_that_is_none_says_so() -> None:
    with pytest.raises(UserError, match="cannot start /nowhere/python: No such file"):
        WorkerMemory("systems:Plain", ["/nowhere/python"], None, Limits(), (adapters.MANDATORY,), {})


def test_who_is_told_the_case_cannot_be_isolated() -> None:
    with pytest.raises(UserError, match="told the case"):
        select("systems:Told", isolation=Isolation(True))


def test_a_control_stays_in_this_process() -> None:
    assert type(select("oracle", isolation=Isolation(True))) is adapters.find("oracle")


def test_warnings_of_ours_reach_the_user(isolated: Isolated) -> None:
    with pytest.warns(RuntimeWarning, match="the store cannot be closed: ValueError: stuck") as seen:
        isolated("Warning")
    assert len(seen) == 1


@pytest.mark.parametrize(("system", "wants"), [("Plain", False), ("Embedding", True)])
def test_whether_an_embedder_is_wanted_is_asked_where_it_runs(system: str, wants: bool) -> None:
    assert wants_embedder(f"systems:{system}", Isolation(True)) is wants


@pytest.mark.parametrize("name", ["reference", "lethe"])
def test_isolated_or_not_the_transcripts_are_the_same(name: str) -> None:
    embed = embedding.load("minilm-int8")
    cases = generate(10)
    embed(list(dict.fromkeys(text for case in cases for text in forgeteval.texts(case))))
    lines = []
    for isolate in (False, True):
        memory = select(name, embed, Isolation(isolate))
        lines.append([_timeless(forgeteval.replay(case, memory)) for case in cases])
        if hasattr(memory, "close"):
            memory.close()
    assert len(lines[0]) == 50
    assert lines[0] == lines[1]


def _timeless(transcript: dict[str, Any]) -> str:
    operations = [{**operation, "seconds": 0} for operation in transcript["operations"]]
    return json.dumps({**transcript, "operations": operations, "seconds": {}})
