"""What runs are called where several stand side by side: the scheme by hand, and that no two are ever alike."""

import shutil
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from forget_eval.report.labels import Named, run_id, starred, unique

WORDS = st.sampled_from(["a", "a b", "b", "a 1", "b 1", "a 11111111", "11111111", "1"])
IDS = st.sampled_from(["1" * 64, "2" * 64, "1" * 8 + "3" * 56])


def test_a_label_is_as_short_as_can_be() -> None:
    named = [
        Named("lethe", "monday", "1" * 64),
        Named("lethe", "tuesday", "2" * 64),
        Named("mem0", "run", "3" * 64),
        Named("mem0", "run", "4" * 64),
        Named("qdrant", "run", "5" * 64),
    ]
    assert unique(named) == ["lethe monday", "lethe tuesday", "mem0 33333333", "mem0 44444444", "qdrant"]


def test_one_run_that_is_there_twice_is_numbered() -> None:
    same, other = Named("lethe", "run", "1" * 64), Named("lethe", "run", "2" * 64)
    assert unique([same, other, same]) == ["lethe 11111111 1", "lethe 22222222", "lethe 11111111 2"]


@given(st.lists(st.builds(Named, WORDS, WORDS, IDS), max_size=12))
def test_no_two_labels_are_alike(named: list[Named]) -> None:
    found = unique(named)
    assert len(found) == len(set(found)) == len(named)
    assert all(label.startswith(each.system) for label, each in zip(found, named, strict=True))


def test_an_asterisk_marks_another_policy_than_the_usual_one() -> None:
    assert [starred("lethe", policy) for policy in ("named", None, "single")] == ["lethe", "lethe", "lethe*"]


def test_a_copy_is_known_by_the_same_id(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/manifest.json").write_text("{}")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    # printf '{}' | sha256sum
    assert run_id(tmp_path / "a") == run_id(tmp_path / "b")
    assert run_id(tmp_path / "a") == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
