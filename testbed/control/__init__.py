"""Jobs, faults and recovery of a run, on whatever backend: see conductor.py."""
