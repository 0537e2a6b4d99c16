"""Functions that systems of all kinds use for their answers: agents' configuration, lanes, and the
probability of loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from agglab.hosts import wire, workloads
from agglab.hosts.part import WORKER
from agglab.hosts.workloads import Torch
from agglab.testbed.schema.jobs import Finding, Job
from agglab.testbed.schema.network_sections import LANES_MAX
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import Agent, HostCounter, ResolvedScenario
from agglab.topologies import Direction, Drop

IP_AND_UDP_BYTES = 28
LOSS_MAX = 0.99


def agent_configuration(
    resolved: ResolvedScenario,
    job: Job,
    endpoints: str,
    host: str,
    port: int,
    rank: int,
    role: str = WORKER,
) -> dict[str, Any]:
    """Returns the keys of hosts.agent for one agent, without `settings`, which are the system's
    own.

    endpoints: the module of its endpoints, as a name or a path. port: the UDP port on which it
    listens.
    """
    link = next(iter(resolved.graph.ports(host).values()))
    return {
        "name": host,
        "system": endpoints,
        "role": role,
        "job": job.number,
        "rank": rank,
        "workers": len(job.hosts),
        "bind": [resolved.graph.host(host).ip, port],
        "link_rate_bps": link.a_to_b.rate_bps,
        "seed": resolved.seed,
        "give_up_s": job.give_up_s,
        "first_timeout_s": job.first_timeout_s,
        "delays_s": job.delays_s,
        "worker": job.worker,
        "work": workloads.description(job.work),
        "hosts": _addresses(resolved, job),
    }


def _addresses(resolved: ResolvedScenario, job: Job) -> list[str]:
    """Returns the addresses of the workers' hosts. Users' scripts need them to open connections.
    Empty for workloads without a script."""
    if not isinstance(job.work, Torch):
        return []
    return [resolved.graph.host(name).ip for name in job.hosts]


def lanes_of(scenario: Scenario, header_bytes: int) -> int:
    """Returns the number of lanes that the scenario states, or the largest number that its MTU
    allows beside a header of this size."""
    return scenario.switch.lanes or lanes_that_fit(scenario, header_bytes)


def lanes_that_fit(scenario: Scenario, header_bytes: int) -> int:
    """Returns the largest number of lanes in a packet of the scenario's MTU (with IP header)."""
    room = scenario.links.mtu_bytes - IP_AND_UDP_BYTES - header_bytes
    return min(LANES_MAX, room // wire.VALUE_BYTES)


def check_lanes(scenario: Scenario, trust: Trust, header_bytes: int) -> Iterator[Finding]:
    """Yields the problems of `switch.lanes`, for System.check."""
    if not trust("switch.lanes", "links.mtu"):
        return
    lanes, most = scenario.switch.lanes, lanes_that_fit(scenario, header_bytes)
    if lanes is not None and lanes > most:
        what = f"{lanes} lanes do not fit an MTU of {scenario.links.mtu_bytes} bytes"
        yield "switch.lanes", what, f"at most {most}, or auto"


def independent_loss(way: Direction) -> float:
    """Returns the probability that a direction loses a frame, from its constant independent losses.
    Bursts and lists of lost frames are not included."""
    passed = [1 - i.probability for i in way.impairments if isinstance(i, Drop)]
    return min(1 - prod(passed), LOSS_MAX)


def with_settings(agent: Agent, more: Mapping[str, Any]) -> Agent:
    """Returns a copy of the agent with these additional settings of the system."""
    settings = {**agent.configuration["settings"], **more}
    return replace(agent, configuration={**agent.configuration, "settings": settings})


def meanings(counters: Mapping[str, tuple[str, str]]) -> dict[str, HostCounter]:
    """Returns the names and meanings of an endpoint's own counters, in the form of
    System.host_counters."""
    return {name: HostCounter(unit, meaning) for name, (unit, meaning) in counters.items()}
