"""However many processes build a dataset, its bytes are the same, and none of them outlives the build."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from forget_datasets import build
from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.forgeteval import generate, languages
from forget_datasets.forgeteval.audit import Audit
from forget_datasets.forgeteval.chunks import ROWS, Order, make, orders
from forget_datasets.forgeteval.generation import expand_range
from forget_datasets.rows import FAMILIES, canonical_lines
from forget_datasets.schema import BATCH_ROWS
from forget_datasets.workers import available, spread_over

LEFT = "Nothing half-written was left, and what was there is there."
Tree = Callable[[Path], dict[str, bytes]]


def square(number: int) -> int:
    return number * number


def fail_at_three(number: int) -> int:
    if number == 3:
        raise UserError(f"{number} will not do")
    return number


def die_at_three(number: int) -> int:
    if number == 3:
        os._exit(9)
    return number


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_arguments(workers: int) -> None:
    assert list(spread_over(workers)(square, range(40))) == [number * number for number in range(40)]


def test_no_more_is_asked_ahead_than_fits() -> None:
    asked: list[int] = []

    def arguments() -> Iterator[int]:
        for number in range(100):
            asked.append(number)
            yield number

    results = spread_over(2)(square, arguments())
    assert next(results) == 0
    results.close()
    assert asked == [0, 1, 2, 3]  # two for each process


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_worker_is_that_of_the_build(workers: int) -> None:
    results = spread_over(workers)(fail_at_three, range(100))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(UserError, match="3 will not do"):
        next(results)


def test_a_worker_that_dies_is_said() -> None:
    with pytest.raises(EnvironmentFault, match="a worker process died"):
        list(spread_over(2)(die_at_three, range(100)))


def test_the_cpus_are_those_that_the_process_may_use() -> None:
    assert 1 <= available() <= (os.cpu_count() or 1)


def test_any_number_of_processes_makes_the_same_bytes(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks cross the borders of families, and there are several of each language."""
    monkeypatch.setattr(build, "_ROWS_PER_WORKER", 1)
    for count in (1, 2, 3):
        build.build_forgeteval(tmp_path / str(count), ("en", "zh"), n_per_family=300, seed=3, workers=count)
    assert len([*orders("en", 300, 4, 3)]) == 2
    assert tree(tmp_path / "1") == tree(tmp_path / "2") == tree(tmp_path / "3")


def test_a_chunk_is_whole_batches() -> None:
    assert ROWS % BATCH_ROWS == 0


def test_chunks_are_the_rows_of_the_generator() -> None:
    cases = generate(450, seed=5, distractors=2)
    chunks = [make(order) for order in orders("en", 450, 2, 5)]
    assert [chunk.rows for chunk in chunks] == [1024, 1024, 202]
    assert b"".join(chunk.lines for chunk in chunks) == canonical_lines(case.to_row() for case in cases)
    assert [row for chunk in chunks for batch in chunk.batches for row in batch.to_pylist()] == [
        case.to_row() for case in cases
    ]
    assert list(expand_range(450, 5, 2, "en", range(1000, 1100))) == cases[1000:1100]


def test_a_chunk_travels_whole() -> None:
    chunk = make(Order("zh", 20, 4, 42, 13, 97))
    there = pickle.loads(pickle.dumps(chunk))
    assert (there.batches, there.lines, there.problems) == (chunk.batches, chunk.lines, [])
    assert there.audit.summary() == chunk.audit.summary()
    assert [batch.nbytes for batch in there.batches] == [batch.nbytes for batch in chunk.batches]


def test_merged_audits_say_what_one_says() -> None:
    one, merged = Audit(), Audit()
    for case in generate(70, lang="zh"):
        assert list(one.take(case)) == []
    for start, stop in ((0, 13), (13, 200), (200, 201), (201, 350)):
        chunk = make(Order("zh", 70, 4, 42, start, stop))
        assert chunk.problems == []
        merged.merge(chunk.audit)
    assert merged.summary() == one.summary()
    assert list(merged.summary()["templates"]["purge"]) == list(languages.load("zh").templates["purge"])


def test_audits_are_merged_in_order_alone() -> None:
    first, third = make(Order("en", 40, 4, 42, 0, 20)).audit, make(Order("en", 40, 4, 42, 30, 40)).audit
    with pytest.raises(ValueError, match="do not go on where these end"):
        first.merge(third)


def test_a_chunk_that_stands_elsewhere_is_told_from_its_ids() -> None:
    audit = Audit({"supersession__job": 1})
    (case,) = expand_range(40, 42, 4, "en", range(1))
    assert list(audit.take(case)) == [("id", "stands where supersession__job__002 belongs")]
    assert FAMILIES[0] == case.family


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_its_build(how: signal.Signals, count: int, tmp_path: Path) -> None:
    """Two workers and what keeps track of what processes share: three, the first of which come while others start."""
    command = [sys.executable, "-m", "forget_datasets", "build", "forgeteval", "--n-per-family", "50000"]
    running = subprocess.Popen(
        [*command, "--workers", "2", "--out", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        text=True,
    )
    parent = psutil.Process(running.pid)
    deadline = time.monotonic() + 120
    while len(children := parent.children(recursive=True)) < count:
        assert time.monotonic() < deadline
        assert running.poll() is None
    running.send_signal(how)
    _, said = running.communicate(timeout=120)
    _, alive = psutil.wait_procs(children, timeout=120)
    assert alive == []
    if how is signal.SIGINT:
        assert running.returncode == 130
        assert said.strip() == f"forget-datasets: interrupted. {LEFT}"
        assert list(tmp_path.iterdir()) == []
