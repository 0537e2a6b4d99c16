"""Stores the table of the rates that this machine can carry, and compares it with what a scenario
needs."""

from __future__ import annotations

import itertools
import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.schema.kinds import rate
from p4native.common.c_build import cache_folder

NAME = "calibration.json"


@dataclass(frozen=True)
class Row:
    """A measured limit. On a rack with `workers` workers, with packets of at most `packet_bytes`
    (the MTU), the network limits the speed of a run if links have `rate_bps`. With 1.1 times that
    rate, it no longer does."""

    workers: int
    packet_bytes: int
    rate_bps: int


def place() -> Path:
    """Returns where the table is stored, in the user's cache."""
    return cache_folder() / NAME


def keep(rows: Sequence[Row]) -> Path:
    """Writes the table and replaces the previous one."""
    path = place()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    text = json.dumps({"machine": machine(), "rows": [asdict(row) for row in rows]}, indent=2)
    part.write_text(text + "\n")
    os.replace(part, path)
    return path


def kept() -> list[Row]:
    """Returns the stored table; empty if this machine has not been calibrated or the table belongs
    to another machine."""
    try:
        table = json.loads(place().read_text())
        rows = [Row(**row) for row in table["rows"]]
        usable = all(min(r.workers, r.packet_bytes, r.rate_bps) > 0 for r in rows)
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return rows if usable and table.get("machine") == machine() else []


def machine() -> dict[str, str | int]:
    """Returns what identifies the machine for which a table is valid: its processors and its
    kernel."""
    return {
        "processors": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "kernel": platform.release(),
    }


def _processor(info: Path = Path("/proc/cpuinfo")) -> str:
    try:
        lines = info.read_text().splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def carried_bps(rows: Sequence[Row], workers: int, packet_bytes: int) -> float | None:
    """Returns the rate of each link that the machine can carry, in bits per second; None if the
    table is empty.

    The machine's work is proportional to the number of packets. Between two rows, the packets per
    second of all workers together are therefore interpolated as a power of the number of workers.
    Outside their range, the nearest row is used. The nearest packet size in the table is used, with
    the packets per second that belong to it.
    """
    if not rows:
        return None
    sizes = {row.packet_bytes for row in rows}
    size = min(sizes, key=lambda each: (abs(math.log(each / packet_bytes)), each))
    points = sorted(
        (row.workers, row.workers * row.rate_bps) for row in rows if row.packet_bytes == size
    )
    together = _interpolated(points, workers)
    return together / workers * packet_bytes / size


def _interpolated(points: Sequence[tuple[int, int]], x: int) -> float:
    """Returns the value at x, interpolated linearly between the logarithms of the points. Outside
    the range of the points, it is the value of the nearest point."""
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x <= x1:
            share = math.log(x / x0) / math.log(x1 / x0)
            return math.exp(math.log(y0) + share * math.log(y1 / y0))
    return points[-1][1]


def too_much(resolved: ResolvedScenario, rows: Sequence[Row]) -> str:
    """Returns one line if a scenario on real links needs more than this machine can carry;
    otherwise an empty string."""
    if resolved.virtual:
        return ""
    workers = len({host for job in resolved.jobs for host in job.hosts})
    carried = carried_bps(rows, workers, resolved.scenario.links.mtu_bytes)
    if not carried:
        return ""
    asked = max(
        direction.rate_bps or 0
        for link in resolved.graph.links
        for _, sender, receiver, direction in link.directions()
        if any(host.name in (sender.node, receiver.node) for host in resolved.graph.hosts)
    )
    if asked <= carried:
        return ""
    return (
        f"this scenario asks for {asked / carried:.1f} times what this machine can carry "
        f"({rate().write(asked)} for each of {workers} workers; {_shown(carried)} was "
        f"measured), so expect the verdict cpu-bound; use links.rate {_shown(carried)} or "
        "backend: virtual"
    )


def _shown(rate_bps: float) -> str:
    """Returns the rate as a scenario writes it in `links.rate`, rounded down to two digits."""
    scale = 10 ** (math.floor(math.log10(rate_bps)) - 1)
    return str(rate().write(int(rate_bps // scale * scale)))
