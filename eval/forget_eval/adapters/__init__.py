"""Memory systems under test, one a file; `load` finds them by name."""

from forget_eval.adapters.declarations import describe, is_told, operations
from forget_eval.adapters.lookup import (
    ASSISTANT,
    BUILT_IN,
    GROUP,
    MANDATORY,
    find,
    load,
    make,
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
    "operations",
    "wants_embedder",
]
