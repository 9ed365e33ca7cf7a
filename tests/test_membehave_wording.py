"""Filling of phrases and drawing without wear."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.membehave import wording
from forget_datasets.membehave.wording import Deck, Entry
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


@given(st.integers(1, 20), st.integers(0, 100))
def test_no_entry_is_drawn_twice_more_than_another(size: int, draws: int) -> None:
    options = [Entry(str(i), "") for i in range(size)]
    deck = Deck(options, "deck", size)
    counts = Counter(deck.draw().id for _ in range(draws))
    assert max(counts.values(), default=0) <= min((counts[o.id] for o in options), default=0) + 1
