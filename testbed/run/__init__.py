"""Runs the jobs, faults and recovery of a run on any backend (see conductor.py)."""
