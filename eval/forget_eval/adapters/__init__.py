"""Memory systems under test, one a file; `load` finds them by name."""

from forget_eval.adapters.lookup import (
    ASSISTANT,
    BUILT_IN,
    GROUP,
    MANDATORY,
    Row,
    declared,
    find,
    listing,
    load,
    wants_embedder,
)

__all__ = [
    "ASSISTANT",
    "BUILT_IN",
    "GROUP",
    "MANDATORY",
    "Row",
    "declared",
    "find",
    "listing",
    "load",
    "wants_embedder",
]
