"""The notebooks run, say what is stored in them, and store little and nothing of a machine."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")

from scripts import notebooks

Built = tuple[Path, dict[str, Any]]

LARGEST = 200_000
NAMES = ("membehave", "quickstart")


def test_they_are_all_here() -> None:
    assert notebooks.names() == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_is_what_it_says_now(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as a reader would, without data: it builds its own. Else: python scripts/notebooks.py."""
    for variable in ("FORGETEVAL_DATA", "MEMBEHAVE_DATA"):
        monkeypatch.delenv(variable, raising=False)
    stored, now = notebooks.read(name), notebooks.executed(name, tmp_path)
    assert notebooks.texts(now) == notebooks.texts(stored)
    assert (tmp_path / name / "data/manifest.json").exists()
    assert kinds(now) == kinds(stored)


@pytest.mark.parametrize(("name", "data"), [("quickstart", "forgeteval_built"), ("membehave", "membehave_built")])
def test_the_environment_names_other_data(
    name: str, data: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, manifest = request.getfixturevalue(data)
    monkeypatch.setenv(f"{manifest['dataset'].upper()}_DATA", str(folder))
    said = "".join(notebooks.texts(notebooks.executed(name, tmp_path)))
    rows = next(iter(manifest["configs"].values()))["rows"]
    assert said.startswith(f"{rows} cases" if name == "quickstart" else f"{rows} items")
    assert not (tmp_path / name / "data").exists()


@pytest.mark.parametrize("name", NAMES)
def test_stored_outputs_are_whole_and_small(name: str) -> None:
    path = notebooks.FOLDER / f"{name}.ipynb"
    assert path.stat().st_size < LARGEST
    cells = [cell for cell in notebooks.read(name).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    found = [output for cell in cells for output in cell.outputs]
    assert not [output for output in found if output.output_type == "error" or output.get("name") == "stderr"]
    assert sum("image/png" in output.get("data", {}) for output in found) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_machine_is_stored(name: str) -> None:
    notebook = json.loads((notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert not [cell["metadata"] for cell in notebook["cells"] if cell["metadata"]]
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            text = json.dumps({**output, "data": {**output.get("data", {}), "image/png": ""}})
            assert not re.search(r"(?<![\w.])/(home|tmp|root|work|Users|var|usr|opt)/|[A-Z]:\\\\|site-packages", text)


def kinds(notebook: Any) -> list[list[str]]:
    """What each output is, but for the bytes of its pictures, which depend on the version of matplotlib."""
    return [[output.output_type, *sorted(output.get("data", {}))] for output in notebooks.outputs(notebook)]


def test_a_graph_has_every_edge_of_its_item(membehave_built: Built) -> None:
    import forget_datasets
    from forget_datasets.rows import Item
    from forget_eval import graphs

    items = [item for item in forget_datasets.load(str(membehave_built[0]), "default") if isinstance(item, Item)]
    axes = graphs.draw(items[::3]).axes
    assert len(axes) == len(items[::3]) == 3
    for axis, item in zip(axes, items[::3], strict=True):
        shared = [neighbor for neighbor in item.neighbors if neighbor.shared_with]
        people = {person for neighbor in shared for person in neighbor.shared_with}
        assert axis.get_title() == f"{item.level}: {len(shared)} of {len(item.neighbors)} shared"
        edges = [line for line in axis.lines if len(line.get_xdata()) == 2 and line.get_linestyle() == "-"]
        assert len(edges) == len(item.neighbors) + sum(len(neighbor.shared_with) for neighbor in shared)
        told = {text.get_text() for text in axis.texts}
        assert told == {item.target, *people, *(neighbor.entity for neighbor in item.neighbors)}
