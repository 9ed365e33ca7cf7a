"""Results as a dataset, with the real client against a double of the Hub: what is published, refused and left."""

import json
import re
import shutil
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner, Result

from forget_datasets import card
from forget_datasets.build import build_forgeteval
from forget_eval import bench, scores
from forget_eval.cli import main
from forget_eval.data import open_dataset
from forget_eval.leaderboard.rows import TABLES
from tests.hub_double import Fault, Hub
from tests.hub_fixtures import CANARY

pytest_plugins = ("tests.hub_fixtures",)

Call = Callable[..., Result]

SUMMARIES, SCORES = (f"data/{name}/results-00000-of-00001.parquet" for name in ("summaries", "scores"))
RUNS = ("oracle", "wipe-all", "keep-all")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scored runs of three controls, in `runs`, with their dataset `cases` beside it."""
    out = tmp_path_factory.mktemp("results")
    build_forgeteval(out / "cases", n_per_family=4, seed=7)
    cases = open_dataset(str(out / "cases"), "forgeteval", "en")
    for name in RUNS:
        bench.run_adapter(cases, name, out / "runs" / name, None)
        scores.score(out / "runs" / name)
    return out


@pytest.fixture
def place(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the runs, to be changed, and the current folder."""
    monkeypatch.chdir(shutil.copytree(whole, tmp_path / "copy"))
    return tmp_path / "copy"


@pytest.fixture
def forget_eval(hub: Hub) -> Call:
    """The command `forget-eval`, which must never print the token."""

    def run(*arguments: object) -> Result:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert CANARY not in result.output
        return result

    return run


@pytest.fixture
def publish(forget_eval: Call) -> Call:
    """Publishes runs as acme/results."""

    def run(*arguments: object, yes: bool = True) -> Result:
        return forget_eval(
            "publish-results", *arguments, "--repo-id", "acme/results", *(["--yes"] if yes else []),
        )  # fmt: skip

    return run


def table(hub: Hub, path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(BytesIO(hub.repos["acme/results"].files[path])).to_pylist()
    return rows


def commits(hub: Hub) -> int:
    return sum(request.startswith("POST") and "/commit/" in request for request in hub.requests)


def test_a_dry_run_shows_everything_and_does_nothing(hub: Hub, publish: Call, place: Path) -> None:
    result = publish("runs", yes=False)
    assert result.exit_code == 0, result.stderr
    assert {request.split()[0] for request in hub.requests} <= {"GET", "HEAD"}
    assert hub.repos == {}
    lines = result.stdout.splitlines()
    assert lines[0] == "3 runs -> acme/results (to be made, public), 3 runs with those there:"
    assert re.fullmatch(r"  new +wipe-all, forgeteval en [0-9a-f]{12}: strict 0\.0%, run [0-9a-f]{12}", lines[3])
    assert [line.split()[-1] for line in lines if " B  " in line][:3] == ["README.md", SUMMARIES, SCORES]
    assert lines[-1] == "Nothing was done. To do it add --yes."


def test_runs_become_two_tables_a_card_and_a_picture_in_one_commit(hub: Hub, publish: Call, place: Path) -> None:
    result = publish("runs/oracle", "runs/wipe-all")
    assert result.exit_code == 0, result.stderr
    repo = hub.repos["acme/results"]
    assert (commits(hub), repo.tags) == (1, {})
    assert result.stdout.splitlines()[-1] == f"acme/results holds the results, at {repo.head}"
    [oracle, wipe_all] = table(hub, SUMMARIES)
    manifest = json.loads((place / "runs/oracle/manifest.json").read_text())
    summary = json.loads((place / "runs/oracle/summary.json").read_text())
    assert (oracle["system"], oracle["told_the_case"], oracle["metric"], oracle["value"]) == (
        "oracle",
        True,
        "strict",
        1.0,
    )
    assert oracle["low"] == summary["rates"]["strict"]["overall"]["low"]
    assert (oracle["dataset_hash"], oracle["dataset_config"]) == (manifest["dataset"]["content_hash"], "en")
    assert (oracle["dataset_rows"], oracle["seed"], oracle["k"], oracle["dataset_repo"]) == (20, 7, 10, None)
    assert (wipe_all["system"], wipe_all["value"]) == ("wipe-all", 0.0)
    assert len(table(hub, SCORES)) == 2 * 2 * 20  # runs, rates, cases
    for name, path in (("summaries", SUMMARIES), ("scores", SCORES)):
        assert pq.read_schema(BytesIO(repo.files[path])).names == TABLES[name].names
    text = repo.files["README.md"].decode()
    [picture] = re.findall(r"!\[.*\]\((.*)\)", text)
    assert repo.files[picture].startswith(b"\x89PNG\r\n")
    assert re.search(r"\n\|   \| oracle \| 100 \[\d+–100\] \|", text)
    assert f"Content hash `{oracle['dataset_hash']}`." in text
    for field in (*TABLES["summaries"].names, *TABLES["scores"].names):
        assert f"| `{field}` | `" in text


def test_load_dataset_gives_both_tables(hub: Hub, publish: Call, place: Path, elsewhere: Callable[..., Any]) -> None:
    publish("runs")
    done = elsewhere(
        "import json\nfrom datasets import load_dataset\n"
        "found = [load_dataset('acme/results', name) for name in ('summaries', 'scores')]\n"
        "found.append(load_dataset('acme/results'))\n"
        "print(json.dumps([[*part] + [part['results'].num_rows, part['results'][0]['run_id']] for part in found]))"
    )
    assert done.returncode == 0, done.stderr
    first, first_score = table(hub, SUMMARIES)[0], table(hub, SCORES)[0]
    assert json.loads(done.stdout.splitlines()[-1]) == [
        ["results", 3, first["run_id"]],
        ["results", 3 * 2 * 20, first_score["run_id"]],
        ["results", 3, first["run_id"]],
    ]


def test_others_stay_and_a_run_takes_the_place_of_its_older_self(hub: Hub, publish: Call, place: Path) -> None:
    assert publish("runs/oracle").exit_code == 0
    assert publish("runs/wipe-all").exit_code == 0
    before = table(hub, SUMMARIES)
    assert [row["system"] for row in before] == ["oracle", "wipe-all"]
    transcripts = place / "runs/wipe-all/transcripts.jsonl"
    lines = [json.loads(line) for line in transcripts.read_text().splitlines()]
    lines[0] |= {
        "status": "error",
        "final": None,
        "error": {"kind": "Broke", "message": "", "during": "inscribe", "traceback": ""},
    }
    transcripts.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    scores.score(place / "runs/wipe-all")
    result = publish("runs")
    assert result.exit_code == 0, result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()[1:4]] == ["new", "same", "changed"]
    after = table(hub, SUMMARIES)
    assert [row["system"] for row in after] == ["keep-all", "oracle", "wipe-all"]
    assert after[1] == before[0]
    assert (before[1]["errors"], after[2]["errors"]) == (0, 1)
    assert before[1]["run_id"] == after[2]["run_id"]
    assert len(table(hub, SCORES)) == 3 * 2 * 20


def test_once_more_is_nothing_to_do(hub: Hub, publish: Call, place: Path) -> None:
    publish("runs")
    result = publish("runs/oracle")
    assert result.exit_code == 0
    assert "All of it is on main already" in result.stdout
    assert commits(hub) == 1


def test_a_card_keeps_foreign_keys_and_text(hub: Hub, publish: Call, place: Path) -> None:
    existing = "---\nlicense: cc0-1.0\nmaintainer: Jörg 张\ntags:\n- favourite\n---\n\n# 我的\n\nBy hand.\n"
    repo = hub.create("acme/results", {"README.md": existing.encode(), "notes.csv": b"a,b\n"})
    assert publish("runs/oracle").exit_code == 0
    repo.commit({**repo.files, "README.md": repo.files["README.md"].replace(b"By hand.", b"By hand, later.")})
    assert publish("runs/wipe-all").exit_code == 0
    text = repo.files["README.md"].decode()
    front = yaml.safe_load(text.split("---\n")[1])
    assert (front["license"], front["maintainer"]) == ("cc0-1.0", "Jörg 张")
    assert [config["config_name"] for config in front["configs"]] == ["summaries", "scores"]
    assert {"favourite", "leaderboard"} <= set(front["tags"])
    assert text.endswith(f"{card.END}\n\n# 我的\n\nBy hand, later.\n")
    assert text.count(card.BEGIN) == 1
    assert "| wipe-all |" in text
    assert repo.files["notes.csv"] == b"a,b\n"


def test_a_run_whose_numbers_are_not_its_own_is_not_published(hub: Hub, publish: Call, place: Path) -> None:
    path = place / "runs/wipe-all/summary.json"
    summary = json.loads(path.read_text())
    summary["rates"]["strict"]["overall"]["value"] = 0.9
    path.write_text(json.dumps(summary))
    result = publish("runs")
    assert result.exit_code == 1
    assert "summary.json, rates.strict.overall.value: stated 0.9, should be 0.0" in result.stdout
    assert "nothing was published" in result.stderr
    assert (hub.repos, hub.requests) == ({}, [])
    assert publish("runs/oracle").exit_code == 0


def test_a_run_that_is_not_finished_is_not_published(hub: Hub, publish: Call, place: Path) -> None:
    path = place / "runs/oracle/transcripts.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:19]))
    scores.score(place / "runs/oracle")
    result = publish("runs/oracle")
    assert result.exit_code == 2
    assert "runs/oracle is not finished: 1 rows have not been run." in result.stderr
    assert hub.repos == {}


@pytest.mark.parametrize("path", ["manifest.json", "data/en/test-00000-of-00001.parquet", "data/raw.csv"])
def test_a_dataset_is_no_place_for_results(hub: Hub, publish: Call, place: Path, path: str) -> None:
    repo = hub.create("acme/results", {path: b"{}"})
    result = publish("runs")
    assert result.exit_code == 2
    assert f"acme/results holds {path}, so it is a dataset and no place for results" in result.stderr
    assert len(repo.commits) == 1


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault("PUT /lfs/", drop="before", times=99), 1),
        (Fault("POST .*/commit/", status=500), 1),
        (Fault("POST .*/commit/", status=403), 2),
        (Fault("POST .*/commit/", status=412), 1),
    ],
    ids=["upload", "500", "403", "412"],
)
def test_a_failure_before_the_commit_leaves_main_as_it_was(
    hub: Hub, publish: Call, place: Path, fault: Fault, code: int
) -> None:
    assert publish("runs/oracle").exit_code == 0
    head = hub.repos["acme/results"].head
    hub.faults.append(fault)
    result = publish("runs")
    assert result.exit_code == code
    assert result.stderr.endswith("\n    Nothing of acme/results was changed.\n")
    assert hub.repos["acme/results"].head == head
    hub.faults.clear()
    assert publish("runs").exit_code == 0
    assert len(table(hub, SUMMARIES)) == 3


def test_results_that_somebody_else_added_meanwhile_are_not_lost(hub: Hub, publish: Call, place: Path) -> None:
    assert publish("runs/oracle").exit_code == 0

    def meanwhile() -> None:
        assert publish("runs/wipe-all").exit_code == 0

    hub.faults.append(Fault("POST .*/preupload/", before=meanwhile))
    result = publish("runs/keep-all")
    assert result.exit_code == 1
    assert "somebody else changed the repository in the meantime (412)" in result.stderr
    assert publish("runs/keep-all").exit_code == 0
    assert [row["system"] for row in table(hub, SUMMARIES)] == ["keep-all", "oracle", "wipe-all"]


def test_a_failure_after_the_commit_is_said_and_a_rerun_needs_no_second_one(
    hub: Hub, publish: Call, place: Path
) -> None:
    hub.faults.append(Fault(f"GET .*/resolve/.*{SCORES}", status=500, times=99))
    result = publish("runs")
    repo = hub.repos["acme/results"]
    assert result.exit_code == 1
    assert (
        f"main of acme/results is at {repo.head[:12]} with the results, but they were not loaded back" in result.stderr
    )
    hub.faults.clear()
    assert publish("runs").exit_code == 0
    assert commits(hub) == 1


def test_rows_that_come_back_as_others_are_said(hub: Hub, publish: Call, place: Path) -> None:
    def lose_a_row() -> None:
        files, sink = hub.repos["acme/results"].files, BytesIO()
        pq.write_table(pq.read_table(BytesIO(files[SUMMARIES])).slice(1), sink)
        files[SUMMARIES] = sink.getvalue()

    hub.faults.append(Fault(f"HEAD .*/resolve/.*{SUMMARIES}", before=lose_a_row))
    result = publish("runs")
    assert result.exit_code == 1
    assert "the summaries that came back are not those that were sent" in result.stderr


def test_without_a_token_nothing_is_tried(
    hub: Hub, publish: Call, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(place / "none"))
    result = publish("runs")
    assert (result.exit_code, hub.repos) == (2, {})
    assert "log in with `hf auth login`, or set HF_TOKEN. Nothing was done." in result.stderr


def test_what_is_published_names_no_place_of_the_machine(hub: Hub, publish: Call, place: Path) -> None:
    publish("runs")
    repo = hub.repos["acme/results"]
    published = [repo.files["README.md"].decode(), str(table(hub, SUMMARIES)), str(table(hub, SCORES))]
    for text in published:
        assert not re.search(r"(?<![\w.])/(home|tmp|root|work|Users)/", text)
        assert str(place) not in text


def test_the_leaderboard_reads_the_hub_and_one_of_its_revisions(
    hub: Hub, publish: Call, forget_eval: Call, place: Path
) -> None:
    publish("runs/oracle")
    first = hub.repos["acme/results"].head
    publish("runs/wipe-all")
    [board] = json.loads(forget_eval("leaderboard", "acme/results", "--json").stdout)
    assert [entry["label"] for entry in board["entries"]] == ["oracle", "wipe-all"]
    [board] = json.loads(forget_eval("leaderboard", f"acme/results@{first}", "runs/keep-all", "--json").stdout)
    assert [entry["label"] for entry in board["entries"]] == ["oracle", "keep-all"]


def test_a_repository_without_results_is_said(hub: Hub, forget_eval: Call, place: Path) -> None:
    hub.create("acme/forget", {"README.md": b"# Mine\n"})
    result = forget_eval("leaderboard", "acme/forget")
    assert (result.exit_code, result.stderr) == (
        2, "forget-eval: acme/forget holds no results: it has no data/summaries/*.parquet.\n",
    )  # fmt: skip
    result = forget_eval("leaderboard", "acme/none")
    assert result.exit_code == 2
    assert "no dataset acme/none on the Hub" in result.stderr


def test_a_renamed_repository_is_published_under_its_new_name(hub: Hub, forget_eval: Call, place: Path) -> None:
    hub.create("acme/results")
    hub.renamed["acme/old"] = "acme/results"
    result = forget_eval("publish-results", "runs/oracle", "--repo-id", "acme/old", "--yes")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("acme/old is called acme/results now.\n")
    assert 'load_dataset("acme/results", "summaries"' in hub.repos["acme/results"].files["README.md"].decode()
