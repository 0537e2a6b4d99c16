"""Benchmarks: speed, always as a ratio to something that was measured in the same run; `python -m
benchmarks`."""
