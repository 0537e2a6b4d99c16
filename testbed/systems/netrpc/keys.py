"""The keys of a scenario that are NetRPC's own."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.testbed.scenario.key import key
from agglab.testbed.scenario.kinds import Text, Whole


@dataclass(frozen=True)
class NetRpcKeys:
    """The section `netrpc`."""

    service: str = key(
        "service",
        Text("a name, or path/to/file.py:Class", r"(|[a-z_]+|[^\x00\n:]+:[A-Za-z_]\w*)", 1000),
        "",
        "what is called: one that comes with the laboratory (`allreduce`, `wordcount`, `lock`), "
        "your own, or that of the workload if not given",
    )
    cells: int = key(
        "cells",
        Whole(16, 65520),
        1024,
        "places of a map that a switch has for each of a packet's 32 pairs, for 16 jobs alike",
    )
