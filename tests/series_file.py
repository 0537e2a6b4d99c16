"""What a run leaves in series.csv, read for tests."""

import csv
from collections import defaultdict
from pathlib import Path


def read(run: Path) -> dict[tuple[str, str, str], list[tuple[int, float]]]:
    """(kind, name, metric) -> (time in ns, value) in the file's order."""
    found = defaultdict(list)
    with (run / "series.csv").open() as file:
        for row in csv.DictReader(file):
            key = (row["kind"], row["name"], row["metric"])
            found[key].append((int(row["time_ns"]), float(row["value"])))
    return found
