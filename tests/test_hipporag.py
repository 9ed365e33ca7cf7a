"""HippoRAG's adapter: the rules in its model's place, what it mends, and whom it lets run code here."""

import json
import os
import subprocess
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from forget_datasets.errors import UserError
from forget_datasets.forgeteval import generate
from forget_eval import adapters, forgeteval
from forget_eval.adapters import hipporag_package, hipporag_rules
from forget_eval.adapters.hipporag import HipporagDense, HipporagMemory
from forget_eval.adapters.hipporag_llm import MODEL, TRUSTED, URL, HipporagModelMemory
from forget_eval.adapters.hipporag_rules import entities, triples
from forget_eval.catalogue import listing
from forget_eval.isolation import environments, requirements, selection, sources
from forget_eval.isolation.environments import Environment

HERE = Path(__file__).parent
JOB, NEW, CAT = "The user works at Stripe.", "The user works at Anthropic.", "Miso is a grey cat."
LONGEST = 600  # seconds


def test_says_what_it_is() -> None:
    assert (HipporagMemory.name, HipporagMemory.tried) == ("hipporag (rule triples)", "2.0.0a4")
    assert HipporagMemory.operations == {"supersede": "emulated", "purge": "native"}
    assert not hasattr(HipporagMemory, "release")
    assert HipporagMemory.configuration["linking_top_k"] == 1
    assert HipporagDense.name == "hipporag (dense only)"
    assert "rules_sha256" not in HipporagDense.configuration


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (JOB, [("user", "works at", "Stripe")]),
        ("Ana moved to Porto in May.", [("Ana", "moved to", "Porto"), ("Ana", "moved in", "May")]),
        ("I never liked salt and pepper!", [("I", "liked", "salt and pepper")]),
        ("The meeting was moved from Monday to Friday.", None),
        ("I’m a nurse and I’ve lived in Rome.", [("I", "am", "nurse"), ("I", "have lived in", "Rome")]),
        ("Bob (a baker) has not yet seen Oslo", [("Bob", "has not yet seen", "Oslo")]),
        ("Her work email is x@y.org.", [("Her work email", "is", "x@y.org")]),
        ("The keys of the car", [("keys", "of", "car")]),
        ("alice@acme.io", []),
        ("", []),
        ("用户住在上海市。", []),
        ("🦊🦊 likes 🍓", []),
    ],
)
def test_the_rules_cut_a_clause_at_its_predicate(text: str, found: list[tuple[str, str, str]] | None) -> None:
    if found is None:
        found = [("meeting", "was moved from", "Monday"), ("meeting", "was moved to", "Friday")]
    assert triples(text) == found


def test_a_clause_without_a_subject_takes_the_one_before() -> None:
    text = "My sister Ana, who lives in Porto, plays the cello and has two dogs."
    sister = "My sister Ana"
    assert triples(text) == [(sister, "lives in", "Porto"), (sister, "plays", "cello"), (sister, "has", "two dogs")]
    assert entities(triples(text)) == [sister, "Porto", "cello", "two dogs"]


def test_the_manifest_has_the_hash_of_the_rules_and_their_words() -> None:
    code = Path(hipporag_rules.__file__)
    digest = sha256(code.read_bytes() + code.with_suffix(".toml").read_bytes()).hexdigest()
    assert HipporagMemory.configuration["rules_sha256"] == digest


@pytest.mark.parametrize("kind", [HipporagMemory, HipporagDense])
def test_the_manifest_has_the_hash_of_the_work_arounds(kind: type[HipporagMemory]) -> None:
    digest = sha256(Path(hipporag_package.__file__).read_bytes()).hexdigest()
    assert kind.configuration["work_arounds_sha256"] == digest


def test_a_case_in_another_language_is_not_applicable_and_not_asked() -> None:
    class Memory:
        name = "English alone"
        languages = ("en",)

        def reset(self) -> None:
            pytest.fail("it was asked")

        inscribe = recall_texts = reset

    assert adapters.describe(Memory())["languages"] == ["en"]
    assert "languages" not in adapters.describe(adapters.load("null"))
    [case] = list(generate(1, lang="zh"))[:1]
    transcript = forgeteval.replay(case, Memory(), languages=["en"])  # type: ignore[arg-type]
    assert (transcript["status"], transcript["final"], transcript["operations"]) == ("n/a", None, [])
    [case] = list(generate(1))[:1]
    assert forgeteval.replay(case, adapters.load("null"), languages=["en"])["status"] == "ok"


@pytest.mark.parametrize("wrong", ["en", 7, [1]])
def test_languages_that_are_none_are_refused(wrong: object) -> None:
    kind = type("Memory", (), {"languages": wrong, "name": "m"})
    with pytest.raises(UserError, match=r"adapter 'm': its attribute 'languages' is .* a list of language tags"):
        adapters.describe(kind())


def test_its_environment_takes_torch_from_an_index_without_cuda_first() -> None:
    wanted = requirements.packaged("hipporag")
    assert wanted is not None
    assert f"hipporag=={HipporagMemory.tried}" in wanted.content.splitlines()
    assert sources.options(wanted.content) == ["--no-deps"]
    install = ["pip", "install", "--no-input", "--no-deps", "--extra-index-url"]
    assert sources.first(wanted.content, ["pip"]) == [
        [*install, "https://download.pytorch.org/whl/cpu", "torch==2.13.0"],
    ]
    assert sources.first("# Python 3.11\nnumpy==2.4.6\n", ["pip"]) == []


@pytest.mark.parametrize("name", ["hipporag", "hipporag-dense", "hipporag-llm"])
def test_all_its_configurations_share_one_environment(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGET_EVAL_ENVS", str(tmp_path))
    with pytest.raises(
        UserError, match=r"needs hipporag, which is not installed\.\n +forget-eval env create hipporag "
    ):
        selection.select(name, lambda texts: pytest.fail("nothing is to be embedded"))
    (tmp_path / "hipporag").mkdir()
    environments._write(Environment("hipporag", "3.11.7", "", "", of_users_file=False))
    with pytest.raises(UserError, match="the environment of 'hipporag' is unfinished"):
        selection.select(name, lambda texts: pytest.fail("nothing is to be embedded"))


def test_without_its_environment_it_says_how_to_make_it() -> None:
    with pytest.raises(UserError, match=r"needs hipporag\.\n    forget-eval env create hipporag"):
        HipporagMemory(lambda texts: pytest.fail("nothing is to be embedded"))


@pytest.mark.parametrize(
    "url", ["https://api.example.org/v1", "http://192.0.2.1:8000", "http://0.0.0.0:1/v1", "nothing"]
)
def test_an_endpoint_on_another_machine_must_be_named_twice(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, url)
    monkeypatch.setenv(MODEL, "a-model")
    for trusted in ("", "yes", "api.example.com"):
        monkeypatch.setenv(TRUSTED, trusted)
        with pytest.raises(UserError, match=rf"another machine, and HippoRAG runs what .* set {TRUSTED}="):
            HipporagModelMemory(lambda texts: pytest.fail("nothing is to be embedded"))


@pytest.mark.parametrize(
    ("url", "trusted"), [("http://localhost:1/v1", ""), ("http://[::1]:1", ""), ("http://10.0.0.9:1/v1", "10.0.0.9")]
)
def test_one_here_and_one_named_twice_are_taken(url: str, trusted: str) -> None:
    with pytest.raises(UserError, match="needs hipporag"):  # so the endpoint has passed
        HipporagModelMemory(lambda texts: pytest.fail("nothing is to be embedded"), url, "a-model", trusted)


def test_a_model_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL, raising=False)
    with pytest.raises(UserError, match=rf"needs an endpoint and a model: set {URL} and {MODEL}"):
        HipporagModelMemory(lambda texts: pytest.fail("nothing is to be embedded"), model="a-model")
    [row] = [row for row in listing() if row.name == "hipporag-llm"]
    assert row.needs == f"tried for plumbing only: {URL} and {MODEL}; an embedder"
    assert row.install == ["forget-eval env create hipporag"]


@pytest.mark.servers
def test_its_graph_is_of_the_rules() -> None:
    found = life()["graph"]
    assert found["facts"] == [["miso", "is", "grey cat"], ["user", "works at", "stripe"]]
    assert found["entities"] == ["grey cat", "miso", "stripe", "user"]
    assert found["linking_top_k"] == 1
    assert found["recalled"] == [JOB]
    assert found["ids"] == found["stored"] == [JOB, CAT]
    assert life()["dense"] == [CAT, JOB]


@pytest.mark.servers
def test_what_is_indexed_after_a_search_is_found() -> None:
    assert life()["graph"]["recalled later"] == [NEW, JOB]


@pytest.mark.servers
def test_a_store_that_was_emptied_can_be_used_again() -> None:
    found = life()["graph"]
    assert found["purged"] == [1, 1, 1]
    assert (found["emptied"], found["used again"], found["same twice"]) == ([], [JOB], 1)


@pytest.mark.servers
def test_each_work_around_is_needed() -> None:
    assert life()["mended"] == "2"
    assert life()["unmended"] == {"get_fact_scores": "AssertionError", "index": "AssertionError"}


@pytest.mark.servers
def test_hipporag_keeps_an_entity_whose_documents_are_deleted_one_by_one() -> None:
    assert life()["residue"] == {"one by one": ["globex", "grey cat", "miso"], "together": ["grey cat", "miso"]}


@pytest.mark.servers
def test_as_published_a_model_extracts_and_chooses() -> None:
    found = life()["published"]
    assert found["asked"] == ["names", "triples", "choice"]
    assert (found["names"], found["facts"]) == (["User", "Stripe"], ["('user', 'works at', 'stripe')"])
    assert found["recalled"] == [JOB]
    assert found["linking_top_k"] == [5, 5]


@pytest.mark.servers
def test_the_package_runs_what_a_model_replies() -> None:
    assert life()["evaluated"]["names"] == ["evaluated"]


@pytest.mark.servers
def test_a_reply_that_cannot_be_read_is_a_text_without_facts_and_none_is_an_error() -> None:
    found = life()
    assert (found["unreadable"]["facts"], found["unreadable"]["recalled"]) == ([], [JOB])
    assert found["refused"]["error"].startswith("hipporag: no reply of the model: BadRequestError: Error code: 400")


@pytest.mark.servers
def test_starts_no_process_and_leaves_no_file() -> None:
    assert life()["children"] == []
    assert life()["left"] == ["report.json"]


@cache
def life() -> dict[str, Any]:
    """What `hipporag_life.py` saw, in the Python that has HippoRAG, and what it left in its home."""
    environment = environments.find("hipporag")
    if environment is None or environment.state is not environments.State.COMPLETE:
        pytest.fail("hipporag is not installed: forget-eval env create hipporag")
    ours = os.pathsep.join(map(str, (HERE, HERE.parent, HERE.parent / "eval")))
    with TemporaryDirectory() as folder:
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": ours} | dict.fromkeys(("HOME", "TMPDIR"), folder)
        command = [str(environment.interpreter), str(HERE / "hipporag_life.py"), f"{folder}/report.json"]
        done = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, timeout=LONGEST, check=False
        )
        assert done.returncode == 0, done.stderr[-4000:]
        found: dict[str, Any] = json.loads(Path(folder, "report.json").read_text())
        found["left"] = sorted(os.listdir(folder))
    return found
