"""Publishing with the real client against a double of the Hub: what is left there, whatever goes wrong on the way."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from forget_datasets import card
from forget_datasets.build import build_forgeteval
from forget_datasets.hub import plan
from forget_datasets.hub.remote import State
from forget_datasets.rows import content_hash
from forget_datasets.schema import FORGETEVAL
from forget_datasets.shards import read_rows
from tests.hub_double import Fault, Hub, Repo
from tests.hub_fixtures import commits

pytest_plugins = ("tests.hub_fixtures",)

Built = tuple[Path, dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]

SHARD = "data/handmade/test-00000-of-00001.parquet"
FILES = {".gitattributes", "README.md", "RELEASES.md", "croissant.json", "manifest.json", SHARD}
AGAIN = "Run the same command again: it compares what is there and tags it, without another commit."


def test_a_new_repository_gets_one_commit_and_a_tag(hub: Hub, publish: Command, handmade_folder: Path) -> None:
    code, out, err = publish(handmade_folder)
    assert (code, err) == (0, "")
    repo = hub.repos["acme/forget"]
    assert len(repo.commits) == 2  # the Hub's own and ours
    assert repo.tags == {"v1.0.0": repo.head}
    assert set(repo.files) == FILES
    for path in (SHARD, "manifest.json", "RELEASES.md"):
        assert repo.files[path] == (handmade_folder / path).read_bytes()
    readme = repo.files["README.md"].decode()
    assert 'load_dataset("acme/forget", "handmade", split="test", revision="v1.0.0")' in readme
    assert "| release | 1.0.0, see RELEASES.md |" in readme
    croissant = json.loads(repo.files["croissant.json"])
    assert (croissant["version"], croissant["url"]) == ("1.0.0", f"{hub.endpoint}/datasets/acme/forget")
    assert out.splitlines()[-1] == f"acme/forget@v1.0.0 is published, at {repo.head}"
    assert "made acme/forget, public" in out


def test_a_dry_run_shows_everything_and_does_nothing(
    hub: Hub, forget: Command, handmade_folder: Path, there: Repo
) -> None:
    arguments = ("publish", handmade_folder, "--repo-id", "acme/forget", "--version", "1.0.0")
    code, out, _ = forget(*arguments)
    assert code == 0
    assert {request.split()[0] for request in hub.requests} <= {"GET", "HEAD"}
    assert not (handmade_folder / "RELEASES.md").exists()
    size = (handmade_folder / SHARD).stat().st_size
    assert re.search(rf"new +{size:,} B  {SHARD}", out)
    assert re.search(r"changed +[\d,]+ B  README.md", out)
    assert "+# ForgetEval\n" in out
    assert " # Mine\n" in out
    assert "- First release: `handmade` with 15 rows." in out
    assert "then tagged v1.0.0." in out
    assert out.endswith("Nothing was done. To do it add --yes.\n")


def test_once_more_is_nothing_to_do(hub: Hub, publish: Command, handmade_folder: Path) -> None:
    publish(handmade_folder)
    before = len(hub.requests)
    code, out, _ = publish(handmade_folder)
    assert code == 0
    assert "v1.0.0 is published already" in out
    assert not any(request.startswith(("POST", "PUT")) for request in hub.requests[before:])


def test_the_next_version_continues_the_table_of_the_hub(hub: Hub, publish: Command, tmp_path: Path) -> None:
    build_forgeteval(tmp_path / "a", n_per_family=1)
    build_forgeteval(tmp_path / "b", n_per_family=2)
    assert publish(tmp_path / "a")[0] == 0
    code, out, _ = publish(tmp_path / "b", "--note", "More cases.", version="1.1.0")
    assert code == 0
    repo = hub.repos["acme/forget"]
    assert sorted(repo.tags) == ["v1.0.0", "v1.1.0"]
    table = repo.files["RELEASES.md"].decode()
    assert table.index("| 1.1.0 |") < table.index("| 1.0.0 |")
    assert (
        "## 1.1.0\n\n- More cases.\n- `en` has other rows than in 1.0.0: 10, before 5.\n"
        "- `handmade` has the rows of 1.0.0.\n" in table
    )
    assert re.search(rf"same +[\d,]+ B  {SHARD}", out)
    for version, rows in (("v1.0.0", 5), ("v1.1.0", 10)):
        assert json.loads(repo.commits[repo.tags[version]]["manifest.json"])["configs"]["en"]["rows"] == rows


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("POST .*/preupload/", status=500, times=99), "no luck"),
        (Fault("POST .*/objects/batch", status=503, times=99), "no luck"),
        (Fault("PUT /lfs/", drop="before", times=99), "committing to acme/forget"),
        (Fault("POST .*/commit/", status=500, times=1), "no luck"),
        (Fault("POST .*/commit/", status=403, times=1), "the token has no right to do that (403)"),
        (Fault("POST .*/commit/", status=401, times=1), "the Hub does not know who you are (401)"),
        (Fault("POST .*/commit/", drop="before", times=1), "committing to acme/forget"),
    ],
    ids=lambda value: value.pattern + (value.drop or str(value.status)) if isinstance(value, Fault) else "",
)
def test_a_failure_before_the_commit_leaves_the_old_main_and_no_tag(
    hub: Hub, publish: Command, handmade_folder: Path, there: Repo, fault: Fault, reason: str
) -> None:
    old = there.head
    hub.faults.append(fault)
    code, _, err = publish(handmade_folder)
    assert code == (2 if fault.status in (401, 403) else 1)
    assert reason in err
    assert err.endswith("\n    Nothing of acme/forget was changed.\n")
    assert (there.head, there.tags) == (old, {})
    assert not (handmade_folder / "RELEASES.md").exists()
    hub.faults.clear()
    assert publish(handmade_folder)[0] == 0
    assert there.tags == {"v1.0.0": there.head}


def test_a_conflict_leaves_what_the_other_committed(
    hub: Hub, publish: Command, handmade_folder: Path, there: Repo
) -> None:
    theirs = {**there.files, "NOTES.md": b"Mine as well\n"}
    hub.faults.append(Fault("POST .*/commit/", before=lambda: there.commit(theirs) and None))
    code, _, err = publish(handmade_folder)
    assert code == 1
    assert "somebody else changed the repository in the meantime (412)" in err
    assert (there.files, there.tags) == (theirs, {})
    assert publish(handmade_folder)[0] == 0
    assert there.files["NOTES.md"] == b"Mine as well\n"


def test_a_commit_whose_answer_was_lost_is_found_and_tagged(
    hub: Hub, publish: Command, handmade_folder: Path, there: Repo
) -> None:
    hub.faults.append(Fault("POST .*/commit/", drop="after"))
    assert publish(handmade_folder)[0] == 0
    assert (commits(hub), there.tags) == (1, {"v1.0.0": there.head})


def test_where_nobody_can_tell_it_is_said_and_a_rerun_tags_without_a_second_commit(
    hub: Hub, publish: Command, handmade_folder: Path, there: Repo
) -> None:
    def silence() -> None:
        hub.faults.append(Fault("GET /api/datasets/acme/forget$", status=500, times=4))

    hub.faults.append(Fault("POST .*/commit/", drop="after", before=silence))
    code, _, err = publish(handmade_folder)
    assert code == 1
    assert "Whether the commit arrived cannot be told" in err
    assert there.tags == {}
    code, out, _ = publish(handmade_folder)
    assert (code, commits(hub), there.tags) == (0, 1, {"v1.0.0": there.head})
    assert "the files are on main already" in out


@pytest.mark.parametrize(
    "fault",
    [
        Fault(f"GET .*/resolve/.*{SHARD}", status=500, times=99),
        Fault(f"GET .*/resolve/.*{SHARD}", cut=100, times=99),
        Fault("POST .*/tag/", status=500, times=1),
        Fault("POST .*/tag/", status=403, times=1),
        Fault("POST .*/tag/", drop="before", times=1),
    ],
    ids=["500", "cut", "tag 500", "tag 403", "tag hang-up"],
)
def test_a_failure_after_the_commit_leaves_no_tag_and_a_rerun_needs_no_second_commit(
    hub: Hub, publish: Command, handmade_folder: Path, there: Repo, fault: Fault
) -> None:
    old = there.head
    hub.faults.append(fault)
    code, _, err = publish(handmade_folder)
    assert code == (2 if fault.status == 403 else 1)
    assert err.endswith(
        f"\n    main of acme/forget is at {there.head[:12]} with the new files, and v1.0.0 is not tagged. {AGAIN}\n"
    )
    assert (there.head != old, there.tags) == (True, {})
    hub.faults.clear()
    assert publish(handmade_folder)[0] == 0
    assert (commits(hub), there.tags) == (1, {"v1.0.0": there.head})


def test_an_attempt_without_a_tag_does_not_use_up_its_version(
    hub: Hub, publish: Command, tmp_path: Path, there: Repo
) -> None:
    build_forgeteval(tmp_path / "a", n_per_family=1)
    build_forgeteval(tmp_path / "b", n_per_family=2)
    hub.faults.append(Fault("POST .*/tag/", status=500))
    assert publish(tmp_path / "a")[0] == 1
    assert publish(tmp_path / "b")[0] == 0
    assert there.tags == {"v1.0.0": there.head}
    assert there.files["RELEASES.md"].count(b"| 1.0.0 |") == 1
    assert json.loads(there.files["manifest.json"])["configs"]["en"]["rows"] == 10


def test_rows_that_come_back_as_others_are_not_tagged(
    hub: Hub, publish: Command, handmade_folder: Path, tmp_path: Path, there: Repo
) -> None:
    pq.write_table(pq.read_table(handmade_folder / SHARD).slice(0, 14), tmp_path / "less.parquet")

    def lose_a_row() -> None:
        there.files[SHARD] = (tmp_path / "less.parquet").read_bytes()

    hub.faults.append(Fault(f"HEAD .*/resolve/.*{SHARD}", before=lose_a_row))
    code, _, err = publish(handmade_folder)
    assert code == 1
    assert "the rows of handmade/test are not those that were built" in err
    assert "v1.0.0 is not tagged" in err
    assert there.tags == {}


def test_a_tag_whose_answer_was_lost_is_found(hub: Hub, publish: Command, handmade_folder: Path, there: Repo) -> None:
    hub.faults.append(Fault("POST .*/tag/", drop="after"))
    assert publish(handmade_folder)[0] == 0
    assert there.tags == {"v1.0.0": there.head}


def test_a_tag_of_other_content_is_refused(hub: Hub, publish: Command, handmade_folder: Path, there: Repo) -> None:
    there.tags["v1.0.0"] = old = there.head
    code, _, err = publish(handmade_folder)
    assert code == 2
    assert "has a tag v1.0.0" in err
    assert "Nothing was changed. A tag stays as it is: release under a new version." in err
    assert (there.head, commits(hub)) == (old, 0)


def test_a_version_that_stands_for_other_rows_is_refused(hub: Hub, publish: Command, tmp_path: Path) -> None:
    build_forgeteval(tmp_path / "a", n_per_family=1)
    build_forgeteval(tmp_path / "b", n_per_family=2)
    publish(tmp_path / "a")
    code, _, err = publish(tmp_path / "b")
    assert (code, commits(hub)) == (2, 1)
    assert "A version never changes: release under a new one." in err
    code, _, err = publish(tmp_path / "a", version="1.0.1")
    assert (code, commits(hub)) == (2, 1)
    assert "are forgeteval 1.0.0 already" in err


@pytest.mark.parametrize(
    "pattern",
    [
        "GET /api/datasets/acme/forget$",
        "GET .*/tree/",
        "GET .*/refs",
        "GET .*/resolve/.*/README.md",
        "POST .*/preupload/",
        "POST .*/objects/batch",
        "PUT /lfs/",
        "HEAD .*/resolve/",
        f"GET .*{SHARD}",
    ],
)
def test_a_server_that_answers_500_twice_is_asked_a_third_time(
    hub: Hub, publish: Command, handmade_folder: Path, there: Repo, pattern: str
) -> None:
    hub.faults.append(fault := Fault(pattern, status=500, times=2))
    assert publish(handmade_folder)[0] == 0
    assert fault.times == 0
    assert there.tags == {"v1.0.0": there.head}


def test_a_connection_cut_within_a_file_is_taken_up_where_it_broke(
    hub: Hub, publish: Command, handmade_folder: Path
) -> None:
    hub.faults.append(fault := Fault(f"GET .*/resolve/.*{SHARD}", cut=10_000))
    assert publish(handmade_folder)[0] == 0
    assert fault.times == 0
    assert sum(request.startswith("GET") and request.endswith(SHARD) for request in hub.requests) == 2


def test_foreign_keys_and_text_of_a_card_survive_every_release(hub: Hub, publish: Command, tmp_path: Path) -> None:
    existing = (
        "---\nlicense: other\npaperswithcode_id: null\nmaintainer: Jörg 张\ntags:\n- favourite\n---\n\n"
        "# 我的\n\nHand-written.\n"
    )
    repo = hub.create("acme/forget", {"README.md": existing.encode(), "figure.svg": b"<svg/>"})
    build_forgeteval(tmp_path / "a", n_per_family=1)
    build_forgeteval(tmp_path / "b", n_per_family=2)
    assert publish(tmp_path / "a")[0] == 0
    first = repo.files["README.md"].decode()
    assert publish(tmp_path / "b", version="2.0.0")[0] == 0
    second = repo.files["README.md"].decode()
    for text in (first, second):
        assert "paperswithcode_id: null\nmaintainer: Jörg 张\n" in text
        assert "\n- favourite\n" in text
        assert "\nlicense: mit\n" in text
        assert text.endswith(f"{card.END}\n\n# 我的\n\nHand-written.\n")
    assert card.counts(second)["en"] == {"test": 10}
    assert repo.files["figure.svg"] == b"<svg/>"


def test_a_card_that_cannot_be_read_is_not_overwritten(hub: Hub, publish: Command, handmade_folder: Path) -> None:
    repo = hub.create("acme/forget", {"README.md": b"---\na: [\n---\n"})
    code, _, err = publish(handmade_folder)
    assert (code, len(repo.commits)) == (2, 1)
    assert "the YAML of the existing card cannot be read" in err


def test_shards_of_before_go_with_the_commit(hub: Hub, publish: Command, handmade_folder: Path) -> None:
    old = "data/handmade/test-00000-of-00002.parquet"
    repo = hub.create("acme/forget", {old: b"old", "data/raw.csv": b"a,b\n"})
    code, out, _ = publish(handmade_folder)
    assert code == 0
    assert set(repo.files) == FILES | {"data/raw.csv"}
    assert re.search(rf"delete +{old}", out)


def test_a_renamed_repository_is_published_under_its_new_name(
    hub: Hub, publish: Command, handmade_folder: Path, there: Repo
) -> None:
    hub.renamed["acme/old"] = "acme/forget"
    code, out, _ = publish(handmade_folder, repo="acme/old")
    assert code == 0
    assert out.startswith("acme/old is called acme/forget now.\n")
    assert there.tags == {"v1.0.0": there.head}
    assert 'load_dataset("acme/forget"' in there.files["README.md"].decode()


def test_unicode_arrives_as_it_was(hub: Hub, publish: Command, forgeteval_built: Built, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(forgeteval_built[0], tmp_path / "数据 é"))
    assert publish(folder, "--note", "中文 ✓")[0] == 0
    files = hub.repos["acme/forget"].files
    shard = "data/zh/test-00000-of-00001.parquet"
    (tmp_path / "back.parquet").write_bytes(files[shard])
    rows = list(read_rows(tmp_path / "back.parquet", FORGETEVAL))
    assert content_hash(rows) == forgeteval_built[1]["configs"]["zh"]["content_hash"]
    assert not "".join(rows[0]["setup_facts"]).isascii()
    assert "- 中文 ✓\n" in files["RELEASES.md"].decode()


def test_private_and_gated_are_settings_of_the_repository(hub: Hub, publish: Command, handmade_folder: Path) -> None:
    assert publish(handmade_folder, "--private", "--gated")[0] == 0
    repo = hub.repos["acme/forget"]
    assert (repo.private, repo.gated) == (True, "auto")
    text = repo.files["README.md"].decode()
    assert card.is_gated(text)
    assert "what you intend to use them for" in text
    assert "\n## Access\n" in text
    order = [request.split("/")[-1] for request in hub.requests if request.startswith(("POST", "PUT"))]
    assert order.index("settings") < order.index("main")  # nobody gets the files before they are asked


def test_a_plan_says_which_files_are_the_same(hub: Hub, publish: Command, handmade_folder: Path) -> None:
    publish(handmade_folder)
    planned = plan.make(handmade_folder, "acme/forget", "1.0.0")
    assert {upload.state for upload in planned.uploads} == {State.SAME}
    assert (planned.diff, planned.deletions) == ("", [])
