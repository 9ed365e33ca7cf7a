"""Residue: whether purged text lies in a store's files, seen from outside, on SQLite whose pages are known."""

import gzip
import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval import adapters, residue_notes
from forget_eval.cli import main
from forget_eval.isolation.selection import Isolation
from forget_eval.residue import Answer, Store, measure, sought, text, word
from forget_eval.residue_files import search

MODULE = '''
import shutil, sqlite3, tempfile, zlib
from pathlib import Path

class Sqlite:
    """One table in one file. SQLite leaves a deleted row in its page, or overwrites it, as its pragma says."""
    secure, journal, encoding = "off", "delete", "UTF-8"
    def __init__(self, on_disk=False):
        self._folder = tempfile.mkdtemp(prefix="residue-test-") if on_disk else None
        place = f"{self._folder}/facts.db" if on_disk else ":memory:"
        self._facts = sqlite3.connect(place, isolation_level=None)
        self._facts.execute(f"pragma encoding = '{self.encoding}'")  # of a database that is empty yet
        self._facts.execute(f"pragma secure_delete = {self.secure}")
        self._facts.execute(f"pragma journal_mode = {self.journal}")
        self._facts.execute("create table facts (text)")
    def reset(self): self._facts.execute("delete from facts")
    def inscribe(self, text): return self._facts.execute("insert into facts values (?)", [self.packed(text)]).lastrowid
    def recall_texts(self, query, k=5): return [row[0] for row in self._facts.execute("select text from facts")][:k]
    def purge(self, query): return self._facts.execute("delete from facts where instr(text, ?)", [query]).rowcount
    def stored_in(self): return self._folder
    def packed(self, text): return text
    def close(self):
        self._facts.close()
        if self._folder: shutil.rmtree(self._folder)

class Kept(Sqlite):
    def maintain(self):
        self._facts.execute("vacuum")
        return "VACUUM"

class Overwritten(Sqlite):
    secure = "on"

class Logged(Overwritten):
    """The rows are overwritten in the pages, but not the older pages in the write-ahead log."""
    journal = "wal"
    def maintain(self):
        self._facts.execute("vacuum")
        self._facts.execute("pragma wal_checkpoint(truncate)")
        return "VACUUM"

class Wide(Kept):
    encoding = "UTF-16be"
    def __init__(self, on_disk=False):
        super().__init__(on_disk)
        assert self._facts.execute("pragma encoding").fetchone() == ("UTF-16be",)

class Archiving(Overwritten):
    """A copy that nobody can read as it is."""
    def purge(self, query):
        Path(self._folder, "old.zst").write_bytes(bytes.fromhex("28b52ffd") + query[::-1].encode())
        return super().purge(query)

class Compressed(Overwritten):
    def packed(self, text): return zlib.compress(text.encode())
    def purge(self, query): return 0

class Unpurged(Sqlite):
    purge = None

class Unwilling(Sqlite):
    def purge(self, query): raise NotImplementedError

class Remote(Sqlite):
    def stored_in(self): raise NotImplementedError("its files are elsewhere")

class Untidy(Sqlite):
    def maintain(self): raise NotImplementedError

class Secretive(Sqlite):
    configuration = {"env": {"TOKEN": "s3cr3t-of-mine"}, "url": "http://me:s3cr3t-of-mine@localhost/"}

class Silent:
    def reset(self): self._facts = []
    def inscribe(self, text): self._facts.append(text)
    def recall_texts(self, query, k=5): return []
    def purge(self, query): return 0

class Broken(Sqlite):
    def purge(self, query): raise sqlite3.OperationalError("database or disk is full")

class Full(Sqlite):
    def purge(self, query):
        from forget_datasets.errors import EnvironmentFault
        raise EnvironmentFault("no room for the database")

class Elsewhere(Sqlite):
    def stored_in(self): return "/nowhere/at/all"
'''
HOSTED = {"zep"}  # whose disks nobody here sees
STORES = {name for name in adapters.BUILT_IN if not hasattr(adapters.find(name), "_tell")} - HOSTED
WORDS = ["qwrtpsdfgh", "zxcvbnmkjh"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with the module `stores_with_residue`."""
    (tmp_path / "stores_with_residue.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("stores_with_residue", None)


def looked(name: str, isolate: bool = False) -> Any:
    return measure(f"stores_with_residue:{name}", None, Isolation(isolate))


@pytest.mark.parametrize("isolate", [False, True])
def test_a_deleted_row_stays_in_its_page_until_the_file_is_written_anew(here: Path, isolate: bool) -> None:
    found = looked("Kept", isolate)
    assert found.store is Store.DISK_HERE
    assert (found.before.answer, found.before.found, found.before.files) == (Answer.YES, 3, ("facts.db",))
    assert found.maintenance == "VACUUM"
    assert found.after is not None
    assert (found.after.answer, found.after.found, found.after.files) == (Answer.NO, 0, ())


@pytest.mark.parametrize("isolate", [False, True])
def test_maintenance_that_is_not_implemented_is_none(here: Path, isolate: bool) -> None:
    found = looked("Untidy", isolate)
    assert (found.before.answer, found.maintenance, found.after) == (Answer.YES, "", None)


def test_a_row_that_is_overwritten_leaves_nothing(here: Path) -> None:
    found = looked("Overwritten")
    assert found.before.answer is Answer.NO
    assert (found.maintenance, found.after) == ("", None)


def test_a_write_ahead_log_has_the_row_though_its_page_has_not(here: Path) -> None:
    found = looked("Logged")
    assert (found.before.answer, found.before.files) == (Answer.YES, ("facts.db-wal",))
    assert found.after.answer is Answer.NO


def test_what_is_kept_in_utf_16_is_seen(here: Path) -> None:
    found = looked("Wide")
    assert (found.before.answer, found.after.answer) == (Answer.YES, Answer.NO)


def test_where_stored_text_cannot_be_seen_nothing_follows_of_its_absence(here: Path) -> None:
    found = looked("Compressed")
    assert found.before.answer is Answer.UNKNOWN
    assert found.before.why == "what is stored does not lie in its files in plain bytes"


def test_a_compressed_file_beside_the_store_might_hold_it(here: Path) -> None:
    found = looked("Archiving")
    assert found.before.answer is Answer.UNKNOWN
    assert found.before.why == "not in plain bytes: old.zst (zstd)"


@pytest.mark.parametrize("name", ["reference", "null"])
def test_ours(name: str) -> None:
    if name == "null":
        with pytest.raises(UserError, match="'null' is a control: it stores nothing"):
            measure(name, None)
        return
    found = measure(name, lambda texts: [[1.0, 0.0]] * len(texts))  # type: ignore[arg-type]
    assert (found.store, found.before.answer, found.before.why) == (Store.MEMORY, Answer.UNKNOWN, "in memory")


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("name", ["Silent", "Remote"])
def test_one_that_does_not_say_where_its_store_is(here: Path, name: str, isolate: bool) -> None:
    found = looked(name, isolate)
    assert (found.store, found.before.answer, found.before.why) == (Store.UNSTATED, Answer.UNKNOWN, "not stated")


@pytest.mark.parametrize("name", ["Unpurged", "Unwilling"])
def test_one_that_cannot_purge(here: Path, name: str) -> None:
    found = looked(name)
    assert (found.before.answer, found.before.why) == (Answer.UNKNOWN, "it cannot purge")
    assert found.purged == 0


@pytest.mark.parametrize("isolate", [False, True])
def test_one_that_fails_is_named_with_what_it_said(here: Path, isolate: bool) -> None:
    with pytest.raises(UserError, match=r"adapter 'stores_with_residue:Broken' fails .*disk is full"):
        looked("Broken", isolate)


@pytest.mark.parametrize("isolate", [False, True])
def test_the_machines_fault_is_one_wherever_the_adapter_runs(here: Path, isolate: bool) -> None:
    with pytest.raises(EnvironmentFault, match=r"^no room for the database$"):
        looked("Full", isolate)


def test_a_folder_that_is_not_there_is_named(here: Path) -> None:
    with pytest.raises(UserError, match="/nowhere/at/all: there is no such folder"):
        looked("Elsewhere")


def test_each_fact_has_a_word_of_its_own() -> None:
    facts = [text(number) for number in range(40)]
    for number in range(40):
        assert [fact for fact in facts if sought(number) in fact] == [facts[number]]
        assert word(number) in facts[number]
        assert not set(word(number)) & set("aeiouy")


def test_words_are_found_in_all_encodings_and_across_blocks(tmp_path: Path) -> None:
    near = (1 << 22) - 5  # the word begins in one block and ends in the next
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.bin").write_bytes(b"." * near + WORDS[0].upper().encode())
    (tmp_path / "b.txt").write_bytes(b"\xff" + WORDS[1].encode("utf-16-le"))
    (tmp_path / "c.txt").write_bytes(WORDS[1].encode("utf-16-be"))
    (tmp_path / "none").write_bytes(WORDS[0][:-1].encode())
    (tmp_path / "empty").touch()
    found = search(tmp_path, WORDS)
    assert found.places == {WORDS[0]: ("deep/a.bin",), WORDS[1]: ("b.txt", "c.txt")}
    assert found.opaque == ()


def test_the_rows_of_parquet_are_read_whatever_compresses_them(tmp_path: Path) -> None:
    texts = [f"{WORDS[0].upper()} is here.", *(f"Row {n} is like the others." for n in range(500))]
    rows = pyarrow.table({"text": texts, "vector": [[0.5, n] for n in range(501)]})
    parquet.write_table(rows, tmp_path / "a", compression="zstd")
    assert (tmp_path / "a").read_bytes().startswith(b"PAR1")
    (tmp_path / "torn").write_bytes((tmp_path / "a").read_bytes()[:-9])
    found = search(tmp_path, WORDS)
    assert found.places == {WORDS[0]: ("a",)}
    assert found.opaque == ("torn (parquet)",)


def test_links_are_not_followed_and_compressed_files_are_named(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text(WORDS[0])
    store = tmp_path / "store"
    store.mkdir()
    (store / "link").symlink_to(outside)
    (store / "log.gz").write_bytes(gzip.compress(WORDS[0].encode()))
    found = search(store, WORDS)
    assert found.places == {}
    assert found.opaque == ("log.gz (gzip)",)


@pytest.mark.parametrize("name", sorted(STORES))
def test_every_store_of_ours_says_where_it_lies(name: str) -> None:
    assert callable(getattr(adapters.find(name), "stored_in", None))


def test_the_command_prints_each_format(here: Path) -> None:
    wanted = ["residue", "--adapter", "stores_with_residue:Kept"]
    assert "yes (in facts.db)" in invoke(*wanted)
    [row] = json.loads(invoke(*wanted, "--json"))
    assert (row["store"], row["before"]["answer"], row["after"]["answer"]) == ("on disk, here alone", "yes", "no")
    table = invoke(*wanted, "--markdown", "--adapter", "stores_with_residue:Overwritten").splitlines()
    assert table[2:] == [
        "| stores\\_with\\_residue:Kept | on disk, here alone | yes (in facts.db) | no: VACUUM |",
        "| stores\\_with\\_residue:Overwritten | on disk, here alone | no | none offered |",
    ]


def test_a_run_keeps_the_answer_and_a_report_shows_it(here: Path) -> None:
    invoke("bench", "forgeteval", "--adapter", "stores_with_residue:Kept", "--out", "run")
    assert "residue after" not in invoke("report", "run")
    rates = json.loads(Path("run/summary.json").read_text())
    invoke("residue", "--adapter", "stores_with_residue:Kept", "--run", "run")
    line = "residue after a purge: yes (in facts.db); after maintenance (VACUUM): no. Store: on disk, here alone."
    assert line in " ".join(invoke("report", "run").split())
    assert line in invoke("report", "run", "--markdown")
    assert json.loads(Path("run/summary.json").read_text()) == rates
    invoke("verify", "run")


def test_secrets_of_a_configuration_are_neither_kept_nor_printed(here: Path) -> None:
    invoke("bench", "forgeteval", "--adapter", "stores_with_residue:Secretive", "--out", "run")
    printed = invoke("residue", "--adapter", "stores_with_residue:Secretive", "--run", "run", "--json")
    hidden = {"env": {"TOKEN": "[redacted]"}, "url": "http://[redacted]@localhost/"}
    for found in (*json.loads(printed), json.loads(Path("run", residue_notes.FILE).read_text())):
        assert found["adapter"]["configuration"] == hidden


def test_one_that_fails_leaves_the_answers_of_the_others(here: Path) -> None:
    names = [f"stores_with_residue:{name}" for name in ("Kept", "Broken", "Overwritten")]
    arguments = ["residue", "--json", *(part for name in names for part in ("--adapter", name))]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 1
    assert "database or disk is full" in done.stderr
    assert "'stores_with_residue:Broken' is left out" in done.stderr
    assert [row["adapter"]["name"] for row in json.loads(done.stdout)] == [names[0], names[2]]


def test_a_folder_that_is_no_run_is_refused_before_anything_is_measured(here: Path) -> None:
    assert "nowhere" in refused("residue", "--adapter", "stores_with_residue:Broken", "--run", "nowhere")


def test_a_run_of_another_system_is_refused(here: Path) -> None:
    invoke("bench", "forgeteval", "--adapter", "stores_with_residue:Kept", "--out", "run")
    said = refused("residue", "--adapter", "stores_with_residue:Overwritten", "--run", "run")
    assert said == "run is a run of stores_with_residue:Kept, not of stores_with_residue:Overwritten."
    assert not Path("run", residue_notes.FILE).exists()


def test_what_was_found_of_another_system_is_not_shown(here: Path) -> None:
    invoke("bench", "forgeteval", "--adapter", "stores_with_residue:Kept", "--out", "run")
    invoke("residue", "--adapter", "stores_with_residue:Kept", "--run", "run")
    kept = Path("run", residue_notes.FILE).read_text()
    invoke("bench", "forgeteval", "--adapter", "stores_with_residue:Overwritten", "--out", "run", "--force")
    assert not Path("run", residue_notes.FILE).exists()
    Path("run", residue_notes.FILE).write_text(kept)
    assert "of stores_with_residue:Kept, of which residue.json speaks" in refused("report", "run")


def test_an_answer_that_somebody_broke_is_named(here: Path) -> None:
    invoke("bench", "forgeteval", "--adapter", "stores_with_residue:Kept", "--out", "run")
    Path("run", residue_notes.FILE).write_text('{"schema_version": 1}')
    assert "residue.json: field 'adapter' is missing" in refused("report", "run")


def test_options_that_exclude_each_other(here: Path) -> None:
    both = ["--adapter", "reference", "--adapter", "null"]
    assert refused("residue", *both, "--run", "run") == "--run goes with one --adapter."
    assert refused("residue", "--adapter", "null", "--json", "--markdown") == "choose one of --markdown and --json."


def test_sqlite_is_as_these_tests_take_it(tmp_path: Path) -> None:
    """Whatever an SQLite was built with, the pragma decides."""
    for secure, there in (("off", True), ("on", False)):
        path = tmp_path / f"{secure}.db"
        with sqlite3.connect(path, isolation_level=None) as facts:
            facts.execute(f"pragma secure_delete = {secure}")
            facts.execute("create table facts (text)")
            facts.executemany("insert into facts values (?)", [("kept",), ("zebra4711",), ("kept too",)])
            facts.execute("delete from facts where text = 'zebra4711'")
        assert (b"zebra4711" in path.read_bytes()) is there


def invoke(*arguments: str) -> str:
    done = CliRunner().invoke(main, arguments, catch_exceptions=False, standalone_mode=False)
    return done.stdout


def refused(*arguments: str) -> str:
    with pytest.raises(UserError) as raised:
        CliRunner().invoke(main, arguments, catch_exceptions=False, standalone_mode=False)
    return str(raised.value)
