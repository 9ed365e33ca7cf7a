"""The command `forget-datasets` as a person meets it: what it prints where, and how it exits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forget_datasets.build import build_forgeteval
from forget_datasets.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Runs the command; gives exit code, standard output, standard error."""

    def command(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return command


def test_build_then_validate(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / "fe"
    code, stdout, stderr = run("build", "forgeteval", "--lang", "en", "--n-per-family", "4", "--out", out)
    assert (code, stderr) == (0, "")
    assert stdout == (
        f"{out}: built, 35 rows in 2 configs (en, handmade). "
        f'Load with datasets.load_dataset("{out}", "en", split="test")\n'
    )
    assert run("validate", out) == (0, f"{out}: forgeteval, 35 rows in 2 configs: valid\n", "")


def test_the_same_again_is_said(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    arguments = ("build", "forgeteval", "--n-per-family", "1", "--out", tmp_path / "fe")
    run(*arguments)
    code, stdout, _ = run(*arguments)
    assert (code, "already built, nothing to do" in stdout) == (0, True)
    code, _, stderr = run(*arguments, "--seed", "43")
    assert code == 2
    assert stderr == (
        f"forget-datasets: {tmp_path / 'fe'} holds a dataset with seed 42, not 43; "
        "choose another folder, or add --force to replace it\n"
    )
    code, stdout, _ = run(*arguments, "--seed", "43", "--force")
    assert (code, "built in place of the old one" in stdout) == (0, True)


def test_explicit_options_override_the_profile(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / "fe"
    run("build", "forgeteval", "--profile", "stress", "--n-per-family", "2", "--out", out)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["parameters"] == {
        "langs": ["en"], "n_per_family": 2, "distractors": 50, "seed": 42, "stress": True,
    }  # fmt: skip
    assert manifest["configs"]["en-stress"]["rows"] == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "forgeteval", "--lang", "zj", "--out", "x"], "no language named 'zj'. Did you mean 'zh'?"),
        (["build", "forgeteval", "--profile", "ful", "--out", "x"], "no profile named 'ful'. Did you mean 'full'?"),
        (["build", "forgetevl", "--out", "x"], "no command named 'forgetevl'. Did you mean 'forgeteval'?"),
        (["vaildate", "x"], "no command named 'vaildate'. Did you mean 'validate'?"),
        (["validate", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_bad_input_is_said_in_one_line(
    run, arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == (2, "", f"forget-datasets: {message}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_in_the_way_exits_with_one(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "file").write_text("in the way")
    out = tmp_path / "file" / "fe"
    code, stdout, stderr = run("build", "forgeteval", "--n-per-family", "1", "--out", out)
    assert (code, stdout) == (1, "")
    assert stderr == f"forget-datasets: {out}: Not a directory. Nothing was left there.\n"


def test_an_invalid_dataset_exits_with_one(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    build_forgeteval(tmp_path / "fe", ())
    (tmp_path / "fe/README.md").unlink()
    code, stdout, _ = run("validate", tmp_path / "fe")
    assert code == 1
    assert stdout.splitlines() == [
        "README.md: is missing",
        f"{tmp_path / 'fe'}: forgeteval, 15 rows in 1 configs: 1 problems",
    ]
    code, stdout, _ = run("validate", "--json", tmp_path / "fe")
    found = json.loads(stdout)
    assert (code, found["valid"], found["rows"]) == (1, False, 15)
    assert found["problems"] == [{"file": "README.md", "row": None, "column": None, "message": "is missing"}]
    manifest = json.loads((tmp_path / "fe/manifest.json").read_text(encoding="utf-8"))
    assert found["configs"]["handmade"]["content_hash"] == manifest["configs"]["handmade"]["content_hash"]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from forget_datasets.cli import main\n"
        "try: main(['build', 'forgeteval', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'datasets', 'pyarrow', 'pandas', 'numpy', 'jinja2', 'rich', 'huggingface_hub'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--n-per-family" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_terminal_gets_a_bar_on_standard_error_and_a_clean_standard_output(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    build_forgeteval(tmp_path / "fe", ())
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "forget_datasets", "validate", str(tmp_path / "fe")]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=slave, env=environment, text=True, check=True)
    os.close(slave)
    shown = os.read(master, 100_000).decode()
    os.close(master)
    assert done.stdout == f"{tmp_path / 'fe'}: forgeteval, 15 rows in 1 configs: valid\n"
    assert "validating" in shown
