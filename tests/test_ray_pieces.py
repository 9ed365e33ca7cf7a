"""What a cluster plays and writes, piece by piece, and how far ahead: without a cluster."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
import pytest

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.rows import GeneratedCase
from forget_eval import bench
from forget_eval.data import open_dataset
from forget_eval.on_ray.actors import Said
from forget_eval.on_ray.dispatch import run
from forget_eval.on_ray.engine import Engine
from forget_eval.on_ray.pieces import Piece, pieces
from forget_eval.on_ray.shards import Shards, folder_of
from forget_eval.on_ray.troupe import Actor
from forget_eval.runner import Options
from forget_eval.transcripts import Writer
from tests.transcript_lines import lines

Built = tuple[Path, dict[str, Any]]


def _cases(count: int) -> list[GeneratedCase]:
    from forget_datasets.forgeteval import generate

    return generate(count)[:count]


def test_pieces_lie_at_the_same_places_whatever_is_done() -> None:
    rows = _cases(10)
    done = frozenset(row.id for row in (*rows[:5], rows[9]))
    found = [*pieces(rows, done, Options(), lambda piece: piece.name.startswith("0000000008"), size=4)]
    assert [(piece.name, piece.ids, piece.is_played) for piece in found] == [
        ("0000000004+4.jsonl", [row.id for row in rows[5:8]], False),
        ("0000000008+2.jsonl", [rows[8].id], True),
    ]


def test_a_piece_has_the_vectors_of_its_texts_and_those_of_played_ones_are_not_made() -> None:
    asked: list[list[str]] = []

    def embed(texts: Sequence[str]) -> Any:
        asked.append(list(texts))
        return np.array([[len(text), 0] for text in texts], dtype=np.float32)

    rows = _cases(5)
    how = Options[GeneratedCase](lambda row: ["all", row.id, "all"], embed, chunk=4)
    found = [*pieces(rows, frozenset(), how, lambda piece: piece.name == "0000000002+2.jsonl", size=2)]
    ids = [row.id for row in rows]
    assert asked == [["all", ids[0], ids[1]], ["all", ids[4]]]
    assert [list(piece.texts) for piece in found] == [["all", ids[0], ids[1]], [], ["all", ids[4]]]
    assert found[0].vectors.tolist() == [[3, 0], [len(ids[0]), 0], [len(ids[1]), 0]]
    assert found[1].is_played


def test_shards_are_whole_and_lack_nothing(tmp_path: Path) -> None:
    shards = Shards((tmp_path / "place").as_uri())
    assert shards.names() == frozenset()
    shards.write("a.jsonl", [b'{"id":"x","n":1}\n', b'{"id":"y"}\n'])
    assert shards.names() == {"a.jsonl"}
    assert shards.read("a.jsonl", ["y", "x"]) == [b'{"id":"y"}\n', b'{"id":"x","n":1}\n']
    with pytest.raises(EnvironmentFault, match=r"a\.jsonl lacks the transcript of z"):
        shards.read("a.jsonl", ["x", "z"])
    (tmp_path / "place" / "b.jsonl").write_bytes(b'{"id":"x"}\n{"id":"y"}')
    with pytest.raises(EnvironmentFault, match="lacks the transcript of y"):
        shards.read("b.jsonl", ["x", "y"])
    with pytest.raises(EnvironmentFault, match=r"place: .* on several machines --shards names a place that all reach"):
        shards.read("c.jsonl", [])


@pytest.mark.parametrize("force", [False, True])
def test_a_run_that_ends_here_keeps_no_shards(forgeteval_built: Built, tmp_path: Path, force: bool) -> None:
    cases = open_dataset(str(forgeteval_built[0]), "forgeteval", "en")
    bench.run_adapter(cases, "keep-all", tmp_path / "run", None)
    one = lines(tmp_path / "run")
    Shards(folder_of(tmp_path / "run", None)).write("0000000000+32.jsonl", [b"{}\n"])
    bench.run_adapter(cases, "keep-all", tmp_path / "run", None, force=force)
    assert lines(tmp_path / "run") == one
    assert not (tmp_path / "run" / "shards").exists()


@pytest.mark.parametrize("url", ["s3://bucket/shards/", None])
def test_a_run_that_is_started_over_has_other_shards(tmp_path: Path, url: str | None) -> None:
    (tmp_path / "run").mkdir()
    places = []
    for started in ("now", "then", "now"):
        (tmp_path / "run" / "manifest.json").write_text(json.dumps({"started": started}))
        places.append(folder_of(tmp_path / "run", url))
    assert places[0] == places[2] != places[1]
    beginning = f"{url or tmp_path.resolve() / 'run' / 'shards'}".rstrip("/") + "/run-"
    assert all(place.startswith(beginning) for place in places)


def test_a_place_of_an_unknown_kind_is_refused_before_anything_else() -> None:
    with pytest.raises(UserError, match=r"nowhere://shards: Protocol not known: nowhere"):
        Engine(shards="nowhere://shards")


class Backwards:
    """Stands for a cluster of two actors that play what they have, the very first piece last."""

    name = "backwards"

    def __init__(self) -> None:
        self.seated = [Actor(None, is_seated=True), Actor(None, is_seated=True)]
        self.pieces: list[ReferenceType[Piece[Any]]] = []
        self.before_the_first = 0

    def load(self, piece: Piece[Any]) -> None:
        self.pieces.append(ref(piece))

    def play(self, actor: Actor, url: str, piece: Piece[Any], loaded: None) -> None:
        actor.in_flight.append(piece)
        lines = [json.dumps({"id": id}).encode() + b"\n" for id in piece.ids]
        Shards(url).write(piece.name, lines)

    def heard(self) -> Iterator[tuple[Actor, Piece[Any], Said]]:
        of_first, other = self.seated
        actor = other if other.in_flight else of_first
        if actor is of_first and not self.before_the_first:
            self.before_the_first = len(self.pieces)
        assert sum(piece() is not None for piece in self.pieces) <= len(of_first.in_flight) + len(other.in_flight) + 1
        yield actor, actor.in_flight[0], Said()


def test_one_that_takes_long_is_not_left_far_behind(tmp_path: Path) -> None:
    """With two actors, 16 pieces are handed out before the first has ended; of those that are played, none is kept."""
    rows = _cases(50)
    troupe, shards = Backwards(), Shards(str(tmp_path / "shards"))
    with Writer(tmp_path / "transcripts.jsonl") as writer:
        assert run(rows, troupe, shards, writer, Options(chunk=1), 1) == len(rows)  # type: ignore[arg-type]
    assert [json.loads(line)["id"] for line in lines(tmp_path)] == [row.id for row in rows]
    assert (troupe.before_the_first, len(troupe.pieces)) == (16, 50)
