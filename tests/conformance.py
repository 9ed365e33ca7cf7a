"""What every memory must do, as checks for a process of its own, which `conformance_watch.py` runs and watches.

Nothing of ours is imported here: the process has the system's environment, and tests read this file by its path.
"""

import gc
import os
import threading
import zlib
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
OPERATIONS = ("supersede", "release", "purge")
WIDTH = 512
JOB, CAT, CODE = "The user works at Stripe.", "Miso is a grey cat.", "The one-time password is 553311."
FACTS = (JOB, CAT, CODE)
SCRIPTS = ("用户住在上海市。", "彼女は京都に住んでいる。", "🦊🦊 likes 🍓", "القطة تنام هنا", "naïve ﬁancée Ⅳ")
REFUSED = ("", " ", "\n\t", "\ud800")  # a system may take these or say why not
MEGABYTE = 1 << 20


def embed(texts: Sequence[str]) -> Any:
    """Hashed trigrams: texts that share wording are near, at the same places in every process."""
    rows = np.zeros((len(texts), WIDTH), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        padded = f"  {text.lower()}  ".encode("utf-8", "replace")
        for i in range(len(padded) - 2):
            row[zlib.crc32(padded[i : i + 3]) % WIDTH] += 1.0
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Bench:
    """Makes memories of one class and remembers the one in use.

    Args:
        name: of the class, as `module:Class`.
        usage: what the process holds: its memory, threads, files, disk and children.
        connections: gets each that has left the machine.
    """

    def __init__(self, name: str, usage: Callable[[], dict[str, int]], connections: list[str]) -> None:
        self.usage, self.connections = usage, connections
        module, _, attribute = name.partition(":")
        self.kind = getattr(import_module(module), attribute)
        self.memory: Any = None
        self.open()

    def open(self) -> None:
        self.memory = self.kind(embed)

    def filled(self, *texts: str) -> Any:
        self.memory.reset()
        for text in texts or FACTS:
            self.memory.inscribe(text)
        return self.memory

    def has(self, operation: str) -> bool:
        return operation in self.kind.operations


def check_declares_what_it_has(bench: Bench) -> None:
    assert bench.kind.name
    assert bench.kind.distribution
    packaged = ROOT / "eval" / "forget_eval" / "environments" / f"{bench.kind.distribution}.txt"
    assert bench.kind.extra or packaged.is_file()  # the pins of some exclude each other, so that no extra can have them
    assert bench.kind.tried
    assert set(bench.kind.operations) == set(bench.kind.choosers)
    for operation in OPERATIONS:
        assert bench.has(operation) == callable(getattr(bench.memory, operation, None)), operation


def check_an_empty_store_recalls_nothing(bench: Bench) -> None:
    bench.memory.reset()
    assert bench.memory.recall_texts("Where does the user work?") == []
    for operation in ("release", "purge"):
        if bench.has(operation):
            assert getattr(bench.memory, operation)("Stripe") == 0


def check_recalls_at_most_k_the_nearest_first(bench: Bench) -> None:
    memory = bench.filled()
    for k in (1, 2, 3, 10, 50):
        found = memory.recall_texts("Where works the user?", k=k)
        assert found[0] == JOB, found
        assert len(found) <= k, found
        assert set(found) <= set(FACTS), found
    assert memory.recall_texts("Is Miso a cat?", k=1) == [CAT]
    assert memory.recall_texts(CODE, k=1) == [CODE]


def check_inscribing_many_is_inscribing_each(bench: Bench) -> None:
    if not hasattr(bench.memory, "inscribe_many"):
        return
    queries = [*FACTS, "the user", "cat"]
    one_by_one = [bench.filled().recall_texts(query, k=3) for query in queries]
    bench.memory.reset()
    ids = bench.memory.inscribe_many(list(FACTS))
    assert len(set(ids)) == len(FACTS)
    assert [bench.memory.recall_texts(query, k=3) for query in queries] == one_by_one
    assert bench.memory.inscribe_many([]) == []


def check_a_supersede_replaces_one_fact(bench: Bench) -> None:
    if not bench.has("supersede"):
        return
    memory = bench.filled()
    new = "The user works at Anthropic."
    memory.supersede("The user works at which company?", new)
    for query in (JOB, new, "Stripe"):
        assert JOB not in memory.recall_texts(query, k=10), query
    assert memory.recall_texts(new, k=10)[0] == new
    assert memory.recall_texts(CAT, k=1) == [CAT]
    assert memory.recall_texts(CODE, k=1) == [CODE]


def check_a_chain_of_supersedes_leaves_the_last(bench: Bench) -> None:
    if not bench.has("supersede"):
        return
    memory = bench.filled(CAT, "The user works at Alpha Ltd.")
    for name in ('Beta\'s "Labs"', "Gamma; DROP TABLE", "Delta 'n' Sons"):  # quotes must not hurt
        memory.supersede("The user works at", f"The user works at {name}.")
    found = memory.recall_texts("The user works at", k=10)
    assert [text for text in found if text != CAT] == ["The user works at Delta 'n' Sons."], found
    assert memory.recall_texts(CAT, k=1) == [CAT]


def check_a_supersede_in_an_empty_store_adds(bench: Bench) -> None:
    if not bench.has("supersede"):
        return
    bench.memory.reset()
    bench.memory.supersede("nothing is there", JOB)
    assert bench.memory.recall_texts(JOB) == [JOB]


def check_a_release_hides_what_stands_out(bench: Bench) -> None:
    if not bench.has("release"):
        return
    memory = bench.filled()
    assert memory.release("Forget the one-time password.") == 1
    for query in (CODE, "553311", "password"):
        assert CODE not in memory.recall_texts(query, k=10), query
    assert memory.recall_texts(JOB, k=1) == [JOB]
    assert memory.recall_texts(CAT, k=1) == [CAT]
    if bench.has("supersede"):  # what is hidden is no candidate any more
        memory.supersede("Forget the one-time password.", "The one-time password is 998877.")
        assert CODE not in memory.recall_texts(CODE, k=10)


def check_a_purge_deletes_every_holder(bench: Bench) -> None:
    if not bench.has("purge"):
        return
    gone = ("Alice writes from alice@acme.io every day.", "Mail to alice@acme.io, please", "alice@acme.io")
    kept = ("Bob is b.alice@acme.io at work.", "alice@acme.io.uk is another box.", JOB)
    memory = bench.filled(*gone, *kept)
    assert memory.purge("alice@acme.io") == len(gone)
    found = {text for query in (*gone, *kept) for text in memory.recall_texts(query, k=10)}
    assert found == set(kept), found
    assert memory.purge("alice@acme.io") == 0


def check_a_purge_finds_what_a_release_hid_and_a_supersede_wrote(bench: Bench) -> None:
    if not bench.has("purge"):
        return
    memory = bench.filled()
    if bench.has("release"):
        assert memory.release("Forget the one-time password.") == 1
        assert memory.purge("553311") == 1
    if bench.has("supersede"):
        memory.supersede("The user works at which company?", "The user works at Anthropic.")
        assert memory.purge("Stripe") in (0, 1)  # a store may keep what it replaced, out of sight
        assert JOB not in memory.recall_texts(JOB, k=10)
        assert memory.purge("Anthropic") == 1
        assert "The user works at Anthropic." not in memory.recall_texts("Anthropic", k=10)
    assert memory.recall_texts(CAT, k=1) == [CAT]


def check_a_purge_sees_a_store_larger_than_a_page(bench: Bench) -> None:
    if not bench.has("purge"):
        return
    texts = [f"Note {n} says {'zebra' if n % 10 == 0 else 'horse'}." for n in range(130)]
    memory = bench.filled(*texts)
    assert memory.purge("zebra") == 13
    assert not [text for text in memory.recall_texts("zebra", k=50) if "zebra" in text]


def check_a_case_leaves_nothing_to_the_next(bench: Bench) -> None:
    memory = bench.filled(JOB, CODE)
    for operation, *arguments in (("release", CODE), ("purge", "Stripe"), ("supersede", JOB, CAT)):
        if bench.has(operation):
            getattr(memory, operation)(*arguments)
    memory.inscribe("The user lives in Oslo.")
    memory.reset()
    assert memory.recall_texts("The user lives in Oslo.", k=10) == []
    lima = "The user lives in Lima."
    ids = [memory.inscribe(text) for text in (lima, CODE, JOB)]  # the texts that the first case lost are here again
    assert len(set(ids)) == 3
    for text in (lima, CODE, JOB):
        found = memory.recall_texts(text, k=10)
        assert found[0] == text, found
        assert sorted(found) == sorted((lima, CODE, JOB)) or len(found) < 3, found
    memory.reset()
    assert memory.recall_texts("the user", k=10) == []


def check_two_open_memories_are_apart(bench: Bench) -> None:
    if bench.kind.name == "mempalace":  # its palace belongs to the process
        return
    memory, other = bench.filled(), bench.kind(embed)
    try:
        assert other.recall_texts(JOB) == []
        other.inscribe("Somebody else's fact.")
        assert memory.recall_texts("Somebody else's fact.", k=10).count("Somebody else's fact.") == 0
    finally:
        close(other)
    assert memory.recall_texts(JOB, k=1) == [JOB]


def check_every_script_comes_back_unchanged(bench: Bench) -> None:
    memory = bench.filled(*SCRIPTS)
    for text in SCRIPTS:
        assert memory.recall_texts(text, k=1) == [text], text
    if bench.has("purge"):
        assert memory.purge("上海市") == 1
        assert SCRIPTS[0] not in memory.recall_texts(SCRIPTS[0], k=10)
        assert memory.recall_texts(SCRIPTS[1], k=1) == [SCRIPTS[1]]


def check_a_long_text_is_kept_whole_or_in_pieces(bench: Bench) -> None:
    long = " ".join(f"Sentence {n} of the zebra report." for n in range(300))
    assert len(long) > 9_000
    memory = bench.filled(CAT, long)
    found = memory.recall_texts("the zebra report", k=3)
    assert found, "nothing of a long text is recalled"
    assert all(text == CAT or text.strip() in long for text in found), [text[:60] for text in found]
    assert found[0] != CAT
    if bench.has("purge"):
        assert memory.purge("zebra") >= 1
        assert memory.recall_texts("the zebra report", k=10) in ([CAT], [])


def check_the_same_text_twice(bench: Bench) -> None:
    memory = bench.filled(JOB, JOB, CAT)
    assert memory.recall_texts(JOB, k=1) == [JOB]
    if bench.has("purge"):
        assert memory.purge("Stripe") >= 1
        assert JOB not in memory.recall_texts(JOB, k=10)
        assert memory.recall_texts(CAT, k=1) == [CAT]


def check_odd_texts_are_taken_or_refused_in_words(bench: Bench) -> None:
    memory = bench.filled()
    for text in REFUSED:
        for call in (memory.inscribe, memory.recall_texts):
            refusal = why_refused(call, text)
            assert refusal is None or refusal.strip()
    assert memory.recall_texts(JOB, k=1) == [JOB]


def check_a_snapshot_can_be_put_back_twice(bench: Bench) -> None:
    if not hasattr(bench.memory, "snapshot"):
        return
    memory = bench.filled()
    state = memory.snapshot()
    for _ in range(2):
        if bench.has("purge"):
            assert memory.purge("Stripe") == 1
        memory.inscribe("A later fact.")
        memory.restore(state)
        assert memory.recall_texts(JOB, k=1) == [JOB]
        assert "A later fact." not in memory.recall_texts("A later fact.", k=10)


def check_a_store_on_the_disk_lies_where_it_says(bench: Bench) -> None:
    can_be_put_there = "on_disk" in signature(bench.kind).parameters
    lima = "The user lives in Lima."
    memory = bench.kind(embed, on_disk=True) if can_be_put_there else bench.memory
    folder = memory.stored_in()
    assert (bench.memory.stored_in() is None) or not can_be_put_there
    if folder is None:
        return
    try:
        memory.reset()
        for text in FACTS:
            memory.inscribe(text)
        assert Path(folder).is_relative_to(temporary())
        assert any(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        if bench.has("purge"):
            assert memory.purge("Stripe") == 1
        if hasattr(memory, "maintain"):
            assert memory.maintain()
        assert memory.recall_texts(CAT, k=1) == [CAT]
        memory.inscribe(lima)
        assert memory.recall_texts(lima, k=1) == [lima]
    finally:
        if can_be_put_there:
            close(memory)
    assert not (can_be_put_there and Path(folder).exists())


def check_200_resets_hold_on_to_nothing(bench: Bench) -> None:
    def rounds(n: int) -> dict[str, int]:
        for i in range(n):
            bench.memory.reset()
            for text in FACTS:
                bench.memory.inscribe(f"{text} {i}")
            bench.memory.recall_texts("user", k=3)
        gc.collect()
        return bench.usage()

    before, after = rounds(100), rounds(100)
    assert after["memory"] - before["memory"] < 12 * MEGABYTE, (before, after)
    for leak in ("threads", "files"):  # pools grow a little when they are busy, a leak by 100
        assert after[leak] - before[leak] < 20, (before, after)
    assert after["disk"] - before["disk"] < 2 * MEGABYTE, (before, after)
    assert after["children"] == before["children"], after


def check_close_ends_all(bench: Bench) -> None:
    close(bench.memory)
    assert list(temporary().iterdir()) == []
    assert [thread.name for thread in threading.enumerate() if not thread.daemon] == ["MainThread"]
    counts = []
    for _ in range(3):
        bench.open()
        bench.filled().recall_texts(JOB)
        close(bench.memory)
        gc.collect()
        counts.append(bench.usage()["threads"])
    assert counts[-1] <= counts[0] + 2, counts
    assert list(temporary().iterdir()) == []
    close(bench.memory)  # a second time does no harm


def check_nothing_was_written_elsewhere(bench: Bench) -> None:
    assert list(Path(os.environ["HOME"]).iterdir()) == []
    assert list(Path.cwd().iterdir()) == []


def check_the_network_was_left_alone(bench: Bench) -> None:
    assert bench.connections == []


def why_refused(call: Callable[[str], Any], text: str) -> str | None:
    """What a memory says when it does not take a text; None if it takes it."""
    try:
        call(text)
    except Exception as error:
        return str(error)
    return None


def close(memory: Any) -> None:
    """Ends a memory that has something to end."""
    getattr(memory, "close", lambda: None)()


def temporary() -> Path:
    """Where the adapter may write."""
    return Path(os.environ["TMPDIR"])


CHECKS: dict[str, Callable[[Bench], None]] = {
    key.removeprefix("check_"): value for key, value in list(globals().items()) if key.startswith("check_")
}
"""By name, in the order in which they are run: the last ones look at what the others left."""
