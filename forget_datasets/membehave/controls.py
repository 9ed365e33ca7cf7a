"""Controls: what five assistants that are told the item would answer. They bound every honest result.

They land by construction: `null` is excluded throughout; `keep-all` has coverage 1 and survival 1; `wipe-all` 0 and 0;
the `redactor` has attributed coverage 0, and survival 0 where the other person is told in the target's message, else
1; the `oracle` 0 and 1.
"""

from collections.abc import Callable

from forget_datasets.membehave.metrics import mentions, target_names
from forget_datasets.rows import Item, ItemProbe

Control = Callable[[Item, ItemProbe, bool], str]

UNKNOWN = "I know nothing about that."


def null(item: Item, probe: ItemProbe, after: bool) -> str:
    """Remembers nothing."""
    return ""


def keep_all(item: Item, probe: ItemProbe, after: bool) -> str:
    """Recalls the messages behind the answer, and ignores the request."""
    return "\n".join(_recalled(item, probe))


def wipe_all(item: Item, probe: ItemProbe, after: bool) -> str:
    """Keeps all until the request, and empties itself then."""
    return "" if after else keep_all(item, probe, after)


def redactor(item: Item, probe: ItemProbe, after: bool) -> str:
    """Drops every message that names the target under any alias."""
    names = target_names(item)
    return "\n".join(m for m in _recalled(item, probe) if not (after and mentions(m, names)))


def oracle(item: Item, probe: ItemProbe, after: bool) -> str:
    """Answers from the graph; after the request it knows nothing about the target and everything else."""
    if probe.family in ("ripple", "control"):
        return probe.expected or ""
    if after:
        return UNKNOWN
    if probe.family == "confirm":
        return "Yes."
    return "\n".join(f"{item.target}: {entity}" for entity in probe.expected_entities)


CONTROLS: dict[str, Control] = {
    "null": null,
    "keep-all": keep_all,
    "wipe-all": wipe_all,
    "redactor": redactor,
    "oracle": oracle,
}


def answers(control: str, item: Item, probe: ItemProbe, after: bool) -> str:
    """What a control answers to a probe, before or after the request. Raises KeyError for an unknown control."""
    return CONTROLS[control](item, probe, after)


def _recalled(item: Item, probe: ItemProbe) -> list[str]:
    """The messages that state the answer: of a target or alias probe all that state an edge of the target."""
    if probe.family in ("target", "alias"):
        return list(dict.fromkeys(e.quote for e in item.evidence if e.person == item.target))
    return [probe.source_quote] if probe.source_quote else []
