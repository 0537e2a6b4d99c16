"""The keys of a scenario that are the parameter server's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agglab.testbed.scenario.key import keys_list
from agglab.testbed.scenario.kinds import Pattern
from agglab.testbed.systems.common import hosts_named


@dataclass(frozen=True)
class PsKeys:
    """The section `ps`."""

    servers: tuple[str, ...] = keys_list(
        "servers",
        Pattern(),
        "hosts, by name or pattern, that only serve; without any, a server runs beside each worker",
    )


def dedicated(own: PsKeys, hosts: Sequence[str]) -> tuple[str, ...]:
    """The hosts that only serve, in the order of the patterns, then of the topology."""
    return hosts_named(own.servers, hosts)
