"""A folder that appears whole or not at all, whatever ends the build: an error, a full disk, Ctrl-C, a kill."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forget_datasets.build import build_forgeteval
from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.staging import Outcome, staged
from forget_datasets.validate import validate

Tree = Callable[[Path], dict[str, bytes]]
Run = Callable[..., subprocess.CompletedProcess[str]]

KILLED = (
    "import os, signal, sys; from pathlib import Path; from forget_datasets.build import build_forgeteval; "
    "build_forgeteval(Path(sys.argv[1]), (), progress=lambda config: os.kill(os.getpid(), signal.SIGKILL))"
)
ON_A_FULL_DISK = (
    "import resource, sys; from pathlib import Path; from forget_datasets.build import build_forgeteval; "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); build_forgeteval(Path(sys.argv[1]), ())"
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_current_folder_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="current folder"):
        build_forgeteval(Path(), ())


def test_a_killed_build_leaves_nothing_at_its_place_and_the_next_one_sweeps(
    tmp_path: Path, in_another_process: Run
) -> None:
    for left in (1, 1):  # a second one that is killed has swept the first
        assert in_another_process(KILLED, tmp_path / "out").returncode == -signal.SIGKILL
        assert [name.startswith(".out.building-") for name in names(tmp_path)] == [True] * left
    build_forgeteval(tmp_path / "out", ())
    assert names(tmp_path) == ["out"]


def test_a_killed_rebuild_leaves_the_dataset_valid_and_the_next_one_sweeps(
    handmade_folder: Path, in_another_process: Run, tree: Tree
) -> None:
    whole = tree(handmade_folder)
    assert in_another_process(KILLED, handmade_folder).returncode == -signal.SIGKILL
    assert len(names(handmade_folder.parent)) == 2
    assert validate(handmade_folder).problems == []
    build_forgeteval(handmade_folder, ())
    assert names(handmade_folder.parent) == ["out"]
    assert tree(handmade_folder) == whole


def test_what_a_build_to_another_place_left_is_not_swept(tmp_path: Path, in_another_process: Run) -> None:
    in_another_process(KILLED, tmp_path / "other")
    build_forgeteval(tmp_path / "out", ())
    assert [name.rpartition("-")[0] for name in names(tmp_path)] == [".other.building", ""]


def test_a_running_build_is_not_swept(tmp_path: Path) -> None:
    with staged(tmp_path / "out") as running:
        (running.folder / "half").write_text("done")
        build_forgeteval(tmp_path / "out", ())
        assert (running.folder / "half").read_text() == "done"
    assert running.outcome is Outcome.REPLACED


def test_a_disk_without_locks_takes_a_build_and_nothing_is_swept_there(
    tmp_path: Path, in_another_process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    in_another_process(KILLED, tmp_path / "out")
    monkeypatch.setattr("fcntl.flock", flock)
    build_forgeteval(tmp_path / "out", ())
    assert [name.rpartition("-")[0] for name in names(tmp_path)] == [".out.building", ""]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_nothing_not_even_folders_on_the_way(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "there").mkdir()

    def build() -> None:
        with staged(tmp_path / "there/new/newer/out") as stage:
            (stage.folder / "half").write_text("done")
            raise error

    with pytest.raises(error):
        build()
    assert names(tmp_path) == ["there"]
    assert names(tmp_path / "there") == []


def test_an_interrupt_between_the_renames_brings_the_old_dataset_back(
    handmade_folder: Path, monkeypatch: pytest.MonkeyPatch, tree: Tree
) -> None:
    whole = tree(handmade_folder)
    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        if path.name.startswith(".out.building-"):
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_forgeteval(handmade_folder, (), seed=2, force=True)
    assert tree(handmade_folder) == whole
    assert names(handmade_folder.parent) == ["out"]


def test_a_place_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EnvironmentFault, match=r"file/out.*Not a directory\. Nothing was left there\."):
        build_forgeteval(tmp_path / "file" / "out", ())
    with pytest.raises(EnvironmentFault, match=r"File name too long\. Nothing was left there\."):
        build_forgeteval(tmp_path / ("x" * 300), ())


def test_links_that_go_round_in_circles_are_said(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for place in ("loop", "loop/out"):
        with pytest.raises(EnvironmentFault, match=rf"{place}: Too many levels of symbolic links"):
            build_forgeteval(tmp_path / place, ())
    assert names(tmp_path) == ["loop"]


def test_a_path_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the path is not UTF-8"):
        build_forgeteval(tmp_path / os.fsdecode(b"\xff"), ())
    assert names(tmp_path) == []


def test_a_disk_that_takes_no_more_is_named_with_the_reason(tmp_path: Path, in_another_process: Run) -> None:
    done = in_another_process(ON_A_FULL_DISK, tmp_path / "out")
    assert done.returncode == 1
    assert f"EnvironmentFault: {tmp_path / 'out'}: File too large. Nothing was left there." in done.stderr
    assert names(tmp_path) == []


def test_a_disk_that_refuses_a_rebuild_leaves_what_was_there_and_says_so(
    handmade_folder: Path, in_another_process: Run, tree: Tree
) -> None:
    whole = tree(handmade_folder)
    done = in_another_process(ON_A_FULL_DISK, handmade_folder)
    assert f"EnvironmentFault: {handmade_folder}: File too large. It is as it was before." in done.stderr
    assert tree(handmade_folder) == whole
    assert names(handmade_folder.parent) == ["out"]


def test_ctrl_c_ends_the_command_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "on/the/way/out"
    command = [sys.executable, "-m", "forget_datasets", "build", "membehave", "--triplets", "500", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (out.parent.exists() and names(out.parent)):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    # An interpreter that was interrupted inside an import ends by the signal itself, which a shell also calls 130.
    assert process.returncode in (130, -signal.SIGINT)
    assert stdout == ""
    assert stderr.strip() == (
        "forget-datasets: interrupted. Nothing half-written was left, and what was there is there."
    )
    assert names(tmp_path) == []
