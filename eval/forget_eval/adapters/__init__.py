"""Memory systems under test, one a file; `load` finds them by name."""

from forget_eval.adapters.declarations import describe, is_told, may_be_several, operations
from forget_eval.adapters.lookup import (
    ASSISTANT,
    BUILT_IN,
    GROUP,
    MANDATORY,
    find,
    load,
    make,
    placed,
    wants_embedder,
)

__all__ = [
    "ASSISTANT",
    "BUILT_IN",
    "GROUP",
    "MANDATORY",
    "describe",
    "find",
    "is_told",
    "load",
    "make",
    "may_be_several",
    "operations",
    "placed",
    "wants_embedder",
]
