"""Builders of the forgetting benchmarks ForgetEval and MemBehave: Forgetting."""

__version__ = "0.1.0"
