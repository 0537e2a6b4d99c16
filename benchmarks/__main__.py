"""`python -m benchmarks [NAME...]`: runs the benchmarks, prints their rows and keeps them as JSON.

A benchmark is a module of this folder with a function `run() -> list[Row]` (row.py). If it raises
RuntimeError, the message says in one line what is missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib
import json
import os
import sys
from pathlib import Path

from agglab.testbed.base import system_programs
from agglab.testbed.base.command_lines import module
from benchmarks.row import Row

BENCHMARKS = (
    *("hosts_protocol", "switch_forwarding", "targets", "switch_costs", "virtual_time"),
    *("simulators", "start_up"),
)
RESULTS = Path(__file__).resolve().parents[1] / "results" / "bench"


def main() -> int:
    """Runs the benchmarks that the command line names, or all. Returns the exit code: 0, or 1 if a
    benchmark could not run."""
    parser = argparse.ArgumentParser(prog=module("benchmarks"), description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    system_programs.add_to_path()
    names = parser.parse_args().names or BENCHMARKS
    for name in names:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark {name!r}: there are {', '.join(BENCHMARKS)}")
    return max([_run(name) for name in names])


def _run(name: str) -> int:
    try:
        rows: list[Row] = importlib.import_module(f"benchmarks.{name}").run()
    except RuntimeError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    for row in rows:
        print(_line(row))
    _keep(name, rows)
    return 0


def _line(row: Row) -> str:
    value = f"{row.value:,.0f}" if row.value >= 1000 else f"{row.value:.4g}"
    figure = f"{row.part:7} {row.what:38} {value:>11} {row.unit:10}"
    compared = f"{row.ratio:6.2f} x {row.baseline}" if row.baseline else ""
    return f"{figure} {compared:25} {_verdict(row)}".rstrip()


def _verdict(row: Row) -> str:
    if row.goal is None:
        return ""
    relation = "at most" if row.goal.most else "at least"
    unit = row.unit if row.goal.of_value else "x"
    return f"{relation} {row.goal.limit:.3g} {unit}: {'met' if row.met else 'MISSED'}"


def _keep(name: str, rows: list[Row]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    document = {
        "benchmark": name,
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "kernel": os.uname().release,
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "rows": [{**dataclasses.asdict(row), "met": row.met} for row in rows],
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
