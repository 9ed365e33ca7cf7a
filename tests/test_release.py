"""Releases: a version and the hash of its rows belong together for good, and the table of them can be read back."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forget_datasets import manifest, releases
from forget_datasets.build import build_forgeteval
from forget_datasets.errors import UserError
from forget_datasets.releases import Release, Releases
from tests.hub_double import Hub

pytest_plugins = ("tests.hub_fixtures",)

Built = tuple[Path, dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]


def release(version: str, digit: str, **configs: tuple[int, str]) -> Release:
    return Release(version, digit * 64, 1, configs or {"en": (5, digit * 64)}, "- A note.")


def test_the_content_hash_of_a_dataset_is_that_of_its_configs() -> None:
    configs = {"zh": {"content_hash": "b" * 64}, "en": {"content_hash": "a" * 64}}
    lines = f"en {'a' * 64}\nzh {'b' * 64}\n"
    assert manifest.content_hash({"configs": configs}) == sha256(lines.encode()).hexdigest()


def test_a_release_is_written_into_the_folder(command: Command, handmade_folder: Path) -> None:
    code, out, err = command("release", handmade_folder, "--version", "v1.0.0", "--note", "Read by\ntwo people.")
    assert (code, err) == (0, "")
    built = manifest.read(handmade_folder)
    digest, rows = manifest.content_hash(built), built["configs"]["handmade"]["content_hash"]
    assert out == (
        f"{handmade_folder}: forgeteval 1.0.0, content hash {digest}\n"
        "- Read by two people.\n- First release: `handmade` with 15 rows.\n"
    )
    text = (handmade_folder / "RELEASES.md").read_text(encoding="utf-8")
    assert text.startswith("# Releases of forgeteval\n")
    assert f"| 1.0.0 | `{digest}` | 1 | `handmade` 15 ({rows}) |\n" in text
    assert text.endswith("\n## 1.0.0\n\n- Read by two people.\n- First release: `handmade` with 15 rows.\n")
    assert command("validate", handmade_folder)[0] == 0
    again = command("release", handmade_folder, "--version", "1.0.0", "--note", "Too late.")
    assert again == (0, out, "")
    assert (handmade_folder / "RELEASES.md").read_text(encoding="utf-8") == text


def test_rows_have_one_version_and_a_version_has_one_set_of_rows(command: Command, tmp_path: Path) -> None:
    build_forgeteval(tmp_path / "a", n_per_family=1)
    assert command("release", tmp_path / "a", "--version", "1.0.0")[0] == 0
    code, _, err = command("release", tmp_path / "a", "--version", "1.0.1")
    assert code == 2
    assert "are forgeteval 1.0.0 already, and cannot be 1.0.1 as well" in err
    build_forgeteval(tmp_path / "a", n_per_family=2, force=True)  # the table outlives it
    code, _, err = command("release", tmp_path / "a", "--version", "1.0.0")
    assert code == 2
    assert "forgeteval 1.0.0 is released with content hash" in err
    code, out, _ = command("release", tmp_path / "a", "--version", "1.1.0")
    assert code == 0
    assert out.endswith("\n- `en` has other rows than in 1.0.0: 10, before 5.\n- `handmade` has the rows of 1.0.0.\n")


def test_a_rebuild_keeps_the_releases_and_another_dataset_does_not(handmade_folder: Path) -> None:
    text = Releases("forgeteval", [release("1.0.0", "a")]).render()
    (handmade_folder / "RELEASES.md").write_text(text, encoding="utf-8")
    build_forgeteval(handmade_folder, ())
    assert (handmade_folder / "RELEASES.md").read_text(encoding="utf-8") == text
    (handmade_folder / "RELEASES.md").write_text(text.replace("forgeteval", "membehave"), encoding="utf-8")
    build_forgeteval(handmade_folder, ())
    assert not (handmade_folder / "RELEASES.md").exists()


def test_an_invalid_dataset_is_not_released(command: Command, handmade_folder: Path) -> None:
    (handmade_folder / "croissant.json").unlink()
    code, _, err = command("release", handmade_folder, "--version", "1.0.0")
    assert (code, (handmade_folder / "RELEASES.md").exists()) == (1, False)
    assert "is not fit to be released:\n  croissant.json: is missing\n" in err


@pytest.mark.parametrize("version", ["1", "1.0", "1.0.0-rc1", "01.0.0", "1.0.0.0", "", "latest"])
def test_a_version_is_three_numbers(command: Command, handmade_folder: Path, version: str) -> None:
    code, _, err = command("release", handmade_folder, f"--version={version}")
    assert (code, err) == (
        2, f"forget-datasets: '{version}' is no version: give three numbers, such as 1.0.0\n",
    )  # fmt: skip


def test_the_releases_of_the_hub_are_continued(hub: Hub, forget: Command, publish: Command, tmp_path: Path) -> None:
    build_forgeteval(tmp_path / "a", n_per_family=1)
    build_forgeteval(tmp_path / "b", n_per_family=2)
    assert publish(tmp_path / "a")[0] == 0
    code, _, err = forget("release", tmp_path / "b", "--version", "1.0.0", "--repo-id", "acme/forget")
    assert (code, "A version never changes" in err) == (2, True)
    assert forget("release", tmp_path / "b", "--version", "1.1.0", "--repo-id", "acme/forget")[0] == 0
    known = releases.read(tmp_path / "b", "forgeteval").known
    assert [each.version for each in known] == ["1.1.0", "1.0.0"]
    published = releases.parse(hub.repos["acme/forget"].files["RELEASES.md"].decode(), "")
    assert known[1] == published.known[0]


def test_two_tables_that_contradict_each_other_are_refused() -> None:
    ours, theirs = Releases("forgeteval", [release("1.0.0", "a")]), Releases("forgeteval", [release("1.0.0", "b")])
    with pytest.raises(UserError, match="A version never changes"):
        ours.continued(theirs)
    with pytest.raises(UserError, match="lists releases of membehave, and this is forgeteval"):
        ours.continued(Releases("membehave"))


def test_the_newest_version_comes_first_whatever_came_when() -> None:
    known = Releases("forgeteval")
    for version, digit in (("1.9.0", "a"), ("1.10.0", "b"), ("1.2.0", "c")):
        known = known.with_(release(version, digit))
    assert [each.version for each in known.known] == ["1.10.0", "1.9.0", "1.2.0"]
    assert (known.before("1.9.5") or release("0.0.0", "0")).version == "1.9.0"
    assert known.before("1.0.0") is None


def test_what_became_of_each_config_is_said() -> None:
    old = release("1.0.0", "a", en=(5, "1" * 64), zh=(5, "2" * 64), ja=(5, "3" * 64))
    new = Release("2.0.0", "b" * 64, 2, {"en": (5, "1" * 64), "zh": (1200, "4" * 64), "ko": (7, "5" * 64)})
    assert releases.changes(new, old).splitlines() == [
        "- `en` has the rows of 1.0.0.",
        "- `zh` has other rows than in 1.0.0: 1,200, before 5.",
        "- `ko` is new: 7 rows.",
        "- `ja` is gone.",
        "- Schema 2, before 1.",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("# Releases of", "# Release of"), "does not begin with '# Releases of <dataset>'"),
        (lambda text: text.replace("`en` 5", "en 5"), "line 8: no release"),
        (lambda text: text.replace("a" * 64, "a" * 63), "line 8: no release"),
        (lambda text: text.replace("| 1.0.0 |", "| 1.0 |"), "line 8: no release"),
        (lambda text: text.replace("\n## 1", f"{text.splitlines()[7]}\n\n## 1"), "line 9: no release, or one that"),
        (lambda text: "\udcff", "not UTF-8"),
    ],
)
def test_a_table_that_is_not_ours_is_said(
    command: Command, handmade_folder: Path, change: Callable[[str], str], message: str
) -> None:
    text = change(Releases("forgeteval", [release("1.0.0", "a")]).render())
    (handmade_folder / "RELEASES.md").write_bytes(text.encode("utf-8", "surrogateescape"))
    code, _, err = command("release", handmade_folder, "--version", "2.0.0")
    assert code == 2
    assert message in err
    assert str(handmade_folder / "RELEASES.md") in err


VERSIONS = st.tuples(*[st.integers(0, 30)] * 3).map(lambda parts: ".".join(map(str, parts)))
CONFIGS = st.dictionaries(
    st.from_regex(r"[a-z]{2}(-[a-z]{1,6})?", fullmatch=True),
    st.tuples(st.integers(0, 10**7), st.text("0123456789abcdef", min_size=64, max_size=64)),
    min_size=1,
)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(VERSIONS, CONFIGS, max_size=6), st.lists(st.text(min_size=1), max_size=3))
def test_a_table_reads_back_as_it_was(found: dict[str, dict[str, tuple[int, str]]], notes: list[str]) -> None:
    known = Releases("forgeteval")
    for number, (version, configs) in enumerate(found.items()):
        made = Release(version, f"{number:064x}", 1, configs)
        told = releases.changes(made, known.before(version), notes)
        known = known.with_(Release(version, made.content_hash, 1, configs, told))
    back = releases.parse(known.render(), "there")
    assert back == Releases("forgeteval", tuple(known.known))
    assert [each.changes for each in back.known] == [each.changes for each in known.known]
    assert back.render() == known.render()
