"""Pure functions from a dataset row and a transcript to scores."""
