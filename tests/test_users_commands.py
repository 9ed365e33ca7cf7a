"""Commands over a user's own module at its worst."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forget_datasets.errors import UserError
from forget_eval import bench
from tests.users_code import MEMORY, forget_eval, module

pytest_plugins = ("tests.users_code",)


NOISY = f"""
import os, subprocess
print("at import")
os.write(1, b"at import, past Python\\n")
{MEMORY}

class Noisy(Plain):
    def __init__(self, embed):
        subprocess.run(["echo", "in the constructor"])
        os.chdir("/")

    def reset(self):
        super().reset()
        os.write(1, b"in a reset\\n")
        os.chdir("/")

    def close(self):
        print("in a close")
        os.chdir("/")
        raise SystemExit(0)


def embed(texts):
    print("embedding")
    os.write(1, b"embedding, past Python\\n")
    os.chdir("/")
    return [[1.0, len(text)] for text in texts]
"""


def test_nothing_that_users_code_does_gets_into_the_json_or_the_way(folder: Path) -> None:
    module(folder, "noisy", NOISY)
    named = ("--adapter", "noisy:Noisy", "--adapter", "null", "--embedder", "noisy:embed")
    done = forget_eval(folder, "bench", "forgeteval", *named, "--out", "b", "--json")
    assert done.returncode == 0, done.stderr
    assert [summary["n"] for summary in json.loads(done.stdout)] == [15, 15]
    for place in ("at import, past", "in the constructor", "in a reset", "in a close", "embedding, past"):
        assert place in done.stderr
    assert "adapter 'noisy:Noisy' cannot be closed: SystemExit: 0" in done.stderr
    assert (folder / "b" / "null" / "summary.json").exists()


@pytest.mark.parametrize("code", ["import sys; sys.exit(0)", f"{MEMORY}\n    def __init__(self): raise SystemExit(0)"])
def test_an_exit_of_users_code_is_no_success(folder: Path, code: str) -> None:
    module(folder, "leaving", code)
    done = forget_eval(folder, "bench", "forgeteval", "--adapter", "leaving:Plain", "--out", "b")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "adapter 'leaving:Plain'" in done.stderr
    assert "Traceback" not in done.stderr


NO_WRITING = """
import resource
from pathlib import Path
from forget_eval.bench import Shape, build_data
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
build_data(Path("b/data"), Shape("en", 1))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits there")
def test_a_dataset_that_is_there_is_compared_without_a_byte_written(folder: Path) -> None:
    wanted = bench.Shape("en", 1)
    bench.build_data(Path("b/data"), wanted)
    subprocess.run([sys.executable, "-B", "-c", NO_WRITING], check=True, capture_output=True)
    assert os.listdir("b") == ["data"]
    with pytest.raises(UserError, match=r"b/data was built with n_per_family 1, not 2; seed 42, not 7\. Name another"):
        bench.build_data(Path("b/data"), bench.Shape("en", 2, seed=7))


def test_a_dataset_of_other_cases_is_refused(folder: Path) -> None:
    wanted = bench.Shape("en", 1)
    bench.build_data(folder / "data", wanted)
    path = folder / "data" / "manifest.json"
    there = json.loads(path.read_text())
    there["configs"]["en"]["content_hash"] = "0" * 64
    path.write_text(json.dumps(there))
    with pytest.raises(UserError, match="the same parameters by another version"):
        bench.build_data(folder / "data", wanted)
