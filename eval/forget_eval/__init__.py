"""Runs memory systems on the forgetting benchmarks and judges what they answered."""

__version__ = "0.1.0"
