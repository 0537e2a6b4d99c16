"""Metrics over time: what workers, links, switches and jobs did, moment by moment.

`declared` lists the metrics, `tracks` stores a backend's samples during a run, and `rows` writes
them as the table in the run's folder.
"""
