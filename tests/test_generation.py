"""The generator as shipped: golden bytes on every Python, addressing, capacities, screening, controls."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forget_datasets.errors import UserError
from forget_datasets.forgeteval import (
    PROFILES,
    TOP_K,
    engine,
    generate,
    handmade,
    languages,
    make_case,
    screening,
    stream_cases,
)
from forget_datasets.forgeteval.controls import CONTROLS, passes
from forget_datasets.rows import FAMILIES, GeneratedCase, content_hash
from forget_datasets.tokens import holds

LANGUAGES = languages.available()
CONFIGS = [*LANGUAGES, *(f"{tag}-stress" for tag in LANGUAGES), "handmade"]
TEMPLATES = {
    "supersession": ["job", "theme", "diet", "long_form"],
    "decay": ["otp", "verification_code", "flight_cancelled", "one_of_many"],
    "amnesia": ["person", "multi", "topic", "many_facts"],
    "purge": ["api_key", "phi", "gdpr", "many_similar"],
    "drift": ["jobs", "address", "color", "long_chain"],
}
SMALLEST_CAPACITY = {"en": 50_000}
OTHERWISE_SMALLEST = 5_000
OPERATION = {
    "supersession": "supersede", "decay": "release", "amnesia": "release", "purge": "purge", "drift": "supersede",
}  # fmt: skip
MUTATIONS = {"multi": {2}, "long_chain": {5}, "jobs": {2, 3}, "address": {2, 3}, "color": {2, 3}}  # others have one
RESERVED = re.compile(r"(.*\.)?(example|invalid|test|example\.(com|net|org|([a-z]{2}\.)?[a-z]{2}))")
"""Domains that belong to nobody (RFC 2606, RFC 6761), with those that registries keep free under their own country."""


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "golden" / "forgeteval.json").read_text(encoding="utf-8"))


def test_the_languages_and_their_templates() -> None:
    assert {"en", "ja", "zh"} <= set(LANGUAGES)
    for tag in LANGUAGES:
        assert {f: list(t) for f, t in languages.load(tag).templates.items()} == TEMPLATES


@pytest.mark.parametrize("config", CONFIGS)
def test_the_bytes_are_the_golden_ones(config: str, golden: dict[str, Any]) -> None:
    tag = config.removesuffix("-stress")
    profile = PROFILES["full" if tag == config else "stress"]
    if config == "handmade":
        rows = [case.to_row() for case in handmade.load()]
    else:
        rows = [c.to_row() for c in generate(profile.n_per_family, distractors=profile.distractors, lang=tag)]
    wanted = record(golden, config)
    assert [rows[0], rows[8], rows[-1]] == wanted["records"]
    assert (len(rows), content_hash(rows)) == (wanted["rows"], wanted["content_hash"])


def test_the_golden_records_are_of_this_version(golden: dict[str, Any]) -> None:
    assert golden["version"] == engine.VERSION


def record(golden: dict[str, Any], config: str) -> dict[str, Any]:
    assert config in golden, f"no golden record of config '{config}': run scripts/regenerate_goldens.py"
    return golden[config]


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("tag", LANGUAGES)
def test_other_pythons_make_the_same_bytes(
    version: str, tag: str, golden: dict[str, Any], run_on_python: Callable[[str, str], str]
) -> None:
    code = (
        "from forget_datasets.forgeteval import generate; from forget_datasets.rows import content_hash; "
        f"print(content_hash(c.to_row() for c in generate(200, lang={tag!r})))"
    )
    assert run_on_python(version, code) == record(golden, tag)["content_hash"]


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
        if language.capacity(template) < SMALLEST_CAPACITY.get(tag, OTHERWISE_SMALLEST)
    }
    assert small == {}


@pytest.mark.parametrize("tag", LANGUAGES)
@pytest.mark.parametrize(("seed", "distractors"), [(42, 4), (7, 50)])
def test_every_case_does_what_its_family_says_and_is_bounded_by_its_controls(
    tag: str, seed: int, distractors: int
) -> None:
    trivia = set(languages.load(tag).distractors)
    for case in generate(400 if distractors == 4 else 80, seed=seed, distractors=distractors, lang=tag):
        assert {mutation[0] for mutation in case.mutations} == {OPERATION[case.family]}
        assert len(case.mutations) in MUTATIONS.get(case.template, {1}), case.id
        assert len(trivia.intersection(case.setup_facts)) == distractors
        if case.family == "purge":  # whole tokens find what substrings do
            goes = [text for text in case.setup_facts if any(s in text for s in case.must_not_contain)]
            assert [text for text in case.setup_facts if holds(case.mutations[0][1], text)] == goes, case.id
        for control in CONTROLS:
            for k in (TOP_K, None):
                assert passes(control, case, k)[1] is (control == "oracle"), (case.id, control, k)


@pytest.mark.parametrize("tag", LANGUAGES)
@pytest.mark.parametrize("template", ["decay.one_of_many", "purge.many_similar"])
def test_every_sibling_that_stays_has_a_survivor_probe_of_its_own(tag: str, template: str) -> None:
    trivia = set(languages.load(tag).distractors)
    for i in range(50):
        case = make_case(tag, *template.split("."), i)
        told = [text for text in case.setup_facts if text not in trivia]
        siblings = [text for text in told if not any(s in text for s in case.must_not_contain)]
        required = [
            p.must_contain[0] for p in case.probes if p.kind == "survivor" and p.must_contain[0] in case.must_contain
        ]
        assert len(siblings) == len(required) == 4, case.id
        assert all(sum(string in text for text in siblings) == 1 for string in required), case.id
        assert all(sum(string in text for string in required) == 1 for text in siblings), case.id


@pytest.mark.parametrize("tag", LANGUAGES)
@pytest.mark.parametrize("template", ["decay.one_of_many", "purge.many_similar", "purge.api_key"])
def test_a_code_that_stays_is_asked_for_by_name(tag: str, template: str) -> None:
    """Or a store that answers no question with a code in it would look as if it had forgotten one."""
    for i in range(20):
        case = make_case(tag, *template.split("."), i)
        stays = case.must_contain[0]
        assert [p.must_contain for p in case.probes if p.kind == "survivor" and stays in p.query], case.id


@pytest.mark.parametrize("tag", LANGUAGES)
def test_a_release_does_not_spell_the_code_that_goes(tag: str) -> None:
    for template in ("otp", "verification_code", "flight_cancelled", "one_of_many"):
        for i in range(40):
            case = make_case(tag, "decay", template, i)
            assert case.must_not_contain[0] not in case.mutations[0][1], case.id


@pytest.mark.parametrize("tag", LANGUAGES)
def test_a_clause_that_long_form_leaves_as_it_was_is_asked_for(tag: str) -> None:
    for i in range(20):
        case = make_case(tag, "supersession", "long_form", i)
        goes = next(text for text in case.setup_facts if case.must_not_contain[0] in text)
        retold = [p.must_contain[0] for p in case.probes if p.kind == "survivor" and p.must_contain[0] in goes]
        assert len(retold) == 1, case.id
        assert retold[0] in case.mutations[0][2], case.id


@pytest.mark.parametrize("tag", LANGUAGES)
def test_more_distractors_change_nothing_else_of_a_case(tag: str) -> None:
    for few, many in zip(generate(12, lang=tag), generate(12, distractors=50, lang=tag), strict=True):
        assert few.mutations == many.mutations
        assert few.final_query == many.final_query
        assert few.probes == many.probes
        assert (few.must_contain, few.must_not_contain) == (many.must_contain, many.must_not_contain)
        told = set(few.setup_facts) - set(languages.load(tag).distractors)
        assert told == set(many.setup_facts) - set(languages.load(tag).distractors)


@pytest.mark.parametrize("tag", LANGUAGES)
def test_e_mail_addresses_belong_to_nobody(tag: str) -> None:
    found = set[str]()
    for i in range(200):
        case = make_case(tag, "purge", "gdpr", i)
        text = " ".join([*case.setup_facts, *(m[1] for m in case.mutations), *(p.query for p in case.probes)])
        found.update(re.findall(r"@([a-z0-9-]+(?:\.[a-z0-9-]+)*)", text, re.IGNORECASE))
    assert found
    assert sorted(domain for domain in found if not RESERVED.fullmatch(domain.lower())) == []


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
