"""The report's page in a real browser: nothing is asked for, nothing hostile comes alive, everything can be reached."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from forget_eval.cli import main

TESTS = Path(__file__).parent
INSTALL = "Install Chromium and its driver: apt-get install -y chromium chromium-driver"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOSTILE = "<i>hostile</i> $_{"
COUNT = "return document.querySelectorAll('script, img, iframe, link, style, b, i').length"
HANDLERS = """
const names = [...document.querySelectorAll("*")].flatMap((element) => element.getAttributeNames());
return names.filter((name) => name.startsWith("on"));
"""
Browser = webdriver.Chrome


def call(*arguments: object) -> None:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page over real runs: 10 cases a family, and two triplets."""
    root = tmp_path_factory.mktemp("browsed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(TESTS), *sys.path])
        names = ("null", "keep-all", "oracle", "reference", "hostile_memory:Hostile", "hostile_memory:Leaky")
        chosen = [argument for name in names for argument in ("--adapter", name)]
        call("bench", "forgeteval", "--profile", "smoke", *chosen, "--out", root / "fe")
        chosen = [argument for name in ("keep-all", "wipe-all", "oracle") for argument in ("--adapter", name)]
        call("bench", "membehave", "--triplets", 2, *chosen, "--out", root / "mb")
        call("report", root / "fe", root / "mb", "--out", root / "report")
    return (root / "report/index.html").as_uri()


@pytest.fixture(scope="module")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.fail(f"{'chromium' if chromium is None else 'chromedriver'} is not installed. {INSTALL}")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}", "--window-size=1200,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    yield browser
    browser.quit()


@pytest.fixture
def browser(_browser: Browser, page: str) -> Browser:
    """A browser that has just opened the page, in its usual size and in light colours; its logs begin here."""
    _browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    set_colours(_browser, "light")
    _browser.get("about:blank")
    for kind in ("browser", "performance"):
        _browser.get_log(kind)
    _browser.get(page)
    return _browser


def set_colours(browser: Browser, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def requested(browser: Browser) -> list[str]:
    """The addresses that the browser has asked for since its logs began."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


def explorer(browser: Browser, dataset: int = 1) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, f"#dataset{dataset} .explorer")


def field(browser: Browser, name: str, dataset: int = 1) -> WebElement:
    """The field with a label that begins so."""
    labels = explorer(browser, dataset).find_elements(By.TAG_NAME, "label")
    [label] = [found for found in labels if found.text.startswith(name)]
    return label.find_element(By.CSS_SELECTOR, "input, select")


def choose(browser: Browser, name: str, value: str, dataset: int = 1) -> None:
    Select(field(browser, name, dataset)).select_by_value(value)


def count(browser: Browser, dataset: int = 1) -> str:
    """The line that says what the list holds."""
    return explorer(browser, dataset).find_element(By.CLASS_NAME, "count").text


def numbers(browser: Browser, dataset: int = 1) -> tuple[int, int]:
    """How many failures the list holds, and of how many."""
    shown, everything = re.match(r"(\d+) of (\d+) failures", count(browser, dataset)).groups()  # type: ignore[union-attr]
    return int(shown), int(everything)


def rows(browser: Browser, dataset: int = 1) -> list[WebElement]:
    return explorer(browser, dataset).find_elements(By.CLASS_NAME, "failure")


def systems(browser: Browser) -> set[str]:
    """Of whom failures are listed, once all of them are shown."""
    while (more := explorer(browser).find_element(By.CLASS_NAME, "more")).is_displayed():
        more.click()
    return {found.text for found in explorer(browser).find_elements(By.CSS_SELECTOR, ".failure > summary > bdi")}


def opened(row: WebElement) -> WebElement:
    row.find_element(By.TAG_NAME, "summary").click()
    return WebDriverWait(row, 10).until(lambda inside: inside.find_element(By.CLASS_NAME, "body"))


def test_it_loads_without_errors_and_requests(browser: Browser, page: str) -> None:
    assert requested(browser) == [page]
    assert browser.get_log("browser") == []
    shown, everything = numbers(browser)
    assert shown >= 50  # leaky fails all of 50 cases
    assert everything == shown + 100  # so do null and keep-all, which are controls; the oracle fails none
    assert len(rows(browser)) == 50


def test_controls_are_left_out_until_they_are_asked_for(browser: Browser) -> None:
    found, everything = numbers(browser)
    assert count(browser) == f"{found} of {everything} failures, controls left out."
    choices = [option.text for option in Select(field(browser, "system")).options]
    assert choices[:2] == ["all but controls", "all"]
    assert systems(browser) == {"reference", HOSTILE, "leaky"} & set(choices)
    choose(browser, "system", "")
    assert count(browser) == f"{everything} of {everything} failures."
    assert systems(browser) == set(choices[2:])
    choose(browser, "system", "null")
    assert count(browser) == f"50 of {everything} failures."


def test_where_all_are_controls_none_is_left_out(browser: Browser) -> None:
    assert count(browser, 2) == "12 of 12 failures."
    choices = [option.text for option in Select(field(browser, "system", 2)).options]
    assert choices == ["all", "keep-all", "wipe-all"]


def test_filters_leave_what_they_name(browser: Browser) -> None:
    choose(browser, "system", "leaky")
    assert numbers(browser)[0] == 50
    choose(browser, "family", "purge")
    assert numbers(browser)[0] == 10
    choose(browser, "template", "gdpr")
    names = [row.find_element(By.CLASS_NAME, "name").text for row in rows(browser)]
    assert names == ["purge__gdpr__001", "purge__gdpr__002"]
    choose(browser, "reason", "lost")
    assert numbers(browser)[0] == 0
    assert rows(browser) == []


def test_free_text_finds_what_a_case_shows(browser: Browser) -> None:
    choose(browser, "system", "leaky")
    fact = opened(rows(browser)[0]).find_element(By.CSS_SELECTOR, "ol li mark.bad").text
    field(browser, "text").send_keys(fact.upper())
    found = rows(browser)
    assert 0 < len(found) < 50
    for row in found:
        assert fact.lower() in opened(row).text.lower()
    field(browser, "text").send_keys("no such words anywhere")
    assert numbers(browser)[0] == 0


def test_sorting_and_more_rows(browser: Browser) -> None:
    choose(browser, "system", "")
    choose(browser, "sorted by", "most reasons")
    reasons = [len(row.find_elements(By.CLASS_NAME, "reason")) for row in rows(browser)]
    assert reasons == sorted(reasons, reverse=True)
    everything = numbers(browser)[1]
    more = explorer(browser).find_element(By.CLASS_NAME, "more")
    assert more.text == f"Show 50 more of {everything - 50}"
    for shown in (100, 150, everything):
        more.click()
        assert len(rows(browser)) == shown
    assert not more.is_displayed()


def test_a_failing_case_opens_to_what_happened(browser: Browser) -> None:
    choose(browser, "system", "leaky")
    choose(browser, "template", "gdpr")
    body = opened(rows(browser)[0])
    headings = [heading.text for heading in body.find_elements(By.TAG_NAME, "h4")]
    assert headings == ["Facts, in the order told", "Then", "Asked", "Elsewhere"]
    forbidden = body.find_element(By.CSS_SELECTOR, "ol mark.bad").text
    wrong = body.find_elements(By.CSS_SELECTOR, ".asked.wrong")
    assert [found.text.split(":")[0] for found in wrong] == [
        "✗Final question",
        "✗Leak probe",
        "✗Leak probe, asked again",
    ]
    for asked in wrong:
        assert asked.get_attribute("open")
        assert forbidden in [mark.text for mark in asked.find_elements(By.CSS_SELECTOR, "ol mark.bad")]
        assert f"Must not come back: {forbidden} (came back)" in asked.text
    assert "purge" in body.text
    assert "returned 3" in body.text
    assert "oracle: pass" in body.text


def test_an_item_of_membehave_opens_to_before_and_after(browser: Browser) -> None:
    choose(browser, "system", "keep-all", 2)
    assert numbers(browser, 2) == (6, 12)
    body = opened(rows(browser, 2)[0])
    [wrong] = body.find_elements(By.CSS_SELECTOR, ".asked.wrong")
    assert wrong.text.startswith("✗Target")
    before, after = wrong.find_elements(By.CSS_SELECTOR, ".sides > div")
    assert before.text.removeprefix("Before") == after.text.removeprefix("After")
    assert after.find_elements(By.CSS_SELECTOR, "mark.bad")
    choose(browser, "system", "wipe-all", 2)
    lost = opened(rows(browser, 2)[0]).find_elements(By.CSS_SELECTOR, ".asked.wrong")
    assert {asked.text.split(":")[0] for asked in lost} == {"✗Ripple"}


def test_hostile_texts_are_inert(browser: Browser, page: str) -> None:
    before = browser.execute_script(COUNT)
    choose(browser, "system", HOSTILE)
    while (more := explorer(browser).find_element(By.CLASS_NAME, "more")).is_displayed():
        more.click()
    browser.execute_script("for (const row of document.querySelectorAll('details')) row.open = true")
    WebDriverWait(browser, 10).until(lambda b: not [r for r in rows(b) if not r.find_elements(By.CLASS_NAME, "body")])
    browser.execute_script("for (const row of document.querySelectorAll('details')) row.open = true")
    shown = explorer(browser).get_property("textContent")
    assert "<script>document.title = 'taken'</script>" in shown
    assert "<img src=x onerror=\"document.title = 'taken'\">" in shown
    assert browser.title == "Report on forgetting"
    assert browser.execute_script(COUNT) == before
    assert not browser.execute_script(HANDLERS)
    assert requested(browser) == [page]
    assert browser.get_log("browser") == []


def test_what_cannot_be_seen_is_spelled_out_and_turns_nothing_around(browser: Browser) -> None:
    choose(browser, "system", HOSTILE)
    body = opened(rows(browser)[0])
    signs = {sign.text for sign in body.find_elements(By.CLASS_NAME, "sight")}
    assert {"U+202E", "U+2066", "U+2028", "U+2029", "U+0000", "U+001B", "U+D800"} <= signs
    assert not browser.execute_script("return /[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.innerText)")


def test_a_long_text_is_cut_and_shown_on_demand(browser: Browser) -> None:
    choose(browser, "system", HOSTILE)
    body = opened(rows(browser)[0])
    button = body.find_elements(By.CSS_SELECTOR, "button.cut")[0]
    text = button.find_element(By.XPATH, "./parent::span")
    short = len(text.text)
    assert "characters that this page does not hold" in text.text
    button.click()
    assert len(text.text) > short + 1000
    assert "<" not in {element.tag_name for element in text.find_elements(By.XPATH, ".//*")} - {
        "span",
        "mark",
        "button",
    }


def test_everything_can_be_reached_by_keyboard(browser: Browser) -> None:
    field(browser, "text").click()
    for expected in ("select",) * 5 + ("summary",) * 2:
        browser.switch_to.active_element.send_keys(Keys.TAB)
        assert browser.switch_to.active_element.tag_name == expected
    focused = browser.switch_to.active_element
    assert focused.find_element(By.XPATH, "./parent::details").get_attribute("class") == "failure"
    outline = browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", focused)
    assert outline == "solid"
    focused.send_keys(Keys.ENTER)
    row = rows(browser)[0]
    WebDriverWait(row, 10).until(lambda inside: inside.find_elements(By.CLASS_NAME, "body"))
    focused.send_keys(Keys.SPACE)
    assert not row.get_attribute("open")
    more = explorer(browser).find_element(By.CLASS_NAME, "more")
    more.send_keys(Keys.ENTER)
    assert len(rows(browser)) > 50
    first_new = rows(browser)[50].find_element(By.TAG_NAME, "summary")
    assert browser.switch_to.active_element == first_new  # the reader goes on where the list does


def test_every_control_has_a_name(browser: Browser) -> None:
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    kinds = {"button", "link", "combobox", "searchbox", "DisclosureTriangle", "image", "region"}
    found = [node for node in tree if node.get("role", {}).get("value") in kinds and not node["ignored"]]
    assert {node["role"]["value"] for node in found} >= kinds
    assert not [node for node in found if not node.get("name", {}).get("value")]


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)` (WCAG 2.2)."""
    shares = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_are_legible(browser: Browser, scheme: str) -> None:
    set_colours(browser, scheme)
    choose(browser, "system", "leaky")
    opened(rows(browser)[0])

    def style(selector: str, name: str) -> Any:
        found = browser.find_element(By.CSS_SELECTOR, selector)
        return browser.execute_script("return getComputedStyle(arguments[0])[arguments[1]]", found, name)

    paper = style("body", "backgroundColor")
    assert (luminance(paper) < 0.1) is (scheme == "dark")
    for selector in ("p.text", ".notes", ".interval", "thead th", "a", "figcaption", ".count", ".sign", ".aside"):
        assert contrast(style(selector, "color"), paper) >= 4.5, selector
    for selector in ("mark.bad", "mark.good"):
        assert contrast(style(selector, "color"), style(selector, "backgroundColor")) >= 4.5, selector
    for selector in ("svg .fill-ink", "svg .fill-accent"):
        assert contrast(style(selector, "fill"), paper) >= 3, selector


@pytest.mark.parametrize("width", [360, 768])
def test_no_width_scrolls_sideways(browser: Browser, width: int, page: str) -> None:
    screen = {"width": width, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(page)
    for system in (HOSTILE, "leaky"):
        choose(browser, "system", system)
        opened(rows(browser)[0])
    browser.execute_script("for (const row of document.querySelectorAll('details')) row.open = true")
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    assert rows(browser)[0].rect["width"] <= width


def test_without_chromium_the_tests_fail_and_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("PATH", "")
    make: Callable[..., Iterator[Browser]] = _browser.__wrapped__  # type: ignore[attr-defined]
    with pytest.raises(pytest.fail.Exception, match="apt-get install -y chromium chromium-driver"):
        next(make(tmp_path_factory))
