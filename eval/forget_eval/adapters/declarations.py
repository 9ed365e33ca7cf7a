"""What an adapter says of itself, checked: a manifest, a list and a report can rely on it."""

import inspect
import json
import sys
from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

from forget_datasets.errors import UserError, unknown
from forget_datasets.rows import OPERATIONS
from forget_eval import policies
from forget_eval.guest import hosting
from forget_eval.packages import version
from forget_eval.protocols import Chooser, Kind, Scale

UNDECLARED = "undeclared"
_INSTALLED = {"site-packages", "dist-packages"}


def describe(adapter: object) -> dict[str, Any]:
    """What the manifest of a run says of an adapter that was made; plain data that JSON gives back unchanged.

    Returns:
        name; class, as `module:Class`; distribution and version, None if unknown; source_sha256 of the files of
        the class, its bases, and the policies if those choose for it; told_the_case; operations, {op: {kind, chooser}}
        of those that it has; score_scale; configuration; and the languages, if they are not all.

    Raises:
        UserError: an attribute that is not as `protocols.Declared` says; the message names it.
    """
    kind = type(adapter)
    if (there := getattr(kind, "described_by_worker", None)) is not None:
        found: dict[str, Any] = there(adapter)
        return found
    told = _Declarations(adapter, kind.__qualname__)
    distribution = told.text("distribution")
    by_policy = Chooser.POLICY in told.choices("choosers", Chooser).values()
    with hosting(f"adapter '{told.name}': its class cannot be read"):
        source_sha256, told_the_case = _source_sha256(kind, by_policy), is_told(adapter)
    return {
        "name": told.name,
        "class": f"{kind.__module__}:{kind.__qualname__}",
        "distribution": distribution or None,
        "version": version(distribution) if distribution else told.text("version") or None,
        "source_sha256": source_sha256,
        "told_the_case": told_the_case,
        "operations": told.operations(),
        "score_scale": told.text("score_scale") or str(Scale.NONE),
        "configuration": told.configuration(),
        **told.languages(),
    }


def operations(adapter: object) -> dict[str, dict[str, str]]:
    """How an adapter (or its class) does each operation that it has: {op: {kind, chooser}}.

    Raises:
        UserError: `operations` or `choosers` are not as `protocols.Declared` says.
    """
    return _Declarations(adapter, _class_of(adapter).__qualname__).operations()


def stated(adapter: type, attribute: str) -> str:
    """A text that a class states of itself, empty if it does not. Raises UserError if it is no text."""
    return _Declarations(adapter, adapter.__qualname__).text(attribute)


def may_be_several(adapter: type) -> bool:
    """Whether a class says that it may run in several processes. Raises UserError if it says it with no bool."""
    return _Declarations(adapter, adapter.__qualname__).flag("parallel")


def is_told(adapter: object) -> bool:
    """Whether an adapter (or its class) is a control: the class has `_tell`. One that an instance grows makes none."""
    return callable(getattr(_class_of(adapter), "_tell", None))


class _Declarations:
    """Reads attributes of an adapter or of its class, on which a property has no value yet and counts as absent."""

    def __init__(self, adapter: object, name: str) -> None:
        self._adapter, self.name = adapter, name
        self.name = self.text("name") or name

    def has(self, operation: str) -> bool:
        return callable(self._read(operation))

    def text(self, attribute: str) -> str:
        value = self._read(attribute)
        if value is not None and not isinstance(value, str):
            raise self._wrong(attribute, value, "a string")
        return str(value or "")

    def flag(self, attribute: str) -> bool:
        value = self._read(attribute, False)
        if not isinstance(value, bool):
            raise self._wrong(attribute, value, "True or False")
        return value

    def operations(self) -> dict[str, dict[str, str]]:
        kinds, choosers = self.choices("operations", Kind), self.choices("choosers", Chooser)
        return {
            op: {"kind": kinds.get(op, UNDECLARED), "chooser": choosers.get(op, UNDECLARED)}
            for op in OPERATIONS
            if self.has(op)
        }

    def choices(self, attribute: str, kinds: type[StrEnum]) -> dict[str, str]:
        known = [str(kind) for kind in kinds]
        value = self._read(attribute, {})
        if not isinstance(value, Mapping):
            raise self._wrong(attribute, value, f"a mapping from operations to {' or '.join(known)}")
        with self._reading(attribute):
            found = {str(operation): str(choice) for operation, choice in value.items()}
        for operation, choice in found.items():
            if choice not in known:
                raise unknown(f"value of {attribute}['{operation}'] of adapter '{self.name}'", choice, known)
        return found

    def languages(self) -> dict[str, list[str]]:
        value = self._read("languages")
        if value is None:
            return {}
        if not isinstance(value, list | tuple) or not all(isinstance(tag, str) for tag in value):
            raise self._wrong("languages", value, "a list of language tags")
        return {"languages": list(value)}

    def configuration(self) -> dict[str, Any]:
        value = self._read("configuration", {})
        if not isinstance(value, Mapping):
            raise self._wrong("configuration", value, "a mapping")
        with hosting(f"adapter '{self.name}': its attribute 'configuration' cannot be written as JSON"):
            plain: dict[str, Any] = json.loads(json.dumps(dict(value), allow_nan=False))
        return plain

    def _read(self, attribute: str, absent: Any = None) -> Any:
        with self._reading(attribute):
            value = getattr(self._adapter, attribute, absent)
        return absent if isinstance(self._adapter, type) and isinstance(value, property) else value

    def _reading(self, attribute: str) -> Any:
        return hosting(f"adapter '{self.name}': its attribute '{attribute}' cannot be read")

    def _wrong(self, attribute: str, value: object, wanted: str) -> UserError:
        found = "None" if value is None else f"of type {type(value).__name__}"
        return UserError(f"adapter '{self.name}': its attribute '{attribute}' is {found}; it must be {wanted}.")


def _class_of(adapter: object) -> type:
    return adapter if isinstance(adapter, type) else type(adapter)


def _source_sha256(kind: type, by_policy: bool) -> str | None:
    """The hash of what decides a class' answers, so that a run does not go on with what was edited.

    That is its file, those of its bases but not a library's, and the policies if they choose for it. A file alone has
    its own hash. None if the class' file cannot be read.
    """
    own = _source(kind)
    if own is None:
        return None
    files = [own, *(_source(base) for base in kind.__mro__[1:] if not _is_a_librarys(base, kind))]
    if by_policy:
        files.append(policies.__file__)
    try:
        hashes = [sha256(Path(file).read_bytes()).hexdigest() for file in dict.fromkeys(files) if file]
    except OSError:
        return None
    return hashes[0] if len(hashes) == 1 else sha256("".join(hashes).encode("ascii")).hexdigest()


def _source(kind: type) -> str | None:
    """The file that defines a class."""
    try:
        return inspect.getsourcefile(kind)
    except (TypeError, OSError):
        return None


def _is_a_librarys(base: type, kind: type) -> bool:
    """Whether a base comes with Python or with a package that is neither ours nor the one that has the class."""
    root = base.__module__.partition(".")[0]
    if root in sys.stdlib_module_names:
        return True
    if root in (__name__.partition(".")[0], kind.__module__.partition(".")[0]):
        return False
    return not _INSTALLED.isdisjoint(Path(_source(base) or "").parts)
