"""Filling of phrases, drawing without wear, and what comes of it: histories that a person could have had."""

import re
from collections import Counter
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.membehave import generate, kinds, wording
from forget_datasets.membehave.wording import Deck, Entry, Occasion, entries
from forget_datasets.rows import Item
from forget_datasets.seeding import Stream


def test_slots_take_their_value_with_and_without_a_capital() -> None:
    text = wording.fill("{Name} is here, {name} is.", {"name": "my cousin"}, Stream("x"))
    assert text == "My cousin is here, my cousin is."


def test_one_part_of_a_choice_is_taken() -> None:
    drawn = {wording.fill("a [red|green] {thing}", {"thing": "door"}, Stream(i)) for i in range(40)}
    assert drawn == {"a red door", "a green door"}


def test_brackets_without_a_bar_stay() -> None:
    assert wording.fill("rows[0]", {}, Stream("x")) == "rows[0]"


def test_a_slot_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        wording.fill("{nobody}", {}, Stream("x"))


@pytest.mark.parametrize(
    ("lead", "text", "joined"),
    [
        ("Oh, and", "Ran into them.", "Oh, and ran into them."),
        ("Right.", "ran into them.", "Right. Ran into them."),
        ("Oh, and", "Maya ran.", "Oh, and Maya ran."),
        ("Well,", "I ran.", "Well, I ran."),
        ("Well,", "I'm late.", "Well, I'm late."),
        ("Now,", "SQL brain freeze.", "Now, SQL brain freeze."),
    ],
)
def test_a_text_starts_small_after_a_lead_that_goes_on(lead: str, text: str, joined: str) -> None:
    assert wording.follow(lead, text, frozenset({"Maya"})) == joined


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("Not now", "Not now."),
        ("Really?", "Really?"),
        ('How to answer "still available?"', 'How to answer "still available?"'),
        ('It says "offline"', 'It says "offline".'),
        ("Fine (for now)", "Fine (for now)"),
    ],
)
def test_a_sentence_is_ended_once(text: str, ended: str) -> None:
    assert wording.ended(text) == ended


NOON = datetime(2024, 5, 15, 12)  # a Wednesday


def suits(text: str, moment: datetime = NOON, *traits: str) -> bool:
    [entry] = entries("file", "section", [text])
    assert not entry.text.startswith("<")
    return entry.suits(Occasion(moment, frozenset(traits)))


@pytest.mark.parametrize(
    ("text", "moment", "fits"),
    [
        ("Any time.", NOON, True),
        ("<months 5> Asparagus.", NOON, True),
        ("<months 6-8> Berries.", NOON, False),
        ("<months 11-2> Frost.", NOON.replace(month=1), True),
        ("<months 11-2> Frost.", NOON.replace(month=3), False),
        ("<months 2-4 10-11> Digging.", NOON.replace(month=10), True),
        ("<hours 5-8> Early start.", NOON.replace(hour=8, minute=59), True),
        ("<hours 5-8> Early start.", NOON.replace(hour=9), False),
        ("<hours 22-4> Late.", NOON.replace(hour=1), True),
        ("<months 5, hours 9-11> Both.", NOON, False),
        ("Come on Wednesday.", NOON, False),
        ("Come on Wednesday.", NOON.replace(day=16), True),
        ("Wednesdays are busy.", NOON, True),
        ("<car> The boot is full.", NOON, False),
    ],
)
def test_a_phrase_is_said_when_it_fits(text: str, moment: datetime, fits: bool) -> None:
    assert suits(text, moment) is fits


def test_a_phrase_may_ask_for_traits() -> None:
    assert suits("<car, asking> May I park here?", NOON, "car", "asking", "dog")
    assert not suits("<car, asking> May I park here?", NOON, "car")


@pytest.mark.parametrize("tag", ["months", "months 13", "hours 24", "hours 5-x", "days 3", "car 2"])
def test_a_tag_that_says_nothing_is_an_error(tag: str) -> None:
    with pytest.raises(ValueError, match=r"months or hours|is no span"):
        entries("file", "section", [f"<{tag}> Text."])


def test_what_does_not_suit_waits_until_it_does() -> None:
    deck = Deck(entries("file", "section", ["<hours 8> Early.", "<hours 20> Late."]), "deck")
    early, late = (Occasion(NOON.replace(hour=hour), frozenset()) for hour in (8, 20))
    drawn = [deck.draw(lambda e: e.suits(early)).text, deck.draw(lambda e: e.suits(late)).text]
    assert drawn == ["Early.", "Late."]
    with pytest.raises(ValueError, match="suits"):
        deck.draw(lambda e: e.suits(Occasion(NOON, frozenset())))


@given(st.integers(1, 20), st.integers(0, 100))
def test_no_entry_is_drawn_twice_more_than_another(size: int, draws: int) -> None:
    options = [Entry(str(i), "") for i in range(size)]
    deck = Deck(options, "deck", size)
    counts = Counter(deck.draw().id for _ in range(draws))
    assert max(counts.values(), default=0) <= min((counts[o.id] for o in options), default=0) + 1


@pytest.fixture(scope="module")
def histories() -> list[Item]:
    """An item of each user."""
    return [triplet.default[0] for triplet in generate(42)]


def told(item: Item) -> list[tuple[datetime, str]]:
    """What the user says, each with the start of its conversation."""
    starts = [(datetime.fromisoformat(s.start_time), s) for s in item.sessions]
    return [(start, m.content) for start, s in starts for m in s.messages if m.role == "user"]


def opener(text: str, *lists: str) -> wording.Entry | None:
    """The longest opener at the head of a text."""
    openers = [e for name in lists for e in wording.section(f"{name.split(':')[0]}.toml", name.split(":")[1])]
    found = [e for e in openers if text.casefold().startswith(e.text.casefold() + " ")]
    return max(found, key=lambda e: len(e.text), default=None)


OPENERS = ("openings:greetings", "openings:turns", "openings:updates", "hooks:leads")


def test_a_greeting_fits_the_hour_and_no_message_opens_twice(histories: list[Item]) -> None:
    greeted = 0
    for item in histories:
        for session in item.sessions:
            start = datetime.fromisoformat(session.start_time)
            greeting = opener(session.messages[0].content, "openings:greetings")
            if greeting:
                assert start.hour in greeting.fit.hours, session
                greeted += 1
        for _, text in told(item):
            if first := opener(text, *OPENERS):
                rest = text[len(first.text) + 1 :]
                assert opener(rest, *OPENERS) is None, text
                assert not [e for e in wording.section("asides.toml", "openers") if f"? {e.text} " in rest], text
    assert greeted > 1000


def test_what_is_said_of_a_coming_weekday_is_not_said_on_it(histories: list[Item]) -> None:
    named = re.compile(r"\b(?:on|by) (Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)\b")
    found = [(start, day) for item in histories for start, text in told(item) for day in named.findall(text)]
    assert len(found) > 100
    assert not [(start, day) for start, day in found if start.strftime("%A") == day]


def test_garden_news_comes_in_its_season(histories: list[Item]) -> None:
    """Courgettes in summer, not in January."""
    months = {start.month for item in histories for start, text in told(item) if "courgettes that I'm" in text}
    assert months <= {7, 8, 9}
    assert months


def test_the_assistant_answers_to_what_was_told(histories: list[Item]) -> None:
    """Its remark belongs to the very thing: a burglary is no occasion for praise."""
    remarks = {
        "got burgled": "I'm sorry. That's a horrible feeling",
        "has the plot with the flag": "Easy to find, then.",
        "is captain of the": "Congratulations to the new captain.",
    }
    seen = 0
    for item in histories:
        for session in item.sessions:
            for said, reply in zip(session.messages[::2], session.messages[1::2], strict=True):
                every = [r for kind in kinds.every().values() for e in (*kind.asides, *kind.answers) for r in [e.reply]]
                for words, remark in remarks.items():
                    if words in said.content and any(r in reply.content for r in every if "{" not in r):
                        assert remark.casefold() in reply.content.casefold(), reply
                        seen += 1
    assert seen > 3


def test_the_assistant_asks_for_more_at_the_end_of_a_reply(histories: list[Item]) -> None:
    hooks = [e.text for e in wording.section("hooks.toml", "hooks")]
    replies = [m.content for item in histories for s in item.sessions for m in s.messages if m.role == "assistant"]
    asking = [reply for reply in replies if any(hook in reply for hook in hooks)]
    assert len(asking) > 100
    assert all(any(reply.endswith(hook) for hook in hooks) for reply in asking)


def test_no_sentence_recurs_often_in_a_history(histories: list[Item]) -> None:
    """Short words such as "Good." aside."""
    for item in histories:
        sentences = Counter(
            sentence
            for s in item.sessions
            for m in s.messages
            for sentence in re.split(r"(?<=[.!?])\s+", m.content)
            if len(sentence) > 12
        )
        assert max(sentences.values()) <= 4, (item.user, sentences.most_common(3))
