"""The rows of both datasets as frozen dataclasses. Standard library only: every Python on a machine can run it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

FAMILIES = ("supersession", "decay", "amnesia", "purge", "drift")
OPERATIONS = ("supersede", "release", "purge")
LEVELS = ("low", "med", "high")


@dataclass(frozen=True, slots=True)
class Probe:
    """A strict check of a case: `kind` is "leak" (requires nothing) or "survivor" (requires one string)."""

    kind: str
    query: str
    must_contain: list[str]
    must_not_contain: list[str]


@dataclass(frozen=True, slots=True)
class GeneratedCase:
    """One ForgetEval case; the first seven fields are the spec's ("Every test case is a single dataclass").

    Mutations are ("supersede", old_query, new_text), ("release", query) or ("purge", query).
    """

    id: str
    family: str
    setup_facts: list[str]
    mutations: list[tuple[str, ...]]
    final_query: str
    must_contain: list[str]
    must_not_contain: list[str]
    template: str = ""
    lang: str = "en"
    probes: list[Probe] = field(default_factory=list)
    n_distractors: int = 0

    def to_row(self) -> dict[str, Any]:
        """The Parquet row, in the order of the schema's columns."""
        return {
            "id": self.id,
            "family": self.family,
            "template": self.template,
            "lang": self.lang,
            "setup_facts": list(self.setup_facts),
            "mutations": [
                {"op": m[0], "query": m[1], "new_text": m[2] if len(m) > 2 else None} for m in self.mutations
            ],
            "final_query": self.final_query,
            "must_contain": list(self.must_contain),
            "must_not_contain": list(self.must_not_contain),
            "probes": [
                {
                    "kind": p.kind,
                    "query": p.query,
                    "must_contain": list(p.must_contain),
                    "must_not_contain": list(p.must_not_contain),
                }
                for p in self.probes
            ],
            "n_distractors": self.n_distractors,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "GeneratedCase":
        """The case of a Parquet row. Raises KeyError for a missing column; values are taken as they are."""
        return cls(
            id=row["id"],
            family=row["family"],
            setup_facts=list(row["setup_facts"]),
            mutations=[
                (m["op"], m["query"]) if m["new_text"] is None else (m["op"], m["query"], m["new_text"])
                for m in row["mutations"]
            ],
            final_query=row["final_query"],
            must_contain=list(row["must_contain"]),
            must_not_contain=list(row["must_not_contain"]),
            template=row["template"],
            lang=row["lang"],
            probes=[Probe(**p) for p in row["probes"]],
            n_distractors=row["n_distractors"],
        )


@dataclass(frozen=True, slots=True)
class Neighbor:
    """An entity of the target, with the other people that the user ties to it."""

    entity: str
    kind: str
    aliases: list[str]
    shared_with: list[str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The message in which the user states that a person touches an entity."""

    person: str
    entity: str
    session_id: str
    message_index: int
    speaker_id: str
    listener_id: str
    quote: str


@dataclass(frozen=True, slots=True)
class ItemProbe:
    """A question of a MemBehave item; `family` is target, ripple, control, confirm or alias."""

    family: str
    entity: str | None
    asked_through: str | None
    question: str
    scoring: str
    expected: str | None
    expected_entities: list[str]
    n_expected: int
    aliases: list[str]
    speaker_id: str | None
    listener_id: str | None
    source_quote: str | None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; `role` is user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation; `start_time` is ISO 8601 with an offset."""

    session_id: str
    start_time: str
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class Item:
    """One MemBehave row: a user's whole history, the person to be forgotten, and the questions."""

    item_id: str
    triplet_id: str
    user: str
    target: str
    level: str
    shared: int
    degree: int
    entanglement_ratio: float
    forget_request: str
    neighbors: list[Neighbor]
    evidence: list[Evidence]
    probes: list[ItemProbe]
    sessions: list[Session]

    def to_row(self) -> dict[str, Any]:
        """The Parquet row, in the order of the schema's columns."""
        return asdict(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Item":
        """The item of a Parquet row. Raises KeyError for a missing column, TypeError for a foreign nested field."""
        plain = {k: row[k] for k in cls.__slots__ if k not in ("neighbors", "evidence", "probes", "sessions")}
        return cls(
            **plain,
            neighbors=[Neighbor(**n) for n in row["neighbors"]],
            evidence=[Evidence(**e) for e in row["evidence"]],
            probes=[ItemProbe(**p) for p in row["probes"]],
            sessions=[
                Session(s["session_id"], s["start_time"], [Message(**m) for m in s["messages"]])
                for s in row["sessions"]
            ],
        )


_ENCODE = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")).encode


def canonical(row: Mapping[str, Any]) -> bytes:
    """A row as bytes that do not depend on the writer: sorted keys, no spaces, UTF-8."""
    return _ENCODE(row).encode()


def canonical_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Canonical rows, one a line: what a `RowHash` is the hash of."""
    return b"".join(canonical(row) + b"\n" for row in rows)


class RowHash:
    """The sha256 of canonical rows in their order, one a line, fed a row at a time."""

    def __init__(self) -> None:
        self._digest = sha256()

    def add(self, row: Mapping[str, Any]) -> None:
        """Takes in the next row."""
        self._digest.update(canonical(row) + b"\n")

    def add_lines(self, lines: bytes) -> None:
        """Takes in the next rows as `canonical_lines`."""
        self._digest.update(lines)

    def hexdigest(self) -> str:
        """The hash of all rows so far."""
        return self._digest.hexdigest()


def content_hash(rows: Iterable[Mapping[str, Any]]) -> str:
    """The `RowHash` of all rows."""
    whole = RowHash()
    for row in rows:
        whole.add(row)
    return whole.hexdigest()
