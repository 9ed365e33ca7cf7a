"""From a name to an adapter: what is found, what is said of what is not, and what surrounds it when it is made."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.errors import UserError
from forget_datasets.forgeteval.controls import CONTROLS
from forget_datasets.rows import OPERATIONS
from forget_eval import adapters, catalogue
from forget_eval.adapters import lookup
from forget_eval.adapters.scratch import Scratch
from forget_eval.embedding import Embedder
from forget_eval.isolation.process import Limits, this_interpreter
from forget_eval.isolation.proxy import WorkerMemory

pytest_plugins = ("tests.plain_memory",)

QUIET = {
    "DO_NOT_TRACK": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "MEM0_TELEMETRY": "False",
    "SCARF_NO_ANALYTICS": "true",
}


def test_a_package_is_as_quiet_in_this_process_as_in_a_worker(module_of_a_user: Path) -> None:
    before = dict(os.environ)
    scratch = Scratch()
    with scratch.home():
        here = {name: os.environ.get(name) for name in QUIET}
        assert os.environ["HOME"] == os.environ["XDG_CACHE_HOME"] == scratch.folder
    scratch.close()
    assert dict(os.environ) == before
    asked = "plain_memory_module:Asked"
    worker: Any = WorkerMemory(asked, this_interpreter(), None, Limits(), (adapters.MANDATORY,), {})
    there = dict(zip(QUIET, worker.recall_texts(" ".join(QUIET)), strict=True))
    worker.close()
    assert here == there == QUIET


@pytest.mark.parametrize("name", adapters.BUILT_IN)
def test_of_the_built_in_adapters_the_controls_are_told_the_case(name: str) -> None:
    assert adapters.is_told(adapters.find(name)) is (name in CONTROLS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("leteh", "no adapter named 'leteh'. Did you mean 'lethe'?"),
        ("plain_memory_modul:PlainMemory", "there is no module 'plain_memory_modul'. Is plain_memory_modul.py in"),
        ("plain_memory_module:PlainMemry", "Did you mean 'PlainMemory'?"),
        ("plain_memory_module:Half", "lacks inscribe, recall_texts"),
        ("plain_memory_module:PLAIN", "no class in plain_memory_module named 'PLAIN'"),
        ("math:pi", "must be a class"),
        ("reference", "needs a value for embed"),
    ],
)
def test_a_wrong_name_says_what_to_do(name: str, message: str, module_of_a_user: Path) -> None:
    with pytest.raises(UserError) as caught:
        adapters.load(name)
    assert message in str(caught.value)


def test_an_unknown_name_ends_with_what_a_user_can_bring() -> None:
    with pytest.raises(UserError, match=r"Known: chroma, .*, zep\.\n.* mcp:FILE\.toml .* module:Class for a class\.$"):
        adapters.find("?")


def test_options_reach_the_constructor(embed: Embedder, module_of_a_user: Path) -> None:
    made: Any = adapters.load("plain_memory_module:WithEmbedder", embed=embed, size=7)
    assert (made.name, made.embed, made.size) == ("mine", embed, 7)
    with pytest.raises(UserError, match=r"no option of .* named 'sise'. Did you mean 'size'"):
        adapters.load("plain_memory_module:WithEmbedder", embed=embed, sise=7)


def test_a_class_without_a_name_is_called_as_it_was_asked_for(module_of_a_user: Path) -> None:
    assert adapters.load("plain_memory_module:PlainMemory").name == "plain_memory_module:PlainMemory"


def test_only_constructors_with_the_parameter_get_the_embedder(module_of_a_user: Path) -> None:
    assert adapters.wants_embedder(adapters.find("lethe"))
    assert not adapters.wants_embedder(adapters.find("null"))
    assert not adapters.wants_embedder(adapters.find("plain_memory_module:PlainMemory"))


def test_declarations() -> None:
    assert adapters.operations(adapters.find("lethe")) == {
        key: {"kind": "native", "chooser": "policy"} for key in OPERATIONS
    }
    assert adapters.operations(adapters.find("oracle")) == {
        key: {"kind": "emulated", "chooser": "undeclared"} for key in OPERATIONS
    }


def test_undeclared_and_missing_operations(module_of_a_user: Path) -> None:
    plain = adapters.find("plain_memory_module:PlainMemory")
    assert adapters.operations(plain) == {
        key: {"kind": "undeclared", "chooser": "undeclared"} for key in ("release", "purge")
    }


@pytest.fixture
def plugins(tmp_path: Path, module_of_a_user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution with a good plugin and a broken one."""
    info = tmp_path / "some_plugin-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-plugin\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(
        "[forget_eval.adapters]\ngood = some_plugin_module:PlainMemory\nbroken = some_plugin_module:NoSuchClass\n"
    )
    shutil.copy(module_of_a_user / "plain_memory_module.py", tmp_path / "some_plugin_module.py")
    monkeypatch.syspath_prepend(tmp_path)


def test_plugins_are_found_and_a_broken_one_is_left_out_with_a_warning(plugins: None) -> None:
    with pytest.warns(RuntimeWarning, match="adapter 'broken' of some-plugin cannot be loaded: AttributeError"):
        rows = {row.name: row for row in catalogue.listing()}
    assert list(rows)[: len(adapters.BUILT_IN)] == list(adapters.BUILT_IN)
    assert "broken" not in rows
    assert (rows["good"].package, rows["good"].version) == ("some-plugin", "1.5")
    assert rows["good"].install == ["pip install some-plugin"]
    assert adapters.load("good").name == "good"
    with pytest.raises(UserError, match="adapter 'broken' of some-plugin cannot be loaded"):
        adapters.load("broken")


@pytest.mark.parametrize("name", ["lethe", "mcp:lethe"])
def test_for_a_name_of_ours_nothing_that_is_installed_is_looked_through(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "entry_points", lambda **group: pytest.fail("all distributions are read"))
    assert adapters.find(name).name == name


def test_the_list_names_packages_versions_and_install_lines() -> None:
    rows = {row.name: row for row in catalogue.listing()}
    assert rows["lethe"].package == "pylethe"
    assert re.match(r"pip install ('forget-datasets|-e '.*)\[lethe\]", rows["lethe"].install[-1])
    assert "an embedder" in rows["lethe"].needs
    assert rows["null"].needs == ""


@pytest.mark.parametrize(("is_there", "step"), [(True, ""), (False, r"pip install \S.*\[mcp\]'? && ")])
def test_a_server_is_got_by_its_environment_and_what_speaks_with_it(
    is_there: bool, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "version", lambda name: "2.3.0" if is_there and name == "mcp" else None)
    rows = {row.name: row for row in catalogue.listing()}
    for name, place in (("mcp:lethe", "lethe-mcp"), ("mcp:mempalace", "mempalace")):
        (line,) = rows[name].install
        assert re.fullmatch(f"{step}forget-eval env create {place}", line)
