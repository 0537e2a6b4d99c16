"""What a run's counts say about it: whether frames are accounted for, what limited the run, and
signs of errors (findings)."""
