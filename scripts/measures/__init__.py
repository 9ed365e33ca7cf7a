"""What `benchmark.py` measures."""
