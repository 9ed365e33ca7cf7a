"""What README shows is run as it stands there, and its table of systems is the one that the command prints."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forget_eval import catalogue

FENCE = re.compile(r"<!-- (file|run): (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def readme() -> str:
    return (Path(__file__).parent.parent / "README.md").read_text("utf-8")


@pytest.fixture
def shown(readme: str, tmp_path: Path) -> dict[str, str]:
    """The commands of README by name; its files lie in the current folder of `play`, and so does a `.venv`."""
    found = {(kind, name): content for kind, name, content in FENCE.findall(readme)}
    for (kind, name), content in found.items():
        if kind == "file":
            (tmp_path / name).write_text(content, "utf-8")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return {name: content for (kind, name), content in found.items() if kind == "run"}


def play(commands: str, folder: Path, **variables: str) -> str:
    """Runs shell commands in a folder and returns all that they print."""
    environment = os.environ | {
        "FORGET_EVAL_ENVS": str(folder / "envs"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **variables,
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_table_of_systems(readme: str) -> None:
    there = readme.partition("<!-- systems -->\n")[2].partition("<!-- /systems -->")[0]
    assert there == catalogue.markdown(catalogue.listing())


def test_a_class_of_ones_own(shown: dict[str, str], tmp_path: Path) -> None:
    out = play(shown["class"], tmp_path)
    assert "my-memory: supersede, purge native.\nmy-memory lacks: release (100 cases)." in out
    assert (tmp_path / "runs/forgeteval-en-50x4/my_memory.MyMemory/summary.json").exists()


@pytest.mark.systems
def test_an_environment_of_its_own(shown: dict[str, str], tmp_path: Path) -> None:
    assert "my-memory" in play(shown["isolated"], tmp_path)
    manifest = (tmp_path / "runs/isolated/manifest.json").read_text()
    assert '"environment": "my_memory:MyMemory"' in manifest


def test_an_entry_point_of_another_package(shown: dict[str, str], tmp_path: Path) -> None:
    import tomllib

    points = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["entry-points"]
    installed = tmp_path / "site"
    info = installed / "my_package-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.move(tmp_path / "my_memory.py", installed)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {to}\n" for name, to in group_points.items())
        for group, group_points in points.items()
    ]
    (info / "entry_points.txt").write_text("".join(lines))
    assert "my-memory" in play(shown["plugin"], tmp_path, PYTHONPATH=str(installed))


def test_an_mcp_server(shown: dict[str, str], tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("memory_server.py"), tmp_path)
    assert "mcp:mine" in play(shown["mcp"], tmp_path)


@pytest.mark.parametrize("name", ["class", "isolated", "plugin", "mcp"])
def test_each_is_at_most_ten_lines(shown: dict[str, str], name: str) -> None:
    assert len(shown[name].splitlines()) <= 10
