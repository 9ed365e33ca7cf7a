"""A cluster writes what one process writes, though a node of it is killed in the middle. One cluster at a time."""

import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from forget_datasets import build
from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.forgeteval.chunks import orders
from forget_datasets.on_ray import connect, spread_over_cluster
from forget_eval import bench, embedding, runs
from forget_eval.data import Dataset, open_dataset
from forget_eval.membehave import bench as membehave
from forget_eval.membehave.systems import Settings
from forget_eval.on_ray.engine import Engine
from forget_eval.on_ray.troupe import Troupe
from forget_eval.runner import Options
from tests.transcript_lines import lines

Built = tuple[Path, dict[str, Any]]
Tree = Callable[[Path], dict[str, bytes]]
Program = Callable[..., Any]

N = 50
ODD = 23
"""The number of the one case at which some systems do their worst."""


@pytest.fixture(scope="module")
def word(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where systems leave word."""
    return tmp_path_factory.mktemp("word")


@pytest.fixture(scope="module")
def cluster(word: Path) -> Iterator[Any]:
    """A cluster of one CPU on this machine alone, joined by this process. Nodes come and go."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        patch.setenv("RAY_SYSTEMS", str(word))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # the loopback device alone
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(word / "token"))
        patch.setenv("FORGET_EVAL_CACHE", str(word / "cache"))
        (word / "token").write_text("0" * 64)
        import ray
        from ray.cluster_utils import Cluster

        found = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
        ray.init(address=found.address, logging_level="error")
        yield found
        ray.shutdown()
        found.shutdown()


NODE = {"num_cpus": 1, "object_store_memory": 80 << 20, "node_ip_address": "127.0.0.1"}


@pytest.fixture
def second(cluster: Any) -> Iterator[Any]:
    """Another node, of one CPU, for the time of a test."""
    node = cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    yield node
    if node in cluster.worker_nodes:
        cluster.remove_node(node, allow_graceful=False)


@pytest.fixture
def cases(forgeteval_built: Built, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return open_dataset(str(forgeteval_built[0]), "forgeteval", "en")


@pytest.fixture
def items(membehave_built: Built) -> Dataset:
    return open_dataset(str(membehave_built[0]), "membehave", "default")


def here(cases: Dataset, folder: Path, system: str = "parallel_systems:Store", embed: Any = None) -> list[str]:
    """What one process writes."""
    bench.run_adapter(cases, system, folder, embed)
    return lines(folder)


def there(cases: Dataset, folder: Path, system: str, engine: Engine, workers: int = 2, embed: Any = None) -> list[str]:
    """What a cluster writes."""
    bench.run_adapter(cases, system, folder, embed, workers=workers, staged=engine)
    return lines(folder)


def model(texts: Sequence[str]) -> Any:
    """A vector a text, from its hash. Notes who asks."""
    CALLS.extend((os.getpid(), text) for text in texts)
    seeds = [int.from_bytes(sha256(text.encode()).digest()[:4], "big") for text in texts]
    return np.stack([np.random.default_rng(seed).normal(size=8) for seed in seeds])


CALLS: list[tuple[int, str]] = []


# A node is killed -----------------------------------------------------------------------------------------------------


def test_a_run_outlives_a_node(cases: Dataset, cluster: Any, second: Any, word: Path, tmp_path: Path) -> None:
    """The node dies while it plays a piece, and with another piece waiting; both are played elsewhere."""
    (word / "doomed").write_text(second.node_id)
    os.mkfifo(word / "reached")

    def kill() -> None:
        assert (word / "reached").read_text() == "reached"  # waits for it
        cluster.remove_node(second, allow_graceful=False)
        (word / "gone").touch()

    killer = Thread(target=kill, daemon=True)
    killer.start()
    place = (tmp_path / "shards").as_uri()
    found = there(cases, tmp_path / "run", "ray_systems:Hangs", Engine(shards=place, rows=4))
    killer.join()
    assert second not in cluster.worker_nodes
    assert found == here(cases, tmp_path / "one")
    assert [json.loads(line)["id"] for line in found] == [case.id for case in cases.cases()]
    (shards,) = (tmp_path / "shards").iterdir()
    assert sorted(path.name for path in shards.iterdir()) == [f"{n:010}+{min(4, N - n)}.jsonl" for n in range(0, N, 4)]


def test_a_build_outlives_a_node(cluster: Any, second: Any, tree: Tree, tmp_path: Path) -> None:
    over = spread_over_cluster()

    def spread(function: Any, arguments: Iterable[Any]) -> Generator[Any, None, None]:
        for number, result in enumerate(over(function, arguments)):
            if number == 1:
                cluster.remove_node(second, allow_graceful=False)
            yield result

    assert len([*orders("en", 1000, 4, 3)]) == 5
    build.build_forgeteval(tmp_path / "there", n_per_family=1000, seed=3, spread=spread)
    build.build_forgeteval(tmp_path / "here", n_per_family=1000, seed=3)
    assert second not in cluster.worker_nodes
    assert tree(tmp_path / "there") == tree(tmp_path / "here")


def fails_at_three(number: int) -> int:
    if number == 3:
        raise UserError(f"{number} will not do")
    return number


def test_an_error_of_a_task_is_that_of_the_build(cluster: Any) -> None:
    results = spread_over_cluster()(fails_at_three, range(100))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(UserError, match=r"\A3 will not do\Z"):
        next(results)


# A worker is lost -----------------------------------------------------------------------------------------------------


@pytest.fixture
def at(cases: Dataset) -> str:
    """The query of the one case."""
    found = list(cases.cases())
    query = found[ODD].mutations[0][1]
    assert [case.id for case in found if any(query in mutation for mutation in case.mutations)] == [found[ODD].id]
    return query


def test_a_piece_whose_worker_is_lost_is_played_again(
    cases: Dataset, cluster: Any, word: Path, tmp_path: Path, at: str
) -> None:
    (word / "at").write_text(f"{at}\n1")
    assert there(cases, tmp_path / "run", "ray_systems:Leaves", Engine(rows=4)) == here(cases, tmp_path / "one")
    assert (word / "at").read_text() == f"{at}\n0"
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["manifest.json", "transcripts.jsonl"]


def test_a_system_that_always_ends_its_process_ends_the_run_and_what_was_played_is_kept(
    cases: Dataset, cluster: Any, word: Path, tmp_path: Path, at: str
) -> None:
    """Pieces of 4: the case stands in the one from 20 on, and is given up after 4 times. Then it goes on."""
    (word / "at").write_text(f"{at}\n4")
    ids = [case.id for case in cases.cases()][20:24]
    with pytest.raises(UserError, match=f"has ended 4 times at one of the 4 rows from {ids[0]} to {ids[3]}.*--isolate"):
        there(cases, tmp_path / "run", "ray_systems:Leaves", Engine(rows=4))
    one = here(cases, tmp_path / "one")
    assert lines(tmp_path / "run") == one[:20]
    (shards,) = (tmp_path / "run" / "shards").iterdir()
    (shards / "0000000024+4.jsonl").write_bytes(b'{"id":"torn')
    known = [json.dumps({"id": case.id, "seconds": "as it was"}) for case in cases.cases()][28:32]
    (shards / "0000000028+4.jsonl").write_text("\n".join([*known, ""]))
    found = there(cases, tmp_path / "run", "ray_systems:Leaves", Engine(rows=4))
    assert found[:28] + found[32:] == one[:28] + one[32:]
    assert (tmp_path / "run" / "transcripts.jsonl").read_text().splitlines()[28:32] == known


def test_how_often_a_system_ended_while_it_was_made_counts_until_it_is_made(
    cases: Dataset, cluster: Any, word: Path, tmp_path: Path, at: str
) -> None:
    (word / "at").write_text(f"{at}\n1")
    (word / "making").write_text("xx.xx.")
    found = there(cases, tmp_path / "run", "ray_systems:LeavesNowAndThen", Engine(), 1)
    assert found == here(cases, tmp_path / "one")
    assert (word / "making").read_text() == ""


# The same transcripts -------------------------------------------------------------------------------------------------


def test_vectors_are_made_once_by_the_run_itself(cases: Dataset, cluster: Any, tmp_path: Path) -> None:
    one = here(cases, tmp_path / "one", "parallel_systems:Embedding", embedding.load(model, cache=False))
    CALLS.clear()
    embed = embedding.load(model, cache=False)
    assert there(cases, tmp_path / "run", "parallel_systems:Embedding", Engine(), 1, embed) == one
    assert {process for process, _ in CALLS} == {os.getpid()}
    texts = [text for _, text in CALLS]
    assert len(texts) == len(set(texts))
    queries = {mutation[1] for case in cases.cases() for mutation in case.mutations}
    assert {text for text in texts if text.startswith("unforeseen")} == {f"unforeseen {query}" for query in queries}


def test_an_embedder_that_fails_leaves_what_was_before_it(
    cases: Dataset, cluster: Any, tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def picky(texts: list[str]) -> Any:
        if at in texts:
            raise ValueError("not this one")
        return model(texts)

    monkeypatch.setattr("forget_eval.bench.Options", lambda *given: Options(*given, chunk=10))
    with pytest.raises(UserError, match=r"failed on .* texts: ValueError: not this one"):
        there(cases, tmp_path / "run", "parallel_systems:Embedding", Engine(), 1, embedding.load(picky, cache=False))
    assert len(lines(tmp_path / "run")) == 20


def test_when_nobody_can_be_asked_for_vectors_any_more_the_run_ends(
    cases: Dataset, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    desks, opened = list[Any](), Troupe._open_desk
    monkeypatch.setattr(Troupe, "_open_desk", lambda troupe: desks.append(opened(troupe)) or desks[0])

    def ends(texts: list[str]) -> Any:
        if any(text.startswith("unforeseen") for text in texts):
            ray.kill(desks[0])
        return model(texts)

    with pytest.raises(EnvironmentFault, match="through which systems ask the run for vectors has ended"):
        there(cases, tmp_path / "run", "parallel_systems:Embedding", Engine(), 1, embedding.load(ends, cache=False))


def test_triplets_stay_together(items: Dataset, cluster: Any, tmp_path: Path) -> None:
    def go(folder: Path, **how: Any) -> list[str]:
        membehave.run_system(items, "parallel_systems:Store", folder, None, Settings(), **how)
        return lines(folder)

    assert go(tmp_path / "run", staged=Engine()) == go(tmp_path / "one")
    text = (tmp_path / "run" / "transcripts.jsonl").read_text()
    assert ["restore" in json.loads(line)["seconds"] for line in text.splitlines()] == [False, True, True] * 3


@pytest.mark.usefixtures("cluster")
def test_a_system_that_cannot_be_made_is_told_as_ever(items: Dataset, cases: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'ray_systems:LeavesAtOnce': its process ended 3 times while it was made"):
        there(cases, tmp_path / "run", "ray_systems:LeavesAtOnce", Engine(), 1)
    with pytest.raises(UserError, match=r"cannot be made: LookupError: no such store \(parallel_systems.py, line "):
        membehave.run_system(
            items, "parallel_systems:CannotBeMade", tmp_path / "run", None, Settings(), staged=Engine()
        )
    assert not (tmp_path / "run").exists()


def test_systems_that_differ_from_node_to_node_are_refused(
    cases: Dataset, cluster: Any, second: Any, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"'ray_systems:OneANode' is not the same on all machines .* configuration \("):
        there(cases, tmp_path / "run", "ray_systems:OneANode", Engine(rows=1))


# Commands -------------------------------------------------------------------------------------------------------------


def test_the_commands_join_a_cluster(
    cluster: Any, cases: Dataset, tmp_path: Path, tree: Tree, in_another_process: Callable[..., Any]
) -> None:
    def do(module: str, *arguments: object) -> str:
        done = in_another_process(f"from {module} import main; main()", *arguments)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    ray = ("--engine", "ray", "--address", cluster.address)
    do("forget_datasets.cli", "build", "forgeteval", "--n-per-family", 10, "--seed", 7, "--out", tmp_path / "d", *ray)
    build.build_forgeteval(tmp_path / "e", n_per_family=10, seed=7)
    assert tree(tmp_path / "d") == tree(tmp_path / "e")
    run = ("run", "forgeteval", "--data", cases.source, "--config", "en", "--adapter", "keep-all")
    assert do("forget_eval.cli", *run, "--out", tmp_path / "run", *ray, "--shards", tmp_path / "shards") == ""
    assert lines(tmp_path / "run") == here(cases, tmp_path / "one", "keep-all")
    assert runs.read(tmp_path / "run")["adapter"] == runs.read(tmp_path / "one")["adapter"]
    assert runs.read(tmp_path / "run")["played"] == {"engine": "ray", "workers": 1}
    assert len([*(tmp_path / "shards").glob("run-*/*.jsonl")]) == 2  # pieces of 32


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("datasets", ("build", "forgeteval", "--out", "x", "--address", "auto"), "--address goes with --engine ray"),
        ("datasets", ("build", "forgeteval", "--out", "x", "--engine", "ray", "--workers", "2"), "--workers goes with"),
        ("eval", ("bench", "forgeteval", "--adapter", "null", "--shards", "x"), "--shards goes with --engine ray"),
    ],
)
def test_options_that_do_not_go_together(
    module: str, arguments: Sequence[str], said: str, in_another_process: Callable[..., Any]
) -> None:
    done = in_another_process(f"from forget_{module}.cli import main; main()", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_without_ray_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"needs ray, which is not installed\.\n    pip install (-e )?'.*\[ray\]'"):
        connect()
