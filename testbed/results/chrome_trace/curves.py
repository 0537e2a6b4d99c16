"""Adds the metrics over time of series.csv to a trace."""

from __future__ import annotations

from pathlib import Path

from agglab.testbed.results.chrome_trace.writer import TraceWriter
from agglab.testbed.results.series_table import recorded
from agglab.testbed.schema.series_metrics import unit_of

PROCESSES = {"job": "jobs", "worker": "agents", "link": "links", "switch": "switches"}
"""The process under which the metrics of each kind of thing are drawn."""


def add_series(writer: TraceWriter, folder: Path) -> None:
    """Adds a line for each metric of each thing that was ever above 0."""
    rows = [row for row in recorded(folder) if row.kind in PROCESSES]
    drawn = {(row.kind, row.name, row.metric) for row in rows if row.value}
    for row in rows:
        if (row.kind, row.name, row.metric) in drawn:
            name = f"{row.name} {row.metric} [{unit_of(row.kind, row.metric)}]"
            writer.count(PROCESSES[row.kind], name, row.time_ns, row.value)
