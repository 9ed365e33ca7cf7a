"""Whether the text of a purged fact still lies in the files of a store: beside the rates, and no part of them.

The spec's probes ask a system; what a system no longer recalls may still be on the disk, in free pages, logs or old
versions. Facts with words of their own are inscribed, three of them are purged, and the files are searched for those
words: before the purge, after it, and after the maintenance that the adapter offers. Other files of the system, such as
its logs, count as well. Vectors are not looked at, nor the memory of a process, nor what the file system itself keeps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

from forget_datasets.errors import UserError
from forget_eval import adapters, guest
from forget_eval.embedding import Embedder
from forget_eval.isolation import selection
from forget_eval.isolation.messages import AdapterFault, users
from forget_eval.isolation.selection import Isolation
from forget_eval.redaction import brief, redact
from forget_eval.residue_files import Found, search

_LETTERS = "bcdfghjkmnpqrtvw"  # no vowels: no language has such words, and no stemmer changes them
_TOPICS = ("the bicycle", "the garden", "the piano", "the boiler", "the lease")
_COUNT = 40
_PURGED = (0, _COUNT // 2, _COUNT - 1)
_LONGEST = 300  # characters of a reason


class Answer(StrEnum):
    """Whether the text of a purged fact lies in the files."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Store(StrEnum):
    """Where the store of an adapter lies."""

    DISK = "on disk"
    DISK_HERE = "on disk, here alone"
    MEMORY = "in memory"
    UNSTATED = "not stated"


@dataclass(frozen=True)
class Look:
    """One look into the files.

    Attributes:
        answer: yes or no, or unknown with a reason in `why`.
        found: of how many purged facts there was text.
        files: where, as paths within the store's folder.
    """

    answer: Answer
    found: int = 0
    files: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Residue:
    """What a purge leaves in the files of an adapter.

    Attributes:
        adapter: what it says of itself, as in the manifest of a run, secrets redacted.
        store: where it lies. One that is on disk here alone is in memory when the adapter is run.
        purged: how many facts were purged.
        before: the look after the purge and before maintenance.
        maintenance: what was then done, in the adapter's words; empty if it offers none.
        after: the look after that, None without one.
    """

    adapter: dict[str, Any]
    store: Store
    purged: int
    before: Look
    maintenance: str = ""
    after: Look | None = None


def word(number: int) -> str:
    """The word of a fact: 24 letters, which no other fact shares beyond the first few."""
    digits = sha256(f"residue {number}".encode()).hexdigest()
    return "".join(_LETTERS[int(digit, 16)] for digit in digits[:24])


def sought(number: int) -> str:
    """The part of a word that is looked for: an index may store a word without what it shares with its neighbour."""
    return word(number)[4:22]


def text(number: int) -> str:
    """A fact."""
    return f"The papers for {_TOPICS[number % len(_TOPICS)]} have the reference {word(number)}."


def measure(name: str, embed: Embedder | None, isolation: Isolation | None = None) -> Residue:
    """Makes an adapter, has it purge three facts of forty, and looks into its files.

    An adapter says by `stored_in() -> str | None` which folder its store lies in, None if it is in memory. If its
    constructor takes `on_disk`, it is then made once more with that set. `maintain() -> str` does what the package has
    to tidy up its store, and says what.

    Raises:
        UserError: the adapter is a control, cannot be made, or fails.
        EnvironmentFault: its worker cannot be started, or it raises one.
    """
    for on_disk in (False, True):
        with guest.apart():
            memory = selection.select(name, embed, isolation, on_disk=on_disk)
            try:
                with guest.hosting(f"adapter '{name}' fails where residue is looked for"):
                    found = _looked_at(memory, Store.DISK_HERE if on_disk else Store.DISK)
            finally:
                guest.close(memory, f"adapter '{name}'")
        if found.store is not Store.MEMORY:
            break
    return found


def _looked_at(memory: Any, store: Store) -> Residue:
    """What is found; a UserError that was raised in a worker is one here, of the same kind."""
    try:
        return _measured(memory, store)
    except AdapterFault as error:
        if error.is_users:
            raise users(error) from error
        raise


def _measured(memory: Any, store: Store) -> Residue:
    described = adapters.describe(memory)
    described["configuration"] = redact(described["configuration"])
    if described["told_the_case"]:
        raise UserError(f"'{described['name']}' is a control: it stores nothing.")
    kept: dict[str, Any] = {"adapter": described, "purged": 0}
    folder, unseen = _folder(memory, store)
    if folder is None:
        return Residue(**kept, store=unseen, before=Look(Answer.UNKNOWN, why=str(unseen)))
    if getattr(memory, "purge", None) is None:
        return Residue(**kept, store=store, before=Look(Answer.UNKNOWN, why="it cannot purge"))
    memory.reset()
    for number in range(_COUNT):
        memory.inscribe(text(number))
    first = _search(folder)
    try:
        for number in _PURGED:
            memory.purge(word(number))
    except NotImplementedError:
        return Residue(**kept, store=store, before=Look(Answer.UNKNOWN, why="it cannot purge"))
    kept["purged"] = len(_PURGED)
    before = _look(first, _search(folder))
    done = _maintained(memory)
    if done is None:
        return Residue(**kept, store=store, before=before)
    return Residue(**kept, store=store, before=before, maintenance=done, after=_look(first, _search(folder)))


def _folder(memory: Any, store: Store) -> tuple[Path | None, Store]:
    if (stored_in := getattr(memory, "stored_in", None)) is None:
        return None, Store.UNSTATED
    try:
        folder = stored_in()
    except NotImplementedError:
        return None, Store.UNSTATED
    return (None, Store.MEMORY) if folder is None else (Path(folder), store)


def _maintained(memory: Any) -> str | None:
    """What was done to tidy up, None if nothing is offered."""
    if (maintain := getattr(memory, "maintain", None)) is None:
        return None
    try:
        return brief(str(maintain()), _LONGEST)
    except NotImplementedError:
        return None


def _search(folder: Path) -> Found:
    return search(folder, [sought(number) for number in range(_COUNT)])


def _look(first: Found, now: Found) -> Look:
    """What two searches tell; that nothing is seen tells something only where stored text would be."""
    gone = [sought(number) for number in _PURGED]
    left = [each for each in gone if each in now.places]
    if left:
        files = sorted({name for each in left for name in now.places[each]})
        return Look(Answer.YES, len(left), tuple(files))
    others = [sought(number) for number in range(_COUNT) if number not in _PURGED]
    if not (first.places.keys() >= set(gone) and now.places.keys() >= set(others)):
        return Look(Answer.UNKNOWN, why="what is stored does not lie in its files in plain bytes")
    if now.opaque:
        return Look(Answer.UNKNOWN, why=brief(f"not in plain bytes: {_few(now.opaque)}", _LONGEST))
    return Look(Answer.NO)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
