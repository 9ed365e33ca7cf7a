"""The command `forget-datasets` as a person meets it: what it prints where, and how it exits."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import forget_datasets
from forget_datasets import console
from forget_datasets.build import build_forgeteval

Command = Callable[..., tuple[int, str, str]]
Run = Callable[..., subprocess.CompletedProcess[str]]


def test_build_then_validate(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "fe"
    code, stdout, stderr = command("build", "forgeteval", "--lang", "en", "--n-per-family", "4", "--out", out)
    assert (code, stderr) == (0, "")
    assert stdout == (
        f"{out}: built, 35 rows in 2 configs (en, handmade). "
        f'Load with datasets.load_dataset("{out}", "en", split="test")\n'
    )
    assert command("validate", out) == (0, f"{out}: forgeteval, 35 rows in 2 configs: valid\n", "")


def test_what_was_built_at_a_url_is_loaded_as_it_says(command: Command) -> None:
    url = "memory://bucket/announced"
    code, stdout, _ = command("build", "forgeteval", "--n-per-family", "1", "--out", url)
    said = f'forget_datasets.load("{url}", "en", split="test")'
    assert (code, stdout) == (0, f"{url}: built, 20 rows in 2 configs (en, handmade). Load with {said}\n")
    assert len(eval(said, {"forget_datasets": forget_datasets})) == 5


def test_the_same_again_is_said(command: Command, tmp_path: Path) -> None:
    arguments = ("build", "forgeteval", "--n-per-family", "1", "--out", tmp_path / "fe")
    command(*arguments)
    code, stdout, _ = command(*arguments)
    assert (code, "already built, nothing to do" in stdout) == (0, True)
    code, _, stderr = command(*arguments, "--seed", "43")
    assert code == 2
    assert stderr == (
        f"forget-datasets: {tmp_path / 'fe'} holds a dataset with seed 42, not 43; "
        "choose another folder, or add --force to replace it\n"
    )
    code, stdout, _ = command(*arguments, "--seed", "43", "--force")
    assert (code, "built in place of the old one" in stdout) == (0, True)


def test_explicit_options_override_the_profile(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "fe"
    command("build", "forgeteval", "--profile", "stress", "--n-per-family", "2", "--out", out)
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
    command: Command, arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(*arguments) == (2, "", f"forget-datasets: {message}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_in_the_way_exits_with_one(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    out = tmp_path / "file" / "fe"
    code, stdout, stderr = command("build", "forgeteval", "--n-per-family", "1", "--out", out)
    assert (code, stdout) == (1, "")
    assert stderr == f"forget-datasets: {out}: Not a directory. Nothing was left there.\n"


def test_an_invalid_dataset_exits_with_one(command: Command, tmp_path: Path) -> None:
    build_forgeteval(tmp_path / "fe", ())
    (tmp_path / "fe/README.md").unlink()
    code, stdout, _ = command("validate", tmp_path / "fe")
    assert code == 1
    assert stdout.splitlines() == [
        "README.md: is missing",
        f"{tmp_path / 'fe'}: forgeteval, 15 rows in 1 configs: 1 problems",
    ]
    code, stdout, _ = command("validate", "--json", tmp_path / "fe")
    found = json.loads(stdout)
    assert (code, found["valid"], found["rows"]) == (1, False, 15)
    assert found["problems"] == [{"file": "README.md", "row": None, "column": None, "message": "is missing"}]
    manifest = json.loads((tmp_path / "fe/manifest.json").read_text(encoding="utf-8"))
    assert found["configs"]["handmade"]["content_hash"] == manifest["configs"]["handmade"]["content_hash"]


@pytest.mark.parametrize(
    ("dataset", "option"), [("forgeteval", "--n-per-family"), ("membehave", "--triplets-per-user")]
)
def test_help_imports_nothing_heavy(in_another_process: Run, dataset: str, option: str) -> None:
    code = (
        "import sys; from forget_datasets.cli import main\n"
        "try: main(['build', sys.argv[1], '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'datasets', 'pyarrow', 'pandas', 'numpy', 'jinja2', 'rich', 'huggingface_hub'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = in_another_process(code, dataset)
    assert option in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_terminal_gets_a_bar_on_standard_error_and_a_clean_standard_output(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    build_forgeteval(tmp_path / "fe", ())
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "forget_datasets", "validate", str(tmp_path / "fe")]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=slave, env=environment, text=True, check=True)
    os.close(slave)
    shown = os.read(master, 100_000).decode(errors="replace")  # what is read may end within a sign
    os.close(master)
    assert done.stdout == f"{tmp_path / 'fe'}: forgeteval, 15 rows in 1 configs: valid\n"
    assert "validating" in shown


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of shell in which `forget-datasets` is this program."""
    call = ["sh", "-c", f'forget() {{ "{sys.executable}" -m forget_datasets "$@"; }}\n{line}']
    return subprocess.run(call, env=os.environ | environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["--help", "--version", "validate {folder}", "validate --json {folder}"])
def test_a_full_disk_behind_standard_output_is_said(handmade_folder: Path, arguments: str, unbuffered: str) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    done = shell(f"forget {arguments.format(folder=handmade_folder)} >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (1, "forget-datasets: standard output: No space left on device\n")


@pytest.mark.parametrize(("streams", "code"), [("2>&-", 0), (">&- 2>&-", 0), (">/dev/full 2>/dev/full", 1)])
def test_streams_that_are_closed_or_full_change_no_work(handmade_folder: Path, streams: str, code: int) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    for arguments in (f"validate {handmade_folder}", f"build forgeteval --n-per-family 1 --out {handmade_folder}x"):
        done = shell(f"forget {arguments} {streams}")
        assert (done.returncode, done.stderr) == (code, "")
    assert (Path(f"{handmade_folder}x") / "manifest.json").exists()
    assert shell(f"forget validate nowhere {streams}").returncode == 2


def test_a_reader_that_has_seen_enough_is_no_fault(handmade_folder: Path) -> None:
    done = shell(f"forget validate --json {handmade_folder} | :")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stream_of_few_characters_escapes_the_others(tmp_path: Path) -> None:
    out = tmp_path / "中"
    done = shell(f"forget build forgeteval --n-per-family 1 --out '{out}'", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    done = shell(f"forget validate '{out}'", PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path}/\\u4e2d: forgeteval, 20 rows in 2 configs: valid\n"


def test_json_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    steering = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
    console.print_json({"é中": steering})
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"é中": steering}
    assert "é中" in shown
    assert "\\u009b" in shown
    assert not set(steering) - {"\n"} & set(shown)


def test_json_is_json_whatever_the_encoding(tmp_path: Path) -> None:
    build_forgeteval(tmp_path / "fe", ())
    manifest = json.loads((tmp_path / "fe/manifest.json").read_text(encoding="utf-8"))
    manifest["configs"]["é中"] = manifest["configs"]["handmade"]
    (tmp_path / "fe/manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    done = shell(f"forget validate --json '{tmp_path / 'fe'}'", PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (1, "")
    assert "config 'é中' has no files in data/é中" in [p["message"] for p in json.loads(done.stdout)["problems"]]


@pytest.mark.parametrize("subject", [["validate"], ["build", "forgeteval", "--out"]])
def test_names_that_are_none(command: Command, subject: list[str]) -> None:
    code, _, stderr = command(*subject, "~nosuch-user/x")
    assert (code, stderr) == (
        2,
        "forget-datasets: ~nosuch-user/x: nobody has that home folder. For one of that name write ./~nosuch-user/x\n",
    )
    code, _, stderr = command(*subject, "")
    assert (code, stderr.endswith("is empty; name a folder\n")) == (2, True)
    code, _, stderr = command(*subject, "x" * 300)
    assert (code in (1, 2), stderr.count("\n")) == (True, 1)


def test_the_home_folder_is_meant_by_a_tilde(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert command("build", "forgeteval", "--n-per-family", "1", "--out=~/fe")[0] == 0
    assert (tmp_path / "fe/manifest.json").exists()


def test_a_place_where_nothing_can_be_made(command: Command) -> None:
    code, stdout, stderr = command("build", "forgeteval", "--n-per-family", "1", "--out", "/proc/x")
    assert (code, stdout) == (1, "")
    assert stderr.startswith("forget-datasets: /proc/x: ")
    assert stderr.endswith(". Nothing was left there.\n")


def test_an_error_that_nobody_foresaw_is_said_without_a_traceback(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("forget_datasets.build.orders", broken)
    arguments = ("build", "forgeteval", "--n-per-family", "1", "--out", tmp_path / "out")
    code, stdout, stderr = command(*arguments)
    assert (code, stdout) == (1, "")
    assert stderr.startswith("forget-datasets: ZeroDivisionError: by zero\n")
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("FORGET_DEBUG", "1")
    assert "Traceback" in command(*arguments)[2]
