"""metrics.json from what was measured: pure arithmetic, no files, no clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from hosts import wire
from testbed import fidelity, link_bytes
from testbed.bounds import bounds
from testbed.bucket import burst_bytes
from testbed.measurements import Measurements
from testbed.orchestra.outcome import JobResult, Outcome
from testbed.plan import Tree, job_trees
from testbed.queue_losses import Lost, lost_inside
from testbed.scenario import Scenario
from testbed.scenario.expectations import Expectation
from testbed.scenario.jobs import Tenant
from testbed.statistics import NetworkStatistics, SwitchStatistics
from testbed.verify import combine
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
SWITCH_DROPS = ("ring_drops", "queue_drops", "port_errors")
NOTHING_LOST = Lost(0, 0)
PORT_ERRORS = ("rx_truncated", "rx_gso_drops", "tx_oversize", "tx_errors")


def compute(scenario: Scenario, graph: Topology, measured: Measurements) -> dict[str, Any]:
    """The whole of metrics.json but for `ok` and `reason`, which the expectations decide."""
    results = measured.outcome.jobs
    trees = job_trees(graph, [result.tenant.placed(i) for i, result in enumerate(results)])
    jobs = {
        result.tenant.name: _job(scenario, graph, result, trees[result.tenant.number])
        for result in results
    }
    lost = lost_inside(measured, trees) if scenario.switch.target == "bmv2" else {}
    switches = _switches(measured, lost)
    links = _links(measured.statistics)
    as_predicted, unclear = link_bytes.compare(scenario, measured, trees, links)
    totals = _totals(jobs, switches, links)
    metrics = {
        "exact": all(job["exact"] for job in jobs.values()),
        "wrong_sums": sum(job["wrong_sums"] for job in jobs.values()),
        **_only(jobs),
        "jobs": jobs,
        "fairness": _fairness(results),
        "failure": _failure(measured.outcome),
        "faults": _faults(measured.outcome),
        "totals": totals,
        "switches": switches,
        "links": links,
        "links_as_predicted": as_predicted,
        "links_unclear": unclear,
    }
    evidence = _evidence(graph, totals, links, measured)
    return {**metrics, "fidelity": fidelity.judge(evidence)}


def _job(scenario: Scenario, graph: Topology, result: JobResult, tree: Tree) -> dict[str, Any]:
    """One job's own metrics. One that has not ended a round has no times."""
    tenant = result.tenant
    bound = bounds(scenario, graph, tenant, tree)
    times = [done.time_s for done in result.rounds]
    verdict = combine(result.verdicts) if result.verdicts else None
    float32 = tenant.workload.dtype == "float32"
    middle = median(times) if times else None
    return {
        "exact": verdict is not None and verdict.exact,
        "wrong_sums": verdict.wrong if verdict else 0,
        "error": {
            "max_abs": verdict.max_abs if verdict else None,
            "bound": verdict.bound if verdict else None,
            "within": verdict.within if verdict and float32 else None,
        },
        "allreduce": {
            "time_s": _spread(times),
            "ate_per_s": tenant.workload.elements / middle if middle else None,
        },
        "payload_bound_s": bound.payload_s,
        "link_bound_s": bound.link_s,
        "link_bound_ratio": middle / bound.link_s if middle else None,
        "lossy_bound_s": bound.lossy_s,
        "lossy_bound_ratio": middle / bound.lossy_s if middle else None,
        "rounds": len(result.rounds),
        "restarts": result.restarts,
        "lost": len(result.lost),
        "lost_workers": [tenant.hosts[rank] for rank in result.lost],
        "elements_per_s": _throughput(result),
        "workers": _workers(result),
    }


def _only(jobs: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """A scenario of one job has its metrics at the top too."""
    if len(jobs) > 1:
        return {}
    (job,) = jobs.values()
    return {name: value for name, value in job.items() if name not in ("exact", "wrong_sums")}


def _throughput(result: JobResult) -> float:
    """Tensor elements reduced per second of the job's time, from its start to its last round."""
    if not result.rounds or result.started_ns is None:
        return 0.0
    last_ns = max(event["end_ns"] for event in result.rounds[-1].ended.values())
    elements = len(result.rounds) * result.tenant.workload.elements
    return elements * NS_PER_S / (last_ns - result.started_ns)


def _fairness(results: Sequence[JobResult]) -> dict[str, Any]:
    """Jain's index of the jobs' throughputs by share: 1 if all get what is theirs, 1/n if one gets
    all."""
    rates = [_throughput(result) for result in results]
    weighed = [rate / result.tenant.share for rate, result in zip(rates, results, strict=True)]
    squares = len(weighed) * sum(rate * rate for rate in weighed)
    total = sum(rates)
    return {
        "jain": sum(weighed) ** 2 / squares if squares else None,
        "shares": {
            result.tenant.name: rate / total if total else None
            for rate, result in zip(rates, results, strict=True)
        },
    }


def _failure(outcome: Outcome) -> dict[str, Any] | None:
    """The first job that failed, and why."""
    failures = [result.failure for result in outcome.jobs if result.failure]
    if not failures:
        return None
    failure = failures[0]
    return {
        "job": failure.job,
        "worker": failure.worker,
        "after_s": failure.after_s,
        "reason": failure.reason,
    }


def _faults(outcome: Outcome) -> dict[str, Any]:
    return {"never_begun": len(outcome.never_begun), "never_begun_faults": outcome.never_begun}


def shortcomings(outcome: Outcome, expected: Sequence[Expectation]) -> list[str]:
    """What a run must not end with unless it is expected: failed jobs, faults that never began."""
    stated = {expectation.metric for expectation in expected}
    found = [f"{fault} never began: the run was over" for fault in outcome.never_begun]
    if not any(metric.startswith("failure.") for metric in stated):
        found += [r.failure.reason for r in outcome.jobs if r.failure]
    return found


def memory_needed_bytes(scenario: Scenario, jobs: Sequence[Tenant]) -> int:
    """About what the agents' arrays (input, output, sums, the next input) and the slots take."""
    assert scenario.switch.lanes, "a resolved scenario"
    tensors = sum(len(job.hosts) * job.workload.elements for job in jobs)
    slots = 2 * scenario.switch.slots * scenario.switch.lanes
    return (AGENT_COPIES * tensors + slots) * wire.VALUE_BYTES


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
            unclear = expectation.metric == "links_as_predicted" and value is None
            why = f": {metrics['links_unclear']}" if unclear else ""
            missed.append(f"expected {expectation}, got {show(value)}{why}")
    return missed


def show(value: Any) -> str:
    """A metric's value for people."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _spread(times: Sequence[float]) -> dict[str, Any]:
    if not times:
        return {"median": None, "min": None, "max": None, "all": []}
    return {"median": median(times), "min": min(times), "max": max(times), "all": list(times)}


def _workers(result: JobResult) -> dict[str, dict[str, Any]]:
    workers: dict[str, dict[str, Any]] = {}
    for rank in range(len(result.tenant.hosts)):
        events = [done.ended[rank] for done in result.rounds if rank in done.ended]
        counts = {k: sum(event["stats"].get(k, 0) for event in events) for k in WORKER_COUNTS}
        workers[str(rank)] = {**counts, "cpu_s": sum(event["cpu_s"] for event in events)}
    return workers


def _switches(measured: Measurements, lost: Mapping[str, Lost]) -> dict[str, dict[str, Any]]:
    names = [result.tenant.name for result in measured.outcome.jobs]
    return {
        switch.name: {
            "packets": {
                kind: sum(packets for packets, _ in cells.values())
                for kind, cells in measured.counters[switch.name].items()
            },
            "jobs": {
                name: {
                    kind: cells.get(index, (0, 0))[0]
                    for kind, cells in measured.counters[switch.name].items()
                    if len(cells) > 1
                }
                for index, name in enumerate(names)
            },
            "ring_drops": max(switch.ring_drops, lost.get(switch.name, NOTHING_LOST).before),
            "queue_drops": lost.get(switch.name, NOTHING_LOST).after,
            "port_errors": _port_errors(switch),
            "cpu_s": measured.outcome.usage.cpu_s.get(switch.name, 0.0),
        }
        for switch in measured.statistics.switches
    }


def _port_errors(switch: SwitchStatistics) -> int:
    """Frames no link counts: those a link's queue refused (tx_drops) are in its queue_drops."""
    ports = switch.details.get("ports", {})
    assert isinstance(ports, Mapping)
    return sum(port.get(name, 0) for port in ports.values() for name in PORT_ERRORS)


def _links(statistics: NetworkStatistics) -> dict[str, dict[str, dict[str, Any]]]:
    links: dict[str, dict[str, dict[str, Any]]] = {}
    for way in statistics.directions:
        links.setdefault(way.link, {})[way.direction] = {
            "seen": way.seen,
            "dropped": way.dropped_injected,
            "duplicated": way.duplicated,
            "bytes": way.bytes,
            "queue_drops": way.dropped_by_queue,
        }
    return links


def _totals(
    jobs: Mapping[str, Any], switches: Mapping[str, Any], links: Mapping[str, Any]
) -> dict[str, int]:
    ways = [way for link in links.values() for way in link.values()]
    packets = [switch["packets"] for switch in switches.values()]
    workers = [worker for job in jobs.values() for worker in job["workers"].values()]
    return {
        "retransmitted": sum(worker["retransmitted"] for worker in workers),
        "injected_drops": sum(way["dropped"] for way in ways),
        "other_drops": sum(way["queue_drops"] for way in ways)
        + sum(switch[name] for switch in switches.values() for name in SWITCH_DROPS)
        + sum(worker["kernel_drops"] for worker in workers),
        "malformed": sum(worker["malformed"] for worker in workers)
        + sum(p.get("refused", 0) + p.get("malformed", 0) for p in packets),
    }


def _evidence(
    graph: Topology, totals: Mapping[str, int], links: Mapping[str, Any], measured: Measurements
) -> fidelity.Evidence:
    spans = _spans(measured.outcome)
    shares = [
        links[link.name][name]["bytes"] / capacity
        for link in graph.links
        for name, _, _, way in link.directions()
        if way.rate_bps and (capacity := _capacity_bytes(way.rate_bps, link.frame_bytes, spans))
    ]
    return fidelity.Evidence(
        rate_share=max(shares, default=0.0),
        usage=measured.outcome.usage,
        processors=measured.processors,
        injected_drops=totals["injected_drops"],
        other_drops=totals["other_drops"],
    )


def _capacity_bytes(rate_bps: int, frame_bytes: int, spans: Sequence[tuple[int, int]]) -> float:
    """What a link can carry in these times: each may find its token bucket full."""
    seconds = sum(end - start for start, end in spans) / NS_PER_S
    return rate_bps * seconds / 8 + len(spans) * burst_bytes(rate_bps, frame_bytes)


def _spans(outcome: Outcome) -> list[tuple[int, int]]:
    """When at least one job was in a round, ns: all attempts, for all of them sent bytes. Where
    none was broken off the workers' own times say it most closely."""
    if any(result.restarts or result.failure for result in outcome.jobs):
        return outcome.under_way_ns
    spans = sorted(
        (min(e["start_ns"] for e in ended), max(e["end_ns"] for e in ended))
        for result in outcome.jobs
        for done in result.rounds
        if (ended := list(done.ended.values()))
    )
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            before = joined.pop()
            start, end = before[0], max(end, before[1])
        joined.append((start, end))
    return joined
