"""The table of what this machine carries, and what a scenario asks of it."""

from __future__ import annotations

import itertools
import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from agglab.hosts.library import cache_folder
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.scenario.kinds import rate

NAME = "calibration.json"


@dataclass(frozen=True)
class Row:
    """Of a rack: so many workers with packets of at most so many bytes (the MTU) stay network-bound
    at links of rate_bps, and not at 1.1 times as much."""

    workers: int
    packet_bytes: int
    rate_bps: int


def place() -> Path:
    """Where the table is kept: in the user's cache."""
    return cache_folder() / NAME


def keep(rows: Sequence[Row]) -> Path:
    """Whole, instead of what was there."""
    path = place()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    text = json.dumps({"machine": machine(), "rows": [asdict(row) for row in rows]}, indent=2)
    part.write_text(text + "\n")
    os.replace(part, path)
    return path


def kept() -> list[Row]:
    """Nothing where this machine has not been calibrated, or the table is another one's."""
    try:
        table = json.loads(place().read_text())
        rows = [Row(**row) for row in table["rows"]]
        usable = all(min(r.workers, r.packet_bytes, r.rate_bps) > 0 for r in rows)
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return rows if usable and table.get("machine") == machine() else []


def machine() -> dict[str, str | int]:
    """What a table holds for."""
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
    """Of each link. Work is done for each packet, so between rows, and beyond them, the packets per
    second of all workers together follow a power of their number; and of packet sizes the nearest
    is taken, with as many packets per second."""
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
    """On straight lines through the logarithms; beyond the ends as at the end."""
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x <= x1:
            share = math.log(x / x0) / math.log(x1 / x0)
            return math.exp(math.log(y0) + share * math.log(y1 / y0))
    return points[-1][1]


def too_much(resolved: ResolvedScenario, rows: Sequence[Row]) -> str:
    """One line where a scenario on real links asks more than this machine carries; else empty."""
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
    """As links.rate takes it, with two digits, rounded down."""
    scale = 10 ** (math.floor(math.log10(rate_bps)) - 1)
    return str(rate().write(int(rate_bps // scale * scale)))
