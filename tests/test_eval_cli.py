"""The command `forget-eval` from end to end, with real datasets, adapters and files."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from forget_eval.cli import main

MY_MEMORY = '''
import os


class MyMemory:
    """Recalls nothing, releases nothing, lacks supersede, and breaks on a purge."""

    name = "mine"

    def reset(self):
        print("reset")
        self.facts = []

    def inscribe(self, text):
        self.facts.append(text)
        return len(self.facts)

    def recall_texts(self, query, k=5):
        return []

    def release(self, query):
        if os.environ.get("STOP") == str(len(self.facts)):
            raise KeyboardInterrupt
        return 0

    def purge(self, query):
        raise RuntimeError(f"no access with {os.environ.get('MY_API_KEY')}")


class Unfinished:
    def reset(self): ...


class Costly(MyMemory):
    def __init__(self):
        raise OSError("no server at localhost")
'''
FILES = {"SHA256SUMS", "manifest.json", "transcripts.jsonl", "scores.parquet", "summary.json"}
Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Runs the command in a folder of its own that holds `my_memory.py`."""
    (tmp_path / "my_memory.py").write_text(MY_MEMORY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_memory", raising=False)
    return lambda *arguments: CliRunner().invoke(main, [str(argument) for argument in arguments])


def good(result: Result) -> Result:
    assert result.exit_code == 0, result.stderr
    return result


def without_times(path: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [{**t, "seconds": None, "operations": [{**o, "seconds": None} for o in t["operations"]]} for t in found]


def test_the_controls_land_where_they_must(invoke: Invoke) -> None:
    names = ("null", "keep-all", "wipe-all", "oracle")
    chosen = [argument for name in names for argument in ("--adapter", name)]
    result = good(invoke("bench", "forgeteval", *chosen, "--scale", 4, "--distractors", 2, "--out", "b", "--json"))
    summaries = json.loads(result.stdout)
    assert [summary["adapter"] for summary in summaries] == list(names)
    assert [summary["n"] for summary in summaries] == [20] * 4
    strict = [summary["rates"]["strict"]["overall"]["passed"] for summary in summaries]
    assert strict == [0, 0, 0, 20]
    assert {path.name for path in Path("b").iterdir()} == {"data", *names}
    assert {path.name for path in Path("b/oracle").iterdir()} == FILES


def test_without_a_scale_the_hand_made_cases_are_run_and_out_is_the_run_folder(invoke: Invoke) -> None:
    result = good(invoke("bench", "forgeteval", "--adapter", "oracle", "--out", "b"))
    assert "config handmade · 15 cases" in result.stdout
    assert {path.name for path in Path("b").iterdir()} == {"data", *FILES}
    assert json.loads(Path("b/manifest.json").read_text())["dataset"]["path"] == "data"
    assert "b/data" in result.stderr
    assert all(name in result.stderr for name in FILES)


def test_a_bench_can_be_repeated(invoke: Invoke) -> None:
    command = ("bench", "forgeteval", "--adapter", "oracle", "--profile", "smoke")
    first = good(invoke(*command))
    folder = Path("runs/forgeteval-en-10x4/oracle")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    second = good(invoke(*command))
    assert second.stdout == first.stdout
    assert "nothing to do" in second.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_users_class_is_judged(invoke: Invoke) -> None:
    result = good(invoke("bench", "forgeteval", "--adapter", "my_memory:MyMemory", "--out", "b", "--json"))
    summary = json.loads(result.stdout)
    assert summary["adapter"] == "mine"
    assert summary["statuses"]["strict"] == {"pass": 0, "fail": 6, "n/a": 6, "error": 3, "unscored": 0}
    assert "reset" not in result.stdout


def test_the_steps_give_what_bench_gives(invoke: Invoke) -> None:
    bench = good(invoke("bench", "forgeteval", "--adapter", "my_memory:MyMemory", "--out", "b"))
    chosen = ("--data", "b/data", "--config", "handmade", "--adapter", "my_memory:MyMemory")
    good(invoke("run", "forgeteval", *chosen, "--out", "r"))
    assert {path.name for path in Path("r").iterdir()} == {"manifest.json", "transcripts.jsonl"}
    assert without_times(Path("r/transcripts.jsonl")) == without_times(Path("b/transcripts.jsonl"))
    refused = invoke("report", "r")
    assert refused.exit_code == 2
    assert "forget-eval score r" in refused.stderr
    scored = good(invoke("score", "r", "--data", "b/data"))
    assert scored.stdout == ""
    assert Path("r/summary.json").read_bytes() == Path("b/summary.json").read_bytes()
    assert good(invoke("report", "r")).stdout == bench.stdout


def test_flags_that_the_hand_made_cases_lack_are_warned_of(invoke: Invoke) -> None:
    assert "both are ignored" in good(invoke("bench", "forgeteval", "--adapter", "null", "--seed", 7)).stderr


def test_a_finished_run_does_nothing(invoke: Invoke) -> None:
    good(invoke("bench", "forgeteval", "--adapter", "null", "--out", "b"))
    chosen = ("--data", "b/data", "--config", "handmade", "--adapter", "null", "--out", "b")
    before = Path("b/transcripts.jsonl").read_bytes()
    assert "nothing to do" in good(invoke("run", "forgeteval", *chosen)).stderr
    assert Path("b/transcripts.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (["--adapter", "oracle", "--config", "en"], "adapter was null, is oracle"),
        (["--adapter", "null", "--config", "handmade"], "dataset config was en, is handmade"),
    ],
)
def test_a_run_with_other_parameters_is_refused(invoke: Invoke, changed: list[str], named: str) -> None:
    good(invoke("bench", "forgeteval", "--adapter", "null", "--out", "b", "--scale", 1))
    refused = invoke("run", "forgeteval", "--data", "b/data", "--out", "b", *changed)
    assert refused.exit_code == 2
    assert named in refused.stderr
    refused = invoke("bench", "forgeteval", "--adapter", "null", "--out", "b", "--scale", 2)
    assert refused.exit_code == 2
    assert "n_per_family 1, not 2" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["bench", "forgeteval", "--adapter", "leteh"], "no adapter named 'leteh'. Did you mean 'lethe'?"),
        (["bench", "forgeteval", "--adapter", "null", "--lang", "jap"], "no language named 'jap'. Did you mean 'ja'?"),
        (["bench", "forgeteval", "--adapter", "null", "--profile", "smok"], "Did you mean 'smoke'?"),
        (["bench", "forgeteval", "--adapter", "lethe", "--embedder", "minilm-in8"], "Did you mean 'minilm-int8'?"),
        (["bench", "forgetevel", "--adapter", "null"], "no task named 'forgetevel'. Did you mean 'forgeteval'?"),
        (["bensh", "forgeteval"], "no command named 'bensh'. Did you mean 'bench'?"),
        (["bench", "forgeteval", "--adapter", "null", "--lang", "zh"], "the hand-made cases are English"),
        (["bench", "forgeteval", "--adapter", "lethe", "--adapter", "nul"], "Did you mean 'null'?"),
        (["bench", "forgeteval", "--adapter", "my_memory:MyMemery"], "Did you mean 'MyMemory'?"),
        (["bench", "forgeteval", "--adapter", "my_memory:Unfinished"], "lacks inscribe, recall_texts"),
        (["bench", "forgeteval", "--adapter", "my_memory:Costly"], "cannot be made: OSError: no server at localhost"),
        (["run", "forgeteval", "--data", "nowhere", "--adapter", "null", "--out", "r"], "there is no folder nowhere"),
        (["score", "nowhere"], "nowhere is no run"),
        (["report", "nowhere"], "nowhere is no run"),
    ],
)
def test_bad_input_is_told_in_a_sentence(invoke: Invoke, arguments: list[str], complaint: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert complaint.lower() in result.stderr.lower()
    assert result.stderr.removeprefix("building runs/forgeteval-handmade/data\n").startswith("forget-eval: ")
    assert "Traceback" not in result.stderr


def test_a_folder_that_cannot_be_made_names_path_and_reason(invoke: Invoke) -> None:
    good(invoke("bench", "forgeteval", "--adapter", "null", "--out", "b"))
    chosen = ("--data", "b/data", "--config", "handmade", "--adapter", "null")
    result = invoke("run", "forgeteval", *chosen, "--out", "/proc/nowhere/r")
    assert result.exit_code == 1
    assert result.stderr.startswith("forget-eval: cannot make /proc/nowhere/r: ")


def test_a_disk_that_fills_up_stops_the_run_and_room_lets_it_go_on(invoke: Invoke) -> None:
    good(invoke("bench", "forgeteval", "--adapter", "keep-all", "--out", "b"))
    whole = Path("b/transcripts.jsonl")
    arguments = ["run", "forgeteval", "--data", "b/data", "--config", "handmade", "--adapter", "keep-all", "--out", "r"]
    limit = whole.stat().st_size // 2
    code = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {resource.RLIM_INFINITY}))\n"
        "from forget_eval.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    cut = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert cut.returncode == 1
    assert cut.stderr.startswith("forget-eval: cannot write r/transcripts.jsonl: File too large")
    assert 0 < Path("r/transcripts.jsonl").stat().st_size <= limit
    assert without_times(Path("r/transcripts.jsonl"))
    good(invoke(*arguments))
    assert without_times(Path("r/transcripts.jsonl")) == without_times(whole)


def test_an_interrupted_run_goes_on(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    good(invoke("bench", "forgeteval", "--adapter", "my_memory:MyMemory", "--out", "b"))
    lengths = {t["id"]: t["store"] for t in without_times(Path("b/transcripts.jsonl"))}
    stop = next(store for id, store in lengths.items() if id.startswith("amnesia"))
    monkeypatch.setenv("STOP", str(stop))
    chosen = ("--data", "b/data", "--config", "handmade", "--adapter", "my_memory:MyMemory", "--out", "r")
    interrupted = invoke("run", "forgeteval", *chosen)
    assert interrupted.exit_code == 130
    assert "The same command goes on from there" in interrupted.stderr
    monkeypatch.delenv("STOP")
    good(invoke("run", "forgeteval", *chosen))
    assert without_times(Path("r/transcripts.jsonl")) == without_times(Path("b/transcripts.jsonl"))


def test_no_secret_reaches_a_file_or_the_terminal(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "canary-7f3a9c")
    result = good(invoke("bench", "forgeteval", "--adapter", "my_memory:MyMemory", "--out", "b"))
    assert "RuntimeError: no access with [redacted]" in result.stdout
    assert "canary" not in result.output
    for path in Path("b").rglob("*"):
        assert path.is_dir() or b"canary" not in path.read_bytes(), path


@pytest.mark.parametrize("form", [[], ["--markdown"]])
def test_reports_fit_the_page_and_tell_what_was_lacking(invoke: Invoke, form: list[str]) -> None:
    chosen = ("--adapter", "my_memory:MyMemory", "--adapter", "oracle", "--adapter", "null")
    good(invoke("bench", "forgeteval", *chosen, "--scale", 4, "--out", "b"))
    table = good(invoke("report", "b/my_memory.MyMemory", "b/oracle", "b/null", *form)).stdout
    assert form or max(map(len, table.splitlines())) <= 100
    assert "20 cases · 4 a family · 4 distractors · seed 42 · k = 10" in table
    assert "mine lacks: supersede (8 cases)." in table
    assert "mine broke, first in purge" in table
    assert "k covers all of them" in " ".join(table.split())
    assert "100 [84–100]" in table  # the oracle's 20 of 20, 20 / (20 + z^2)
    assert "\x1b" not in table


def test_one_run_is_shown_with_its_templates(invoke: Invoke) -> None:
    table = good(invoke("bench", "forgeteval", "--adapter", "keep-all", "--scale", 8, "--out", "b")).stdout
    assert max(map(len, table.splitlines())) <= 100
    line = next(line for line in table.splitlines() if line.startswith("  one_of_many"))
    assert line.split()[1:5] == ["2", "0", "[0–66]", "0"]  # z^2 / (2 + z^2)


def test_lethe_and_the_reference_store_with_a_real_embedder(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGET_EVAL_CACHE", str(tmp_path / "cache"))
    chosen = ("--adapter", "lethe", "--adapter", "reference")
    result = good(invoke("bench", "forgeteval", *chosen, "--out", "b"))
    assert "Embedder: minilm-int8 (weights 8199be6f699a) for lethe, reference." in result.stdout
    assert "lethe (pylethe 1.0.0a0): supersede, release, purge native, ids by policy." in result.stdout
    for name in ("lethe", "reference"):
        summary = json.loads(Path("b", name, "summary.json").read_text())
        assert summary["statuses"]["strict"]["error"] == summary["statuses"]["strict"]["n/a"] == 0
        assert summary["rates"]["strict"]["purge"]["passed"] == 3


def test_adapters_are_listed(invoke: Invoke) -> None:
    lines = good(invoke("adapters")).stdout.splitlines()
    assert "lethe pylethe 1.0.0a0 native native native policy an embedder" in [" ".join(line.split()) for line in lines]
    rows = json.loads(good(invoke("adapters", "--json")).stdout)
    assert {row["name"] for row in rows} >= {"null", "keep-all", "wipe-all", "oracle", "reference", "lethe"}


def test_the_list_of_adapters_breaks_no_word_and_says_nothing_twice(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGET_EVAL_ENVS", str(tmp_path / "none"))
    table, longer, lines = good(invoke("adapters")).stdout.split("\n\n")
    rows = json.loads(good(invoke("adapters", "--json")).stdout)
    assert len(table.splitlines()) == len(rows) + 2  # a heading, a line, and one line for each
    assert max(map(len, table.splitlines())) <= 100
    for row in rows:
        (line,) = (line for line in table.splitlines() if line.split()[0] == row["name"])
        assert row["package"] in line
        assert row["needs"] in line or f"  {row['name']}: {row['needs']}\n" in f"{longer}\n"
    offered = lines.splitlines()[1:]
    assert offered.count("  forget-eval env create hipporag") == 1
    assert len(offered) == len(set(offered))


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from forget_eval.cli import main\n"
        "try: main(['bench', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'datasets', 'pyarrow', 'numpy', 'scipy', 'pandas', 'torch', 'rich', 'huggingface_hub'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stderr.strip() == "[]"
    assert "--adapter" in done.stdout


@pytest.mark.parametrize("command", ["bench", "run", "score", "report", "adapters"])
def test_every_option_is_explained(invoke: Invoke, command: str) -> None:
    help_text = good(invoke(command, "--help")).stdout
    options = [parameter for parameter in main.commands[command].params if parameter.param_type_name == "option"]
    assert all(getattr(option, "help", None) for option in options)
    assert all(option.opts[0] in help_text for option in options)
