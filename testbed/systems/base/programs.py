"""The P4 programs of a system's switches, and the program of switches that only forward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agglab.testbed.systems.base.abilities import Counter


@dataclass(frozen=True)
class Source:
    """A P4 program, given by its name in p4/ or its path, and its compile-time parameters (-D).
    registers: how many cells each register must have that the system reads. A program may lack
    these registers."""

    name: str
    parameters: Mapping[str, int] = field(default_factory=dict)
    registers: Mapping[str, int] = field(default_factory=dict)


EVERYWHERE = "switch"
"""The role of every switch in a system whose switches run one program."""


def everywhere(source: Source) -> Mapping[str, Source]:
    """Returns what `System.sources` returns for a system whose switches all run this program."""
    return {EVERYWHERE: source}


SOURCE = Source("forwarding")

FORWARDING_COUNTERS: dict[str, Counter] = {
    "malformed": Counter(
        "malformed",
        "packets that the parser could not parse completely, and packets for the aggregator "
        "that are not contributions",
        tally="malformed",
        of_jobs=False,
    ),
    "host_errors": Counter(
        "host_errors",
        "hosts' ICMP messages for the aggregator, for example because a result arrived after "
        "its worker's program had ended",
        of_jobs=False,
    ),
    "forged": Counter(
        "forged",
        "packets whose source address is the aggregator's, or is not that of the host that "
        "sent them",
        tally="forged",
        of_jobs=False,
    ),
    "forwarded": Counter(
        "forwarded",
        "packets that do not belong to an aggregation, which were forwarded",
        of_jobs=False,
    ),
    "unroutable": Counter("unroutable", "packets for which the switch has no route", of_jobs=False),
}
"""The counters of p4/include/forwarding.p4."""
