"""Errors that a person can act on, shared with the builders of the data."""

from forget_datasets.errors import EnvironmentFault, UserError, unknown

__all__ = ["EnvironmentFault", "UserError", "unknown"]
