"""A run made on CPython 3.13 is scored on an older one, without the system that was run, to the same summary.

On the side of the run everything is real: an environment of its own with what this project needs and nothing else.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from forget_datasets.errors import UserError
from forget_eval.isolation import interpreters

pytestmark = [
    pytest.mark.systems,
    pytest.mark.skipif(sys.version_info >= (3, 13), reason="the other Python must be an older one than 3.13"),
]
VERSIONS = Path(__file__).parent / "golden" / "versions"
SYSTEMS = {"lethe", "mem0", "mempalace", "langgraph", "llama_index", "qdrant_client", "chromadb", "lancedb"}
SCORE = """
import sys
from pathlib import Path
from forget_eval.scores import score
score(Path(sys.argv[1]))
print(sys.version_info[:2], *{name.partition(".")[0] for name in sys.modules})
"""


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Runs Python 3.13 where our dependencies are installed, and the repository and the golden system importable."""
    root = Path(__file__).parent.parent
    try:
        python = interpreters.named("3.13", SpecifierSet(">=3.13,<3.14"), "this test")
    except UserError:
        pytest.skip("this machine has no CPython 3.13")
    place = tmp_path_factory.mktemp("newer") / "venv"
    subprocess.run([python.path, "-m", "venv", place], check=True)
    needed = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    own = {"PYTHONPATH": os.pathsep.join(map(str, (root, root / "eval", VERSIONS)))}

    def run(*arguments: object) -> None:
        call = [str(place / "bin" / "python"), *map(str, arguments)]
        done = subprocess.run(call, env=os.environ | own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    run("-m", "pip", "install", "--quiet", *needed)
    return run


@pytest.mark.parametrize("task", ["forgeteval", "membehave"])
def test_a_run_of_another_python_is_scored_to_the_same_summary(
    newer: Callable[..., None], tmp_path: Path, task: str
) -> None:
    data, folder = VERSIONS / "v1" / task / "data", tmp_path / "run"
    asked = ("--data", data, "--adapter", "keyword_memory:Keyword", "--out", folder)
    newer("-m", "forget_eval", "run", task, *asked)
    newer("-m", "forget_eval", "score", folder)
    there = {name: (folder / name).read_bytes() for name in ("summary.json", "scores.parquet")}
    assert b'"python": "CPython 3.13.' in (folder / "manifest.json").read_bytes()
    done = subprocess.run([sys.executable, "-c", SCORE, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not {*SYSTEMS, "keyword_memory"} & set(done.stdout.split())
    assert (folder / "summary.json").read_bytes() == there["summary.json"]
