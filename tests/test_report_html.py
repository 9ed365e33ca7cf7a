"""The report as files, from real runs: what the page holds, that texts are data in it, and its Markdown twin."""

import io
import json
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.build import build_forgeteval
from forget_eval import plots, seals
from forget_eval.cli import main
from forget_eval.report import frames, groups
from forget_eval.report.html import explorer
from forget_eval.report.html.embedded import embedded
from forget_eval.report.html.texts import Texts

TESTS = Path(__file__).parent
FORGETEVAL = ("null", "keep-all", "oracle", "reference", "hostile_memory:Hostile", "hostile_memory:Leaky")
MEMBEHAVE = ("null", "keep-all", "wipe-all", "oracle", "reference")
LONG = 1_000_000  # characters of the longest answer of `hostile_memory.Hostile`


class Page(HTMLParser):
    """Collects the elements of a page with their attributes, its text, and what its scripts hold."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._in = ""
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in = tag if tag in ("script", "style") else ""
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.scripts[-1] += data
        elif not self._in:
            self.text += f" {data}"

    @property
    def data(self) -> list[dict[str, Any]]:
        """What the failure explorers hold."""
        return [json.loads(script) for script in self.scripts[:-1]]


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def good(result: Result) -> Result:
    assert result.exit_code == 0, result.stderr
    return result


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the runs fe/… (10 cases a family) and mb/… (two triplets), and the report of both with pictures."""
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(TESTS), *sys.path])
        chosen = [argument for name in FORGETEVAL for argument in ("--adapter", name)]
        good(call("bench", "forgeteval", "--profile", "smoke", *chosen, "--out", root / "fe"))
        chosen = [argument for name in MEMBEHAVE for argument in ("--adapter", name)]
        good(call("bench", "membehave", "--triplets", 2, *chosen, "--out", root / "mb"))
        good(call("report", root / "fe", root / "mb", "--out", root / "report", "--png"))
        yield root


@pytest.fixture(scope="module")
def page(made: Path) -> Page:
    return Page(made / "report/index.html")


def texts_of(data: dict[str, Any]) -> list[str]:
    return [row if isinstance(row, str) else "".join(part for _, part in row["parts"]) for row in data["texts"]]


def records_of(data: dict[str, Any], system: str) -> list[dict[str, Any]]:
    number = data["systems"].index(system)
    return [record for record in data["records"] if record["system"] == number]


def test_the_page_asks_nobody_for_anything(page: Page) -> None:
    links = [v for _, a in page.elements for k, v in a.items() if k in ("src", "href", "action", "data", "xlink:href")]
    assert links
    assert all(link and link.startswith("#") for link in links)
    assert not re.search(r"url\((?!#)|@import", page.source)
    assert not [tag for tag, _ in page.elements if tag in ("link", "img", "iframe", "object", "base", "form")]
    [policy] = [a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert len(page.source.encode()) < 5_000_000


def test_nothing_on_the_page_needs_what_its_policy_refuses(page: Page) -> None:
    assert not [a for _, a in page.elements if "style" in a or any(name.startswith("on") for name in a)]
    assert sum(tag == "style" for tag, _ in page.elements) == 1
    assert sum(tag == "script" for tag, _ in page.elements) == 3  # two explorers' data, and the code


def test_every_link_leads_somewhere_and_no_id_comes_twice(page: Page) -> None:
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    targets = {a["href"] for _, a in page.elements if a.get("href")}
    assert {f"#{name}" for name in ids} >= targets


def test_the_headline_has_both_rates_with_intervals(page: Page) -> None:
    tables = re.findall(r"<tbody>(.*?)</tbody>", page.source, re.S)
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr[^>]*>(.*?)</tr>", tables[0], re.S)]
    # 50 cases, all or none of them passed: Wilson's interval ends at 1 / (1 + z²/50), z = 1.96, which is 92.9% and 7.1%
    assert ["oracle", "strict", "100", "93–100"] in [row[:4] for row in rows]
    assert ["null", "strict", "0", "0–7"] in [row[:4] for row in rows]
    assert ["keep-all", "strict", "0", "0–7"] in [row[:4] for row in rows]
    assert sum(row[0] == "spec" for row in rows) == len(FORGETEVAL)


def test_all_parts_are_there(page: Page) -> None:
    for part in ("summary", "templates", "reasons", "failures", "latency", "controls", "runs"):
        assert f'id="dataset1-{part}"' in page.source
    for part in ("summary", "levels", "reasons", "failures", "latency", "controls", "runs"):
        assert f'id="dataset2-{part}"' in page.source
    assert sum(a.get("class") == "plot" for _, a in page.elements) == 7
    labels = {a["aria-label"] for tag, a in page.elements if tag == "svg"}
    assert "" not in labels
    assert None not in labels
    for run in ("content hash", "minilm-int8", "embedder weights", "forget policy", "seeds", "CPython"):
        assert run in page.text


def test_the_controls_are_as_they_should_be(page: Page) -> None:
    told = page.source.split('id="dataset1-controls"')[1].split("</section>")[0]
    assert "ignores every mutation" in told
    assert told.count(">yes<") == 3
    assert ">NO<" not in told


def test_plots_hold_text_in_the_colours_of_the_page(page: Page) -> None:
    drawn = re.findall(r"<svg.*?</svg>", page.source, re.S)
    for svg in drawn:
        assert 'class="fill-ink"' in svg
        assert "<text" in svg
        assert not any(colour in svg.lower() for colour in (plots.INK, plots.MUTED, plots.PAPER, plots.ACCENT))


def test_a_case_of_the_explorer_says_what_happened(made: Path, page: Page) -> None:
    data = page.data[0]
    [record] = [r for r in records_of(data, "leaky") if data["cases"][r["case"]]["id"] == "purge__gdpr__001"]
    case, texts = data["cases"][record["case"]], texts_of(data)
    row = pd.read_parquet(made / "fe/data/data/en").set_index("id").loc["purge__gdpr__001"]
    assert [texts[i] for i in case["facts"]] == list(row["setup_facts"])
    assert [[op, *(texts[i] for i in words)] for op, words in case["mutations"]] == [
        ["purge", row["mutations"][0]["query"]]
    ]
    assert [kind for kind, *_ in case["asked"]] == ["final", *(probe["kind"] for probe in row["probes"])]
    final, *probes = record["answers"]
    assert [texts[i] for i in final[2]] == list(row["setup_facts"])
    assert final[:2] == [0, ["stale"]]
    assert record["reasons"] == ["stale", "leak"]
    leaks = [i for i, probe in enumerate(row["probes"], 1) if probe["kind"] == "leak"]
    assert [number for number, wrong, _ in probes if wrong] == [*leaks, *leaks]  # and when asked again
    assert [texts[i] for i in case["asked"][0][3]] == list(row["must_not_contain"])
    assert record["operations"][0][:2] == ["purge", "ok"]
    assert texts[record["operations"][0][2]] == "3"


def test_only_what_failed_is_in_the_explorer(page: Page) -> None:
    data = page.data[0]
    assert not records_of(data, "oracle")
    assert {data["systems"][i] for i in data["controls"]} == {"null", "keep-all", "oracle"}
    assert len(records_of(data, "null")) == len(records_of(data, "keep-all")) == 50
    broken = [record for record in records_of(data, "<i>hostile</i> $_{") if record["status"] == "error"]
    assert {data["cases"][record["case"]]["family"] for record in broken} == {"decay", "amnesia"}
    assert all(record["reasons"] == ["error"] for record in broken)
    assert "<script>document.title" in texts_of(data)[broken[0]["error"][0]]


def test_hostile_texts_are_stored_as_they_are_and_stand_escaped(page: Page) -> None:
    held = texts_of(page.data[0])
    assert "</script><script>document.title = 'taken'</script>" in held
    assert "\u202eelttil eht fo thgir\u2066" in held
    assert "a\u2028b\u2029c\x00d\x1b[31me" in held
    assert "lone \ud800 surrogate &lt;b&gt; &amp; $x_{$" in held
    for script in page.scripts[:-1]:
        assert not re.search("[<>&\u2028\u2029\u202a-\u202e\u2066-\u2069\x00]", script)
    assert "\\u003c/script\\u003e" in page.scripts[0]
    assert "\u202e" not in page.source
    assert "&lt;i&gt;hostile&lt;/i&gt;" in page.source
    assert "<i>hostile" not in page.source


def test_a_long_answer_is_stored_cut_around_what_was_forbidden(page: Page) -> None:
    data = page.data[0]
    long = {i: row for i, row in enumerate(data["texts"]) if isinstance(row, dict)}
    assert long
    assert all(row["length"] > LONG for row in long.values())
    assert all(len(part) <= 2000 for row in long.values() for _, part in row["parts"])
    for record in records_of(data, "<i>hostile</i> $_{"):
        for number, wrong, recalled in record.get("answers", []):
            forbidden = [texts_of(data)[i].lower() for i in data["cases"][record["case"]]["asked"][number][3]]
            for i in set(recalled) & set(long) if "stale" in wrong else ():
                assert any(word in texts_of(data)[i].lower() for word in forbidden)


def test_items_of_membehave_say_what_leaked_and_what_was_lost(page: Page) -> None:
    data = page.data[1]
    assert not records_of(data, "oracle")
    kept, wiped = records_of(data, "keep-all"), records_of(data, "wipe-all")
    assert [record["reasons"] for record in kept] == [["leak"]] * 6
    assert [record["reasons"] for record in wiped] == [["collateral"]] * 6
    item, texts = data["cases"][kept[0]["case"]], texts_of(data)
    [(number, wrong, before, after, was, now)] = [answer for answer in kept[0]["answers"] if answer[1]]
    assert item["asked"][number][0] == "target"
    assert wrong == ["leak"]
    assert (before, was) == (after, now)
    assert set(now) == {texts[i] for i in item["asked"][number][2]}
    assert any(name in texts[i] for name in now for i in after if i >= 0)


def test_the_markdown_twin_has_the_same_numbers(made: Path) -> None:
    twin = (made / "report/report.md").read_text(encoding="utf-8")
    assert "| oracle | strict | 100 [93–100] |" in twin
    assert "| null | strict | 0 [0–7] |" in twin
    assert "| keep-all | ignores every mutation | 0 | 0 [0–7] | yes |" in twin
    assert "&lt;i>hostile&lt;/i> $\\_{" in twin
    assert "<i>" not in twin
    assert [line for line in twin.splitlines() if line.startswith("## ")] == [
        "## ForgetEval, config en · 50 cases · 10 a family · 4 distractors · seed 42 · k = 10",
        "## MemBehave: Forgetting, config default · 6 items · seed 42",
    ]
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", twin)
    assert len(pictures) == 7
    for picture in pictures:
        assert (made / "report" / picture).read_bytes().startswith(b"\x89PNG")


def test_the_same_runs_give_the_same_bytes(
    made: Path, tmp_path: Path, tree: Callable[[Path], dict[str, bytes]]
) -> None:
    again = good(call("report", made / "fe", made / "mb", "--out", tmp_path / "again", "--png"))
    assert again.stdout == f"{tmp_path / 'again/index.html'}\n"
    assert tree(tmp_path / "again") == tree(made / "report")


def test_without_the_dataset_the_rest_is_there_and_data_names_it(made: Path, tmp_path: Path) -> None:
    away = made / "fe/away"
    (made / "fe/data").rename(away)
    try:
        good(call("report", made / "fe/null", "--out", tmp_path / "a"))
        good(call("report", made / "fe/null", "--out", tmp_path / "b", "--data", away))
    finally:
        away.rename(made / "fe/data")
    without, named = Page(tmp_path / "a/index.html"), Page(tmp_path / "b/index.html")
    assert "there is no folder" in without.text
    assert "Name their dataset with --data" in without.text
    assert len(without.scripts) == 1
    assert len(named.data[0]["records"]) == 50


@pytest.mark.parametrize("run", ["fe/null", "fe/oracle", "mb/null", "mb/reference"])
def test_one_run_alone_has_a_report(made: Path, tmp_path: Path, run: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a plot that does not fit
        good(call("report", made / run, "--out", tmp_path))
    data = Page(tmp_path / "index.html").data[0]
    assert data["systems"] == [run[3:]]
    assert bool(data["records"]) is (run in ("fe/null", "mb/reference"))


@pytest.mark.parametrize("task", ["fe", "mb"])
def test_runs_in_folders_of_one_name_are_told_apart(made: Path, tmp_path: Path, task: str) -> None:
    """As of one system with two embedders. Whoever verifies makes the report anew from copies in other folders."""
    folders = [Path(shutil.copytree(made / task / "reference", tmp_path / name / "reference")) for name in "xy"]
    labels = []
    for folder, embedder in zip(folders, ("one", "another"), strict=True):
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["dataset"]["path"] = str(made / task / "data")
        manifest["embedder"] = {"name": embedder}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        seals.write(folder)
        labels.append(f"reference {sha256((folder / 'manifest.json').read_bytes()).hexdigest()[:8]}")
    [group] = groups.load(folders)
    assert [result.label for result in group.results] == labels
    assert set(frames.latency(group)["system"]) == set(labels)
    good(call("report", *folders, "--out", tmp_path / "report"))
    assert Page(tmp_path / "report/index.html").data[0]["systems"] == labels
    good(call("verify", *folders, "--report", tmp_path / "report"))


def test_a_dataset_of_no_run_is_refused(made: Path, tmp_path: Path) -> None:
    build_forgeteval(tmp_path / "other", (), seed=1)
    refused = call("report", made / "fe/null", "--out", tmp_path / "r", "--data", tmp_path / "other")
    assert refused.exit_code == 2
    assert "no run of this report was made on that dataset" in refused.stderr
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--json", "--out", "r"], "choose one of"),
        (["--csv", "--markdown"], "choose one of"),
        (["--png"], "--png goes with --out"),
        (["--data", "d"], "--data goes with --out"),
    ],
)
def test_options_that_exclude_each_other(made: Path, flags: list[str], message: str) -> None:
    refused = call("report", made / "fe/null", *flags)
    assert refused.exit_code == 2
    assert message in refused.stderr


def test_an_output_that_is_a_file(made: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    refused = call("report", made / "fe/null", "--out", tmp_path / "taken")
    assert refused.exit_code == 2
    assert "is a file" in refused.stderr
    assert (tmp_path / "taken").read_text() == "mine"


def test_the_rates_as_csv(made: Path) -> None:
    table = pd.read_csv(io.StringIO(good(call("report", made / "fe", made / "mb", "--csv")).stdout))
    assert list(table) == [
        *("task", "config", "system", "control", "metric", "place", "value", "low", "high", "n", "dataset")
    ]
    [oracle] = table.query("system == 'oracle' and metric == 'strict' and place == 'overall'").to_dict("records")
    assert (oracle["task"], oracle["config"], oracle["value"], oracle["n"]) == ("forgeteval", "en", 1.0, 50)
    assert oracle["control"]
    [kept] = table.query("system == 'keep-all' and metric == 'attributed_coverage' and place == 'all'").to_dict(
        "records"
    )
    assert (kept["task"], kept["value"], kept["n"]) == ("membehave", 1.0, 6)


def test_what_does_not_fit_is_left_out_and_counted(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [group] = groups.load([made / "fe/keep-all", made / "fe/hostile_memory.Leaky"])
    from forget_eval.report.html.source import Sources

    dataset, _ = Sources().of(group)
    assert dataset is not None
    whole = json.loads(explorer.data(group, dataset))
    monkeypatch.setattr(explorer, "BUDGET", 60_000)
    text = explorer.data(group, dataset)
    short = json.loads(text)
    assert len(text.encode()) <= 60_000
    assert short["leftOut"] + len(short["records"]) == len(whole["records"])
    assert short["records"] == whole["records"][: len(short["records"])]
    last = short["records"][-1]
    case = short["cases"][last["case"]]
    assert [short["texts"][i] for i in case["facts"]] == [whole["texts"][i] for i in case["facts"]]


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_survives_being_embedded(text: str) -> None:
    written = embedded({"text": text})
    assert json.loads(written) == {"text": text}
    assert not re.search("[<>&\u2028\u2029\u202a-\u202e\u2066-\u2069]", written)
    written.encode("utf-8")


def test_a_text_is_stored_once_and_cut_around_the_first_mark() -> None:
    texts = Texts(limit=100)
    assert [texts.add("short"), texts.add("other"), texts.add("short")] == [0, 1, 0]
    long = "a" * 500 + "NEEDLE" + "b" * 500
    stored = texts.rows[texts.add(long, ["absent", "needle"])]
    assert isinstance(stored, dict)
    assert stored["length"] == 1006
    (first, head), (second, window) = stored["parts"]
    assert (first, head) == (0, "a" * 50)
    assert (second, window) == (475, "a" * 25 + "NEEDLE" + "b" * 19)
    plain = texts.rows[texts.add("c" * 101)]
    assert plain == {"length": 101, "parts": [(0, "c" * 50)]}
