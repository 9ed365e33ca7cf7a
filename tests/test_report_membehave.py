"""The tables of MemBehave as text, from real runs of controls whose manifests say that they are something else."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forget_eval import scores
from forget_eval.data import open_dataset
from forget_eval.membehave.bench import run_system
from forget_eval.membehave.systems import Settings
from forget_eval.report.labels import POLICY_NOTE
from forget_eval.report.membehave import MAIN, load
from forget_eval.report.membehave_text import print_report, render_markdown

Built = tuple[Path, dict[str, Any]]
CONTROLS = ("redactor", "keep-all", "null", "oracle")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, membehave_built: Built) -> Path:
    """Scored runs of controls."""
    out = tmp_path_factory.mktemp("tables")
    items = open_dataset(str(membehave_built[0]), "membehave", "default")
    for name in CONTROLS:
        run_system(items, name, out / name, None, Settings())
        scores.score(out / name)
    return out


@pytest.fixture
def disguised(played: Path, tmp_path: Path) -> Callable[..., Path]:
    """Copies the run of the redactor as one of an ordinary system with another name, name of the run and policy."""

    def copy(system: str, run: str = "run", policy: str = "named") -> Path:
        folder = tmp_path / run
        shutil.copytree(played / "redactor", folder)
        manifest = json.loads((folder / "manifest.json").read_text()) | {"run": run}
        manifest["adapter"] |= {"name": system, "told_the_case": False}
        recall = {"default": 10, "target": 50}
        manifest["assistant"] = {"answerer": "extractive", "forget_policy": policy, "recall": recall}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return folder

    return copy


def names(shown: str) -> str:
    """The first column of a printed report, without blanks."""
    return "".join("".join(line[:11].split()) for line in shown.splitlines())


def rows(markdown: str) -> list[list[list[str]]]:
    """The cells of each table."""
    tables = re.findall(r"(?:^\|.*\|\n)+", markdown, re.MULTILINE)
    return [[line[2:-2].split(" | ") for line in table.splitlines()] for table in tables]


def test_long_labels_stay_whole(disguised: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    folders = [disguised("mcp:mine", "mcp-a"), disguised("mcp:mine", "mcp-b")]
    groups = load([*folders, disguised("mcp:a-long-name", "mcp-c", "single")])
    assert [result.label for result in groups[0]] == ["mcp:mine mcp-a", "mcp:mine mcp-b", "mcp:a-long-name*"]
    print_report(groups)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    for label in ("mcp:minemcp-a", "mcp:minemcp-b", "mcp:a-long-name*"):
        assert names(shown).count(label) >= 5  # in every table


def test_square_brackets_are_no_markup(disguised: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    print_report(load([disguised("[b]x[/c]")]))
    assert names(capsys.readouterr().out).count("[b]x[/c]") == 5 + 1  # and in a note


def test_another_policy_is_told_by_a_note(disguised: Callable[..., Path], played: Path) -> None:
    usual, other = disguised("mine", "a"), disguised("mine", "b", "single")
    assert POLICY_NOTE not in render_markdown(load([usual, played / "oracle"])).replace("\\", "")
    assert f"- {POLICY_NOTE}\n" in render_markdown(load([usual, other])).replace("\\", "")
    again = disguised("mine", "c", "single")
    found = load([other, again])
    assert [result.label for result in found[0]] == ["mine* b", "mine* c"]
    assert f"- {POLICY_NOTE}\n" in render_markdown(found).replace("\\", "")


def test_markdown_has_the_tables_of_the_terminal(
    disguised: Callable[..., Path], played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = load([disguised("mine"), *(played / name for name in CONTROLS)])
    text = render_markdown(groups)
    print_report(groups)
    shown = capsys.readouterr().out
    headings = re.findall(r"^\*\*(.*?)\*\*$", text, re.MULTILINE)
    assert len(headings) == 4
    assert all(f"\n{heading}\n" in shown for heading in headings)
    main, differences, further, endings, excluded = rows(text)
    assert main[0] == ["system", "level", *MAIN.values()]
    assert "recall target" not in differences[0]
    assert further[0] == ["system", "level", "resurfaced"]
    # nothing was known by null, so that its nine items are in no mean of what is kept or lost
    assert ["null", "0", "0", "9", "9", "9", "9"] in excluded
    assert ["null", "9", "0", "0", "0"] in [row[:5] for row in endings]


def test_a_control_whose_levels_are_alike_has_one_row(played: Path) -> None:
    """The redactor loses more at one level than at another."""
    main, differences, *_ = rows(render_markdown(load([played / name for name in CONTROLS])))
    assert [row[:2] for row in main[2:]] == [
        ["redactor", "all"], ["", "low"], ["", "med"], ["", "high"],
        ["keep-all", "all"], ["null", "all"], ["oracle", "all"],
    ]  # fmt: skip
    assert [row[:2] for row in differences[2:]] == [["redactor", "med-low"], ["", "high-low"], ["", "high-med"]]
