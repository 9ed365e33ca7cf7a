"""What runs are called where several stand side by side: as short as can be, and no two alike.

A label is made from what a manifest holds and nothing else, so that a copy of a run elsewhere is called the same.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path

from forget_eval import runs

USUAL_POLICY = "named"
POLICY_NOTE = f"* with another forget policy than `{USUAL_POLICY}`."
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Named:
    """What a run may be called.

    Attributes:
        system: the adapter's name.
        run: that of the run itself, as its manifest has it.
        run_id: the SHA-256 of its manifest.
    """

    system: str
    run: str
    run_id: str


def unique(named: Sequence[Named]) -> list[str]:
    """A label for each run: the system; where several share it, with the run's name; else with eight digits of its id.

    One run that is there more than once is numbered.
    """
    found = [each.system for each in named]
    for more in ([each.run for each in named], [each.run_id[:_DIGITS] for each in named]):
        shared = Counter(found)
        found = [
            f"{each.system} {word}" if shared[label] > 1 else label
            for each, label, word in zip(named, found, more, strict=True)
        ]
    return list(_numbered(found))


def run_id(folder: Path) -> str:
    """What a run is known by, the SHA-256 of its manifest. Raises OSError if that cannot be read."""
    return sha256((folder / runs.MANIFEST).read_bytes()).hexdigest()


def is_usual(policy: str | None) -> bool:
    """Whether a forget policy is the usual one, or there is none."""
    return policy in (None, USUAL_POLICY)


def starred(system: str, policy: str | None) -> str:
    """The system's name, with an asterisk where the forget policy is not the usual one."""
    return system if is_usual(policy) else f"{system}*"


def _numbered(labels: Sequence[str]) -> Iterator[str]:
    shared = Counter(labels)
    taken = {label for label, n in shared.items() if n == 1}
    for label in labels:
        if shared[label] > 1:
            label = next(name for n in count(1) if (name := f"{label} {n}") not in taken)
            taken.add(label)
        yield label
