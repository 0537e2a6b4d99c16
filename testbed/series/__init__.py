"""Metrics over time: what workers, links, switches and jobs did, moment by moment.

`declared` says what there is, `tracks` holds what a backend looked at while a run went on, `rows`
makes the table of it that stands in the run's folder.
"""
