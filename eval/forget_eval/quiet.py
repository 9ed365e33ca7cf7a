"""The variables of a process in which a package neither reports to its makers nor writes into the user's home.

The standard library alone is imported: this is wanted in every environment.
"""

from collections.abc import Mapping

HOMES = ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
"""Where packages look for a place to write to."""

SWITCHES: Mapping[str, str] = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "GRAPHITI_TELEMETRY_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MEM0_TELEMETRY": "False",
    "ORT_DISABLE_TELEMETRY": "1",
    "SCARF_NO_ANALYTICS": "true",
    "TELEMETRY_DISABLED": "1",
}
"""Telemetry, tracing, and lists that are fetched on import: all off."""


def at_home(folder: str) -> dict[str, str]:
    """The variables with which the folder is the user's home, and packages are quiet."""
    return {**dict.fromkeys(HOMES, folder), **SWITCHES}
