"""Controls land where they must, on items as they are built."""

from collections.abc import Iterator

import pytest

from forget_datasets.membehave import Parameters, generate_triplet
from forget_datasets.membehave.controls import CONTROLS, answers
from forget_datasets.membehave.items import same_message
from forget_datasets.membehave.metrics import Answers, measure
from forget_datasets.rows import Item


def items() -> Iterator[Item]:
    for index in range(4):
        yield from generate_triplet(index).extended
    yield from generate_triplet(1, parameters=Parameters(same_message=0.6)).extended


def play(control: str, item: Item) -> dict[str, float | None]:
    before = [answers(control, item, probe, False) for probe in item.probes]
    after = [answers(control, item, probe, True) for probe in item.probes]
    return measure(item, Answers(before, after))


@pytest.fixture(scope="module", params=list(items()), ids=lambda item: f"{item.item_id}-{item.level}")
def item(request: pytest.FixtureRequest) -> Item:
    found: Item = request.param
    return found


def joint_ripples(item: Item) -> tuple[int, int]:
    """How many ripple probes are asked about an edge told in the target's own message, and how many there are."""
    places = {(e.person, e.entity): (e.session_id, e.message_index) for e in item.evidence}
    ripples = [p for p in item.probes if p.family == "ripple"]
    joint = [p for p in ripples if places[p.asked_through, p.entity] == places[item.target, p.entity]]  # type: ignore[index]
    return len(joint), len(ripples)


def test_null_knows_nothing_and_is_excluded_throughout(item: Item) -> None:
    found = play("null", item)
    assert found.pop("baseline_recall_target") == found.pop("baseline_recall_ripple") == 0.0
    assert set(found.values()) == {None}


@pytest.mark.parametrize("control", ["keep-all", "wipe-all", "redactor", "oracle"])
def test_the_others_know_everything_before(control: str, item: Item) -> None:
    found = play(control, item)
    assert found["baseline_recall_target"] == found["baseline_recall_ripple"] == 1.0
    assert found["resurfaced"] == 0.0


def test_keep_all_keeps_everything(item: Item) -> None:
    found = play("keep-all", item)
    kept = ("target_coverage", "attributed_coverage", "ripple_survival", "control_survival", "confirm_leak")
    assert [found[name] for name in kept] == [1.0] * 5
    assert found["alias_coverage"] == 1.0
    assert found["selective_forgetting"] == 0.0


def test_wipe_all_keeps_nothing(item: Item) -> None:
    found = play("wipe-all", item)
    gone = ("target_coverage", "attributed_coverage", "ripple_survival", "control_survival", "confirm_leak")
    assert [found[name] for name in gone] == [0.0] * 5
    assert found["selective_forgetting"] == 0.0


def test_the_redactor_loses_what_was_told_jointly(item: Item) -> None:
    found = play("redactor", item)
    joint, ripples = joint_ripples(item)
    assert found["attributed_coverage"] == found["target_coverage"] == found["alias_coverage"] == 0.0
    assert found["ripple_survival"] == (ripples - joint) / ripples
    assert found["control_survival"] == 1.0
    assert found["confirm_leak"] == 0.0


def test_the_oracle_forgets_and_keeps(item: Item) -> None:
    found = play("oracle", item)
    assert found["target_coverage"] == found["attributed_coverage"] == 0.0
    assert found["ripple_survival"] == found["control_survival"] == found["selective_forgetting"] == 1.0
    assert found["confirm_leak"] == found["alias_coverage"] == 0.0


def test_some_ripples_are_told_jointly_and_most_are_not() -> None:
    counted = [joint_ripples(item) for item in items()]
    assert any(joint for joint, _ in counted)
    assert any(joint < ripples for joint, ripples in counted)
    assert all(joint <= same_message(item) for (joint, _), item in zip(counted, items(), strict=True))


def test_there_are_five() -> None:
    assert list(CONTROLS) == ["null", "keep-all", "wipe-all", "redactor", "oracle"]
