"""The benchmarks, which `python -m benchmarks` runs. Speeds are always given as a ratio to
something that was measured in the same run."""
