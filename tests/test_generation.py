"""The generator as shipped: golden bytes on every Python, addressing, capacities, screening, controls."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.errors import UserError
from forget_datasets.forgeteval import (
    PROFILES,
    TOP_K,
    generate,
    handmade,
    languages,
    make_case,
    screening,
    stream_cases,
)
from forget_datasets.forgeteval.controls import CONTROLS, passes
from forget_datasets.rows import FAMILIES, GeneratedCase, content_hash

LANGUAGES = ["en", "ja", "zh"]
TEMPLATES = {
    "supersession": ["job", "theme", "diet", "long_form"],
    "decay": ["otp", "verification_code", "flight_cancelled", "one_of_many"],
    "amnesia": ["person", "multi", "topic", "many_facts"],
    "purge": ["api_key", "phi", "gdpr", "many_similar"],
    "drift": ["jobs", "address", "color", "long_chain"],
}
SMALLEST_CAPACITY = {"en": 50_000, "zh": 5_000, "ja": 5_000}


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "golden" / "forgeteval.json").read_text(encoding="utf-8"))


def test_the_languages_and_their_templates() -> None:
    assert languages.available() == LANGUAGES
    for tag in LANGUAGES:
        assert {f: list(t) for f, t in languages.load(tag).templates.items()} == TEMPLATES


@pytest.mark.parametrize("config", ["en", "ja", "zh", "en-stress", "ja-stress", "zh-stress", "handmade"])
def test_the_bytes_are_the_golden_ones(config: str, golden: dict[str, Any]) -> None:
    tag, _, stress = config.partition("-")
    profile = PROFILES["stress" if stress else "full"]
    if config == "handmade":
        rows = [case.to_row() for case in handmade.load()]
    else:
        rows = [c.to_row() for c in generate(profile.n_per_family, distractors=profile.distractors, lang=tag)]
    assert [rows[0], rows[8], rows[-1]] == golden[config]["records"]
    assert (len(rows), content_hash(rows)) == (golden[config]["rows"], golden[config]["content_hash"])


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("tag", LANGUAGES)
def test_other_pythons_make_the_same_bytes(
    version: str, tag: str, golden: dict[str, Any], run_on_python: Callable[[str, str], str]
) -> None:
    code = (
        "from forget_datasets.forgeteval import generate; from forget_datasets.rows import content_hash; "
        f"print(content_hash(c.to_row() for c in generate(200, lang={tag!r})))"
    )
    assert run_on_python(version, code) == golden[tag]["content_hash"]


@pytest.mark.parametrize("tag", LANGUAGES)
def test_a_smaller_n_is_a_subset_and_any_range_can_be_made_alone(tag: str) -> None:
    large = {case.id: case for case in generate(11, lang=tag)}
    small = generate(6, lang=tag)
    assert len(large) == 55
    assert len(small) == 30
    assert all(large[case.id] == case for case in small)
    tail = list(stream_cases(11, lang=tag, start=6))
    assert [case for case in large.values() if case not in small] == tail
    assert make_case(tag, "purge", "gdpr", 1) == large["purge__gdpr__002"]


def test_templates_take_turns_and_ids_count_within_a_template() -> None:
    assert [case.id for case in generate(6)[:6]] == [
        "supersession__job__001",
        "supersession__theme__001",
        "supersession__diet__001",
        "supersession__long_form__001",
        "supersession__job__002",
        "supersession__theme__002",
    ]


@pytest.mark.parametrize("tag", LANGUAGES)
def test_the_language_is_screened_and_large_enough(tag: str) -> None:
    language = languages.load(tag)
    assert screening.screen_language(language) == []
    small = {
        f"{family}.{name}": language.capacity(template)
        for family, templates in language.templates.items()
        for name, template in templates.items()
        if language.capacity(template) < SMALLEST_CAPACITY[tag]
    }
    assert small == {}


@pytest.mark.parametrize("tag", LANGUAGES)
@pytest.mark.parametrize(("seed", "distractors"), [(42, 4), (7, 50)])
def test_every_case_is_proven_and_bounded_by_its_controls(tag: str, seed: int, distractors: int) -> None:
    for case in generate(400 if distractors == 4 else 80, seed=seed, distractors=distractors, lang=tag):
        assert screening.prove(case) == []
        for control in CONTROLS:
            for k in (TOP_K, None):
                assert passes(control, case, k)[1] is (control == "oracle"), (case.id, control, k)


@pytest.mark.parametrize("tag", LANGUAGES)
def test_cases_of_a_template_differ(tag: str) -> None:
    for family in FAMILIES:
        for name in TEMPLATES[family]:
            cases = [make_case(tag, family, name, i) for i in range(100)]
            assert len({(tuple(sorted(c.setup_facts)), tuple(c.mutations), c.final_query) for c in cases}) == 100
            assert len({tuple(c.must_not_contain) for c in cases}) > 10
            assert len({skeleton(c) for c in cases}) > 10, f"{family}.{name} hardly varies in wording"


def skeleton(case: GeneratedCase) -> tuple[int, ...]:
    """A rough print of a case's phrasings: how many words its question and mutations have."""
    texts = [case.final_query, *(part for m in case.mutations for part in m[1:]), *(p.query for p in case.probes)]
    return tuple(len(text.split()) if " " in text else len(text) for text in texts)


def test_a_round_trip_through_a_row_loses_nothing() -> None:
    for tag in LANGUAGES:
        for case in generate(8, lang=tag):
            assert GeneratedCase.from_row(case.to_row()) == case


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("eng", "purge", "gdpr", 0), "no language named 'eng'. Did you mean 'en'"),
        (("en", "purg", "gdpr", 0), "no family named 'purg'. Did you mean 'purge'"),
        (("en", "purge", "gpdr", 0), "no template of purge named 'gpdr'. Did you mean 'gdpr'"),
    ],
)
def test_unknown_names_are_answered_with_the_closest(arguments: tuple[str, str, str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_case(*arguments)
