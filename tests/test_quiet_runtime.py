"""The runtime of the embedder keeps to itself: no file of its own in the home, and no word to its makers."""

import os
import subprocess
import sys
from pathlib import Path

EMBED = "from forget_eval import embedding; print(embedding.load('minilm-int8')(['Ana works at Acme .']).shape)"


def test_an_embedded_text_leaves_nothing_but_its_vector_in_the_home(tmp_path: Path) -> None:
    unset = ("ORT_", "XDG_", "CI", "TF_BUILD", "GITHUB_", "FORGET_")  # some of them keep it quiet too
    variables = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
    done = subprocess.run(
        [sys.executable, "-c", EMBED],
        env=variables | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "(1, 384)\n", done.stderr
    found = {path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {(".cache", "forget-eval")}
