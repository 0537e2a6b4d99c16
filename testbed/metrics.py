"""metrics.json from what was measured: pure arithmetic, no files, no clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

from hosts import wire
from testbed import fidelity
from testbed.agents import Event
from testbed.scenario import Scenario
from testbed.scenario.expectations import Expectation
from testbed.statistics import NetworkStatistics, SwitchStatistics
from testbed.usage import Usage
from testbed.verify import Verdict
from topologies import Topology

NS_PER_S = 1e9
AGENT_COPIES = 5
WORKER_COUNTS = (
    "sent",
    "received",
    "retransmitted",
    "duplicates",
    "late",
    "malformed",
    "timeouts",
    "kernel_drops",
    "bytes_sent",
    "bytes_received",
)
PORT_ERRORS = ("rx_truncated", "rx_gso_drops", "tx_oversize", "tx_errors")


@dataclass(frozen=True)
class Measurements:
    """Everything a finished run measured.

    rounds: for each round, rank -> the agent's `round` event. counters: switch -> kind -> packets.
    usage: of the rounds alone. processors: that the run may use.
    """

    rounds: Sequence[Mapping[int, Event]]
    verdict: Verdict
    statistics: NetworkStatistics
    counters: Mapping[str, Mapping[str, int]]
    usage: Usage
    processors: int


@dataclass(frozen=True)
class Bounds:
    """Seconds that no all-reduce can undercut."""

    payload_s: float
    link_s: float


def bounds(scenario: Scenario, graph: Topology) -> Bounds:
    """Every worker sends each chunk once and hears each result once, over its own link."""
    assert scenario.switch.lanes and scenario.workload.window, "a resolved scenario"
    elements, lanes = scenario.workload.elements, scenario.switch.lanes
    chunks = ceil(elements / lanes)
    size = chunks * wire.frame_bytes(lanes)
    if scenario.workload.dtype == "float32":
        size += min(chunks, scenario.workload.window) * wire.frame_bytes(0)
    rate = min(d.rate_bps or 0 for link in graph.links for _, _, _, d in link.directions())
    return Bounds(elements * wire.VALUE_BYTES * 8 / rate, size * 8 / rate)


def compute(scenario: Scenario, graph: Topology, measured: Measurements) -> dict[str, Any]:
    """The whole of metrics.json but for `ok` and `reason`, which the expectations decide."""
    bound = bounds(scenario, graph)
    times = [round_time_s(ended) for ended in measured.rounds]
    workers = _workers(scenario.topology.workers, measured)
    switches = _switches(measured)
    links = _links(measured.statistics)
    totals = _totals(workers, switches, links)
    float32 = scenario.workload.dtype == "float32"
    return {
        "exact": measured.verdict.exact,
        "wrong_sums": measured.verdict.wrong,
        "error": {
            "max_abs": measured.verdict.max_abs,
            "bound": measured.verdict.bound,
            "within": measured.verdict.within if float32 else None,
        },
        "allreduce": {
            "time_s": _spread(times),
            "ate_per_s": scenario.workload.elements / median(times),
        },
        "payload_bound_s": bound.payload_s,
        "link_bound_s": bound.link_s,
        "link_bound_ratio": median(times) / bound.link_s,
        "workers": workers,
        "totals": totals,
        "switches": switches,
        "links": links,
        "fidelity": fidelity.judge(_evidence(graph, times, totals, links, measured)),
    }


def memory_needed_bytes(scenario: Scenario) -> int:
    """About what the agents' arrays (input, output, sums, the next input) and the slots take."""
    assert scenario.switch.lanes, "a resolved scenario"
    tensors = scenario.topology.workers * scenario.workload.elements
    slots = 2 * scenario.switch.slots * scenario.switch.lanes
    return (AGENT_COPIES * tensors + slots) * wire.VALUE_BYTES


def round_time_s(ended: Mapping[int, Event]) -> float:
    """From the first worker's start to the last worker's end."""
    start = min(event["start_ns"] for event in ended.values())
    end = max(event["end_ns"] for event in ended.values())
    return (end - start) / NS_PER_S


def lookup(metrics: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, or None."""
    value: Any = metrics
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def failures(metrics: Mapping[str, Any], expected: Sequence[Expectation]) -> list[str]:
    """Each expectation that does not hold, as `expected x <= 1, got 2`."""
    missed = []
    for expectation in expected:
        value = lookup(metrics, expectation.metric)
        if not expectation.holds(value):
            missed.append(f"expected {expectation}, got {show(value)}")
    return missed


def show(value: Any) -> str:
    """A metric's value for people."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _spread(times: Sequence[float]) -> dict[str, Any]:
    return {"median": median(times), "min": min(times), "max": max(times), "all": list(times)}


def _workers(count: int, measured: Measurements) -> dict[str, dict[str, Any]]:
    workers: dict[str, dict[str, Any]] = {}
    for rank in range(count):
        events = [ended[rank] for ended in measured.rounds]
        counts = {k: sum(event["stats"].get(k, 0) for event in events) for k in WORKER_COUNTS}
        workers[str(rank)] = {**counts, "cpu_s": sum(event["cpu_s"] for event in events)}
    return workers


def _switches(measured: Measurements) -> dict[str, dict[str, Any]]:
    return {
        switch.name: {
            "packets": dict(measured.counters[switch.name]),
            "ring_drops": switch.ring_drops,
            "port_errors": _port_errors(switch),
            "cpu_s": measured.usage.cpu_s.get(switch.name, 0.0),
        }
        for switch in measured.statistics.switches
    }


def _port_errors(switch: SwitchStatistics) -> int:
    """Frames no link counts: those a link's queue refused (tx_drops) are in its queue_drops."""
    ports = switch.details.get("ports", {})
    assert isinstance(ports, Mapping)
    return sum(port.get(name, 0) for port in ports.values() for name in PORT_ERRORS)


def _links(statistics: NetworkStatistics) -> dict[str, dict[str, dict[str, int]]]:
    links: dict[str, dict[str, dict[str, int]]] = {}
    for way in statistics.directions:
        links.setdefault(way.link, {})[way.direction] = {
            "seen": way.seen,
            "dropped": way.dropped_injected,
            "bytes": way.bytes,
            "queue_drops": way.dropped_by_queue,
        }
    return links


def _totals(
    workers: dict[str, Any], switches: dict[str, Any], links: dict[str, Any]
) -> dict[str, int]:
    ways = [way for link in links.values() for way in link.values()]
    packets = [switch["packets"] for switch in switches.values()]
    return {
        "retransmitted": sum(worker["retransmitted"] for worker in workers.values()),
        "injected_drops": sum(way["dropped"] for way in ways),
        "other_drops": sum(way["queue_drops"] for way in ways)
        + sum(switch["ring_drops"] + switch["port_errors"] for switch in switches.values())
        + sum(worker["kernel_drops"] for worker in workers.values()),
        "malformed": sum(worker["malformed"] for worker in workers.values())
        + sum(p.get("refused", 0) + p.get("malformed", 0) for p in packets),
    }


def _evidence(
    graph: Topology,
    times: Sequence[float],
    totals: dict[str, int],
    links: dict[str, Any],
    measured: Measurements,
) -> fidelity.Evidence:
    crossed = (
        links[link.name][name]["bytes"] * 8 / way.rate_bps
        for link in graph.links
        for name, _, _, way in link.directions()
        if way.rate_bps
    )
    return fidelity.Evidence(
        rate_share=max(crossed) / sum(times),
        usage=measured.usage,
        processors=measured.processors,
        injected_drops=totals["injected_drops"],
        other_drops=totals["other_drops"],
    )
