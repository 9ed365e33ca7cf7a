"""The world of MemBehave, and the rules that its phrase files keep so that a word never means two things."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from forget_datasets.membehave import kinds, topics, wording
from forget_datasets.membehave.metrics import DENIALS, YES, mentions, normalise
from forget_datasets.membehave.wording import Entry, Occasion
from forget_datasets.membehave.world import MEMBERS, World, make_world

FILES = [
    "persona.toml",
    "questions.toml",
    "requests.toml",
    "asides.toml",
    "hooks.toml",
    "openings.toml",
    "mentions.toml",
]
SPOKEN = [*FILES, *wording.names("kinds"), *wording.names("topics")]


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(42)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", normalise(text))


def name_words() -> set[str]:
    cultures = wording.load("names.toml")["cultures"]
    return {w for c in cultures for key in ("she", "he", "surnames") for name in c[key] for w in words(name)}


def tokens() -> list[str]:
    return [normalise(alias) for kind in kinds.every().values() for e in kind.entities for alias in e.aliases]


def texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from texts(value) if key != "entities" else ()
    elif isinstance(node, list):
        for value in node:
            yield from texts(value)


def test_the_world_has_the_size_that_is_promised(world: World) -> None:
    assert 80 <= len(world.people) <= 150
    assert len(world.entities) >= 13
    assert min(len(group) for group in world.entities.values()) >= 26
    assert max(len(group) for group in world.members.values()) <= MEMBERS == 5


def test_nobody_shares_a_first_name_or_a_surname(world: World) -> None:
    assert len({normalise(p.first) for p in world.people}) == len(world.people)
    assert len({normalise(p.surname) for p in world.people}) == len(world.people)
    assert not {normalise(p.first) for p in world.people} & {normalise(p.surname) for p in world.people}


def test_a_person_touches_at_most_one_entity_of_a_kind_and_membership_agrees(world: World) -> None:
    for (name, kind), entity in world.touched.items():
        assert entity.kind == kind
        assert name in {p.name for p in world.members[entity.name]}
    assert sum(len(group) for group in world.members.values()) == len(world.touched)


def test_the_distinctive_token_of_an_entity_is_nowhere_else_in_the_world() -> None:
    assert all(e.aliases for kind in kinds.every().values() for e in kind.entities)
    counted = Counter(w for kind in kinds.every().values() for e in kind.entities for w in set(words(e.name)))
    assert {token: counted[token] for token in tokens()} == dict.fromkeys(tokens(), 1)
    assert not set(tokens()) & name_words()


def test_worlds_of_two_seeds_differ_and_of_one_do_not(world: World) -> None:
    make_world.cache_clear()
    assert make_world(42) == world
    assert make_world(43).people != world.people


@pytest.mark.parametrize("file", SPOKEN)
def test_no_phrase_names_a_person_an_entity_or_a_relation_of_the_world(file: str) -> None:
    relations = [r["name"] for r in wording.load("relations.toml")["relations"]]
    said = [f"{whose} {name}" for whose in ("my", "your") for name in relations]
    names, marked = name_words(), set(tokens())
    for text in texts(wording.load(file)):
        assert not names & set(words(text)), text
        assert not marked & set(words(text)), text
        assert not mentions(text, said), text


@pytest.mark.parametrize("file", SPOKEN)
def test_every_phrase_is_one_line(file: str) -> None:
    assert not [text for text in texts(wording.load(file)) if len(text.splitlines()) > 1]


@pytest.mark.parametrize("file", [f for f in SPOKEN if f not in ("questions.toml", "requests.toml")])
def test_no_message_can_open_like_the_answer_to_a_yes_or_no_question(file: str) -> None:
    opens = re.compile("(<[^<>]*> )?(~\\d*)?(" + "|".join([*YES, "no"]) + r")\b")
    assert not [text for text in texts(wording.load(file)) if opens.match(normalise(text))]


@pytest.mark.parametrize("kind", kinds.every().values(), ids=kinds.every())
def test_a_fact_names_its_person_and_its_entity_in_full(kind: kinds.Kind) -> None:
    for entry in (*kind.asides, *kind.asks, *kind.answers, *kind.both):
        assert "{entity}" in entry.text, entry
        assert re.search(r"\{([Nn]ame|[Ff]irst)\}", entry.text), entry
        assert "{alias}" not in entry.text, entry
        assert not mentions(entry.text, DENIALS), entry
    assert all("{other}" in entry.text for entry in kind.both)


@pytest.mark.parametrize("kind", kinds.every().values(), ids=kinds.every())
def test_replies_name_the_person_as_often_whatever_was_drawn(kind: kinds.Kind) -> None:
    for entry in (*kind.asks, *kind.prompts, *kind.restates, *kind.clauses):
        assert re.search(r"\{[Ff]irst\}", entry.reply or entry.text), entry
    for entry in (*kind.asides, *kind.answers):
        assert entry.reply, entry
        assert not re.search(r"\{([Nn]ame|[Ff]irst|entity|alias)\}", entry.reply), entry
    assert not [e for e in kind.echoes if re.search(r"\{([Nn]ame|[Ff]irst|entity)\}", e.text + e.reply)]


def lists() -> dict[str, tuple[Entry, ...]]:
    """Every list of phrases from which a message or a reply is drawn by the occasion."""
    found = {}
    for kind in kinds.every().values():
        for section in ("asides", "asks", "prompts", "answers", "both", "echoes", "restates", "clauses"):
            found[f"{kind.name}:{section}"] = getattr(kind, section)
    for file in ("asides", "hooks", "mentions", "openings"):
        found |= {
            f"{file}:{section}": wording.section(f"{file}.toml", section) for section in wording.load(f"{file}.toml")
        }
    return {name: entries for name, entries in found.items() if entries}


@pytest.mark.parametrize("name", lists())
def test_there_is_always_something_that_fits(name: str) -> None:
    """Whatever the month, the weekday and the hour, and for a user without any traits."""
    first = datetime(2024, 1, 1)
    moments = [first + timedelta(days=5 * day, hours=hour) for day in range(73) for hour in range(24)]
    assert all(any(e.suits(Occasion(moment, frozenset())) for e in lists()[name]) for moment in moments)


@pytest.mark.parametrize(
    ("words", "hours"), [("this morning", range(10, 24)), ("tonight", range(7, 24)), ("last night", range(5, 18))]
)
def test_what_is_said_of_a_part_of_the_day_fits_the_hour(words: str, hours: range) -> None:
    said = [e for name, entries in lists().items() if not name.startswith("openings") for e in entries]
    for entry in said:
        if words in entry.text:
            assert entry.fit.hours, entry
            assert entry.fit.hours <= set(hours), entry


def test_a_message_brings_no_opener_of_its_own() -> None:
    """Greetings and words for a change of topic stand before it, one at most."""
    openers = [e.text for name, entries in lists().items() if name.startswith("openings") for e in entries]
    opening = {normalise(o).rstrip(".,:!?") for o in openers} - {"you'll want to hear how it went"}
    own = re.compile(
        r"(random|quick|different|another|unrelated|next|also|oh|okay|anyway|so|by the way)\b[^.?!]{0,20}[,:]"
    )
    first_turns = [turn.text for script in topics.every() for turn in script.parts[0][:1]]
    later = [turn.text for script in topics.every() for part in script.parts[1:] for turn in part[:1]]
    asks = [
        e.text for name, entries in lists().items() if name.endswith((":asks", ":recalls", ":echoes")) for e in entries
    ]
    for text in (*first_turns, *later, *asks):
        plain = normalise(text)
        assert not own.match(plain), text
        assert not [o for o in opening if re.match(re.escape(o) + r"[.,:!?]", plain)], text


def test_what_leads_to_a_question_is_kept_for_questions() -> None:
    for name in ("openings:turns", "asides:bridges"):
        for entry in lists()[name]:
            assert ("question" in entry.text or "ask" in entry.text) <= ("asking" in entry.fit.traits), entry
    assert sum("thanks" in e.fit.traits for e in lists()["openings:turns"]) >= 15


def test_traits_that_phrases_ask_for_are_traits_of_somebody() -> None:
    known = {tag for t in wording.load("persona.toml")["traits"] for o in t["options"] for tag in o.get("tags", [])}
    wanted = {trait for entries in lists().values() for e in entries for trait in e.fit.traits}
    wanted |= {trait for script in topics.every() for trait in script.fit.traits}
    wanted |= {need for r in wording.load("relations.toml")["relations"] for need in r.get("needs", [])}
    assert wanted - {"asking", "thanks"} <= known


def test_nobody_without_work_is_asked_about_a_raise_and_no_vegetarian_about_meat() -> None:
    needs = {script.id.partition(":")[2]: script.fit.traits for script in topics.every()}
    assert {"employed"} <= needs["raise"] & needs["tax-return"] & needs["quit"]
    meat = re.compile(r"\b(chicken|steak|mince|chorizo|bacon|ham|beef)\b")
    for script in topics.every():
        if not {"omnivore", "vegetarian"} & script.fit.traits:
            rows = " ".join(value for row in script.rows for value in row.values())
            text = " ".join(turn.text for part in script.parts for turn in part)
            assert not meat.search(f"{text} {rows}"), script.id


def test_there_is_enough_to_say() -> None:
    assert all(len(k.asides) + len(k.asks) + len(k.answers) >= 25 for k in kinds.every().values())
    assert sum(len(k.restates) for k in kinds.every().values()) >= 40
    mentioned = wording.load("mentions.toml")
    assert len(mentioned["asides"]) + len(mentioned["asks"]) + len(mentioned["recalls"]) >= 60
    assert len(wording.load("requests.toml")["requests"]) >= 20
    assert len(topics.every()) >= 120


def test_every_request_gives_the_full_name_and_some_the_relation() -> None:
    requests = wording.load("requests.toml")["requests"]
    assert all("{name}" in request for request in requests)
    assert sum("{relation}" in request for request in requests) >= 4
    assert min(map(len, requests)) < 20
    assert max(map(len, requests)) > 120


def test_fifty_acquaintances_find_a_relation_each() -> None:
    """Whoever is known, and whatever was given away before: for either pronoun 50 relations fit any user."""
    relations = wording.load("relations.toml")["relations"]
    everybody = [r for r in relations if not r.get("needs")]
    assert len({r["name"] for r in relations}) == len(relations)
    assert min(sum(r.get("pronoun", p) == p for r in everybody) for p in ("she", "he")) >= 50
