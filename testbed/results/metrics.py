"""Computes metrics.json from the Measurements of a run. The result depends on nothing else, such as
files or clocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf, isfinite
from statistics import fmean, median
from typing import Any, Protocol, runtime_checkable

import numpy as np

from agglab.testbed.base.traffic_counters import NetworkStatistics, SwitchStatistics
from agglab.testbed.base.worker_id import Event
from agglab.testbed.judge import fidelity, findings, link_bytes, unexplained_counts
from agglab.testbed.judge.fairness import completion_s, elements_per_s, fairness
from agglab.testbed.judge.frame_conservation import ON_REAL_LINKS
from agglab.testbed.judge.link_utilization import busiest_share
from agglab.testbed.judge.queue_losses import LostFrames, lost_inside
from agglab.testbed.results.chunk_latencies import percentiles
from agglab.testbed.results.series_table import sent_rates
from agglab.testbed.run.measurements import Measurements
from agglab.testbed.run.outcome import ControlCounts, JobResult, Outcome
from agglab.testbed.run.programs.program_state import ProgramState
from agglab.testbed.run.samples import Record
from agglab.testbed.scenario import ResolvedScenario, workloads
from agglab.testbed.scenario.workloads import reductions
from agglab.testbed.scenario.workloads.correctness import all_exact, combine
from agglab.testbed.scenario.workloads.judged_time import ROUND
from agglab.testbed.schema.expectations import FINDINGS, Expectation
from agglab.testbed.schema.faults import Impair
from agglab.testbed.systems.base import ActiveJob, Bounds, System, tensor_bytes

OF_ALL_JOBS = ("exact", "wrong_sums", "wrong_results", "completion_s", "switch_share")
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
    "network_errors",
    "bytes_sent",
    "bytes_received",
)
SWITCH_DROPS = ("ring_drops", "queue_drops", "port_errors")
OF_BOUNDS = (
    "payload_bound_s",
    "link_bound_s",
    "link_bound_ratio",
    "lossy_bound_s",
    "lossy_bound_ratio",
    "window_share",
)
UNBOUNDED = Bounds(0.0, 0.0, 0.0, 1.0)
"""The bounds of a job whose scenario does not say what it reduces."""
NOTHING_LOST = LostFrames(0, 0)
BRIEF_WINDOWS = 4
NOTHING_COMPARED = "no sum was compared with a right one"
PORT_ERRORS = ("rx_truncated", "rx_gso_drops", "tx_oversize", "tx_errors")


def compute(resolved: ResolvedScenario, measured: Measurements) -> dict[str, Any]:
    """Returns the whole of metrics.json except `ok`, `verdict`, `reason` and `second_opinion`
    (overall_verdict.py)."""
    results = measured.outcome.jobs
    jobs = {result.job.name: _job(resolved, result, measured.record) for result in results}
    lost = lost_inside(resolved, measured) if resolved.target == "bmv2" else {}
    switches = _switches(measured, lost)
    links = _links(measured.statistics)
    as_predicted, unclear = link_bytes.compare(resolved, measured, links)
    totals = _totals(resolved.system, jobs, switches, links)
    evidence = _evidence(resolved, jobs, totals, measured)
    case = findings.Case(
        measured,
        resolved,
        jobs,
        totals,
        evidence.losses,
        "virtual" if resolved.virtual else resolved.target,
        fidelity.short_of_processors(evidence),
    )
    found = findings.find(case)
    return {
        "exact": all_exact(job["exact"] for job in jobs.values()),
        "wrong_sums": sum(job["wrong_sums"] for job in jobs.values()),
        "wrong_results": sum(job["wrong_results"] for job in jobs.values()),
        "first_wrong": next(filter(None, map(_first_wrong, results)), None),
        "completion_s": _mean_of([job["completion_s"] for job in jobs.values()]),
        "switch_share": _mean_of([job["switch_share"] for job in jobs.values()]),
        **_only(jobs),
        "jobs": jobs,
        "fairness": fairness(results),
        "failure": _failure(measured.outcome),
        "faults": _faults(measured.outcome),
        "attack": measured.outcome.attacked,
        "totals": totals,
        "switches": switches,
        "links": links,
        "links_as_predicted": as_predicted,
        "links_unclear": unclear,
        "accounts": _accounts(found, measured),
        "findings": [finding.to_json() for finding in found],
        "doubts": [doubt.to_json() for doubt in unexplained_counts.doubts(case)],
        "fidelity": fidelity.judge(evidence),
    }


def _accounts(found: Sequence[findings.Finding], measured: Measurements) -> dict[str, Any]:
    """Returns whether every frame is accounted for. Returns None (null in metrics.json) on real
    links, where counters cannot all be read at the same moment."""
    if not measured.statistics.nodes:
        return {"balanced": None, "unclear": ON_REAL_LINKS}
    return {"balanced": all(finding.kind != "accounts" for finding in found), "unclear": ""}


def _job(resolved: ResolvedScenario, result: JobResult, record: Record) -> dict[str, Any]:
    """Returns one job's metrics. A job that has not completed a round has no times."""
    job, system = result.job, resolved.system
    kind = workloads.KINDS[job.work.kind]
    bound = (
        UNBOUNDED
        if kind.unpredictable and not kind.reduces_elements
        else reductions.bounds_of_first(resolved, resolved.whole(job), len(result.rounds))
    )
    times = [done.time_s for done in result.rounds if done.number >= job.warmup]
    verdict = combine([verdict for _, verdict in result.judged])
    judged_floats = result.judged and job.dtype == "float32"
    middle = median(times) if times else None
    servers, share = _servers(system, result), system.switch_work(resolved).share
    limits = _gain_limits(resolved, result)
    return {
        "exact": verdict.exact if result.verdicts or verdict.wrong_sums else None,
        "wrong_sums": verdict.wrong_sums,
        "wrong_results": verdict.wrong_results,
        "error": {
            "max_abs": None if verdict.max_abs == inf else verdict.max_abs,
            "bound": verdict.bound,
            "within": verdict.wrong_results == 0 if judged_floats else None,
        },
        "allreduce": {
            "time_s": _spread(times),
            "ate_per_s": job.elements / middle if middle and kind.reduces_elements else None,
        },
        "latency_s": percentiles(
            counts for worker, counts in record.latencies.items() if worker.job == job.number
        ),
        "send_rate_bps": _send_rate(record, result),
        **_bounds(bound, middle, kind.reduces_elements),
        "rounds": len(result.rounds),
        "restarts": result.restarts,
        "lost": len(result.lost),
        "lost_workers": [job.hosts[rank] for rank in result.lost],
        "completion_s": completion_s(result),
        "elements_per_s": elements_per_s(result),
        "switch_share": share(list(servers.values())) if result.rounds else None,
        "workers": _workers(system, result),
        **({"servers": servers} if system.abilities.has_servers else {}),
        **({} if kind.headline == ROUND else {"headline": kind.headline.to_json()}),
        **kind.summary(job.work, times, result.verdicts),
        **({"gain_limits": limits} if limits else {}),
        **({"control": _control(result.control)} if result.control else {}),
    }


def _send_rate(record: Record, result: JobResult) -> dict[str, float | None]:
    """Returns percentiles of the rate at which all agents of the job sent together, over the
    sampling intervals that lie within rounds. The percentiles are None if there is no such
    interval."""
    moments, rates = sent_rates(record, result.job.number)
    within = np.zeros(len(moments), bool)
    for done in result.rounds:
        within |= (moments - record.every_ns >= done.start_ns) & (moments <= done.end_ns)
    rates = rates[within & np.isfinite(rates)]
    if not len(rates):
        return {"median": None, "p10": None}
    median_bps, p10_bps = np.percentile(rates, [50, 10])
    return {"median": float(median_bps), "p10": float(p10_bps)}


def _control(counts: ControlCounts) -> dict[str, float]:
    return {
        "steps": counts.steps,
        "deadlines": counts.deadlines,
        "missed": counts.missed,
        "entries": counts.entries,
        "latest_s": counts.latest_ns / 1e9,
    }


def _bounds(
    bounds: Bounds | None, time_s: float | None, reduces_elements: bool
) -> dict[str, float | None]:
    """Returns the bounds of a round, and the ratios of its median time to them. All are None for a
    system that does not know them."""
    if bounds is None:
        return dict.fromkeys(OF_BOUNDS)
    return {
        "payload_bound_s": bounds.payload_s if reduces_elements else None,
        "link_bound_s": bounds.link_s,
        "link_bound_ratio": _ratio(time_s, bounds.link_s),
        "lossy_bound_s": bounds.lossy_s,
        "lossy_bound_ratio": _ratio(time_s, bounds.lossy_s),
        "window_share": bounds.window_share,
    }


def _ratio(time_s: float | None, bound_s: float) -> float | None:
    """Returns the time divided by its lower bound. Returns None if no round was completed, or if
    there is no bound because links carry nothing."""
    return time_s / bound_s if time_s is not None and bound_s else None


def _only(jobs: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns the job's metrics that are repeated at the top level, if the scenario has only one
    job."""
    if len(jobs) > 1:
        return {}
    (job,) = jobs.values()
    return {name: value for name, value in job.items() if name not in OF_ALL_JOBS}


def _first_wrong(result: JobResult) -> dict[str, Any] | None:
    """Returns the first array of a job that has a wrong element, and the position of that
    element."""
    for number, verdict in sorted(result.judged, key=lambda judged: judged[0]):
        if first := verdict.first:
            return {
                "job": result.job.name,
                "worker": result.job.hosts[first.rank],
                "rank": first.rank,
                "round": number,
                "what": first.what,
                "index": first.index,
                "expected": first.expected,
                "allowed": first.allowed,
                "got": _plain(first.got),
            }
    return None


def _plain(value: float | int | str) -> float | int | str:
    """Returns the value in a form that JSON can express. JSON has no NaN."""
    return value if isinstance(value, str) or isfinite(value) else str(value)


def _mean_of(values: Sequence[float | None]) -> float | None:
    """Returns the mean; None if a value is None."""
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _failure(outcome: Outcome) -> dict[str, Any] | None:
    """Returns the first job that failed, and why."""
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


def shortcomings(
    outcome: Outcome, found: Sequence[Mapping[str, Any]], expected: Sequence[Expectation]
) -> list[str]:
    """Returns the reasons for which a run fails unless the scenario expects them: wrong sums or
    results, failed jobs, faults that never began, and findings (as in metrics.json)."""
    metrics = {expectation.metric for expectation in expected}
    missed = [_wrong(r) for r in outcome.jobs if _is_wrong_unexpectedly(r, expected)]
    missed += [
        f"{fault} never began, because the run was already over" for fault in outcome.never_begun
    ]
    if not any(metric.startswith("failure.") for metric in metrics):
        missed += [r.failure.reason for r in outcome.jobs if r.failure]
    return missed + findings.unexpected(found, *stated_kinds(expected))


def stated_kinds(expected: Sequence[Expectation]) -> tuple[list[str], list[str]]:
    """Returns the kinds of findings that a scenario requires, and those that it allows."""
    stated = [e for e in expected if e.metric == FINDINGS]
    required, allowed = (
        [kind for e in stated if e.optional == optional for kind in e.listed]
        for optional in (False, True)
    )
    return required, allowed


def _wrong(result: JobResult) -> str:
    """Returns a sentence about the first wrong sum or result of a job, and about how many are
    wrong."""
    first = _first_wrong(result)
    assert first is not None
    place = first["what"] if first["index"] is None else f"{first['what']}[{first['index']}]"
    allowed = "" if first["allowed"] is None else f" within {first['allowed']:.3g}"
    wanted, got = (
        f"{value:.9g}" if isinstance(value, float) else value
        for value in (first["expected"], first["got"])
    )
    verdict = combine([verdict for _, verdict in result.judged])
    return (
        f"{first['worker']} (worker {first['rank']} of {first['job']}), round {first['round']}: "
        f"{place} is {got}, but {wanted} was expected{allowed}; {verdict.wrong_sums} sums and "
        f"{verdict.wrong_results} results are wrong"
    )


def _is_wrong_unexpectedly(result: JobResult, expected: Sequence[Expectation]) -> bool:
    """Returns whether a job's sums or results are wrong although the scenario does not say that
    they are or may be. Wrong sums explain wrong results, but right sums do not."""
    verdict = combine([verdict for _, verdict in result.judged])
    sums, results = (
        _is_expected(result, expected, flag, count)
        for flag, count in (("exact", "wrong_sums"), ("error.within", "wrong_results"))
    )
    if result.job.dtype != "float32":
        sums = sums or results  # the result is the sum
    results = results or (sums and verdict.wrong_sums > 0)
    return bool(verdict.wrong_sums and not sums) or bool(verdict.wrong_results and not results)


def _is_expected(result: JobResult, expected: Sequence[Expectation], flag: str, count: str) -> bool:
    """Returns whether the scenario expects `flag` to be false, or states `count`, for this job or
    for all."""
    of_job = f"jobs.{result.job.name}."
    stated = {e.metric.removeprefix(of_job): e for e in expected}
    return count in stated or (flag in stated and stated[flag].equals is False)


def memory_needed_bytes(resolved: ResolvedScenario) -> int:
    """Returns about how many bytes the system and the agents' arrays (input, output, sums, the next
    input) need."""
    system, scenario = resolved.system, resolved.scenario
    tensors = sum(len(job.hosts) * tensor_bytes(system, scenario, job) for job in resolved.jobs)
    return AGENT_COPIES * tensors + system.memory_bytes(resolved)


def lookup(metrics: Mapping[str, Any], path: str) -> Any:
    """Returns the value at a dotted path; None if there is none."""
    value: Any = metrics
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def failures(metrics: Mapping[str, Any], expected: Sequence[Expectation]) -> list[str]:
    """Returns a text such as `expected x <= 1, got 2` for each expectation that does not hold."""
    missed = []
    for expectation in expected:
        if expectation.metric == FINDINGS:
            continue  # a list of its own, judged by `shortcomings`
        value = lookup(metrics, expectation.metric)
        if not expectation.holds(value):
            why = _why_unknown(expectation.metric, value, metrics)
            missed.append(f"expected {expectation}, got {show(value)}{why}")
    return missed


def _why_unknown(metric: str, value: Any, metrics: Mapping[str, Any]) -> str:
    """Returns, after a colon, why a metric has no value or one that says nothing of the network."""
    if metric == "links_as_predicted" and metrics["links_unclear"]:
        return f": {metrics['links_unclear']}"
    if metric.endswith("exact") and value is None:
        return f": {NOTHING_COMPARED}"
    if metric == "fidelity.verdict" and value in fidelity.OF_THE_MACHINE:
        return ": the machine was too slow for this run"
    return ""


def show(value: Any) -> str:
    """Returns a metric's value as text for people."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _spread(times: Sequence[float]) -> dict[str, Any]:
    if not times:
        return {"median": None, "min": None, "max": None, "all": []}
    return {"median": median(times), "min": min(times), "max": max(times), "all": list(times)}


@runtime_checkable
class Gaining(Protocol):
    """A system that can say what limits the gain for which one chooses it."""

    def gain_limits(self, resolved: ResolvedScenario, job: ActiveJob) -> Iterator[str]:
        """Yields sentences about the job's inputs, which the summary and the report show."""


def _gain_limits(resolved: ResolvedScenario, result: JobResult) -> list[str]:
    system = resolved.system
    if not result.rounds or not isinstance(system, Gaining):
        return []
    return list(system.gain_limits(resolved, resolved.whole(result.job)))


def _workers(system: System, result: JobResult) -> dict[str, dict[str, Any]]:
    workers: dict[str, dict[str, Any]] = {}
    names = (*WORKER_COUNTS, *system.host_counters)
    reports: defaultdict[int, list[Event]] = defaultdict(list)
    for report in result.reports:
        reports[report["rank"]].append(report)
    for rank in range(len(result.job.hosts)):
        events = reports[rank]
        counts = {k: sum(event["stats"].get(k, 0) for event in events) for k in names}
        workers[str(rank)] = {**counts, "cpu_s": sum(event.get("cpu_s", 0.0) for event in events)}
    return workers


def _servers(system: System, result: JobResult) -> dict[str, dict[str, Any]]:
    """Returns the servers' metrics by number, from 0."""
    names = (*WORKER_COUNTS, *system.host_counters)
    servers: dict[str, dict[str, Any]] = {}
    for number, rank in enumerate(sorted(result.servers)):
        counted = [event["stats"] for event in result.served if event["rank"] == rank]
        servers[str(number)] = {name: sum(s.get(name, 0) for s in counted) for name in names}
    return servers


def _switches(measured: Measurements, lost: Mapping[str, LostFrames]) -> dict[str, dict[str, Any]]:
    names = [result.job.name for result in measured.outcome.jobs]
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
            **_own_counts(measured.programs.get(switch.name)),
            "ring_drops": max(switch.ring_drops, lost.get(switch.name, NOTHING_LOST).before),
            "queue_drops": lost.get(switch.name, NOTHING_LOST).after,
            "port_errors": _port_errors(switch),
            "register_bits": measured.register_bits[switch.name],
            "cpu_s": measured.outcome.usage.cpu_s.get(switch.name, 0.0),
        }
        for switch in measured.statistics.switches
    }


def _own_counts(state: ProgramState | None) -> dict[str, Any]:
    """Returns the counts of a program's own counters, under the key that they have in the metrics;
    nothing if there are none."""
    return {"program": state.totals} if state and state.counters else {}


def _port_errors(switch: SwitchStatistics) -> int:
    """Returns the number of frames that the switch's ports lost and no link counts. Frames that a
    link's queue refused (tx_drops) are not included, because the link's `queue_drops` counts
    them."""
    ports = switch.details.get("ports", {})
    assert isinstance(ports, Mapping)
    return sum(port.get(name, 0) for port in ports.values() for name in PORT_ERRORS)


def _links(statistics: NetworkStatistics) -> dict[str, dict[str, dict[str, Any]]]:
    links: dict[str, dict[str, dict[str, Any]]] = {}
    for way in statistics.directions:
        links.setdefault(way.link, {})[way.direction] = {
            "seen": way.seen,
            "dropped": way.dropped_injected,
            "lost_down": way.lost_link_down,
            "corrupted": way.corrupted,
            "duplicated": way.duplicated,
            "packets": way.packets,
            "bytes": way.bytes,
            "queue_drops": way.dropped_by_queue,
        }
    return links


def _totals(
    system: System, jobs: Mapping[str, Any], switches: Mapping[str, Any], links: Mapping[str, Any]
) -> dict[str, int]:
    ways = [way for link in links.values() for way in link.values()]
    tallies = {kind: counter.tally for kind, counter in system.counters.items()}

    def tally(name: str) -> int:
        counted = (switch["packets"].items() for switch in switches.values())
        return sum(n for kinds in counted for kind, n in kinds if tallies[kind] == name)

    agents = [job[role] for job in jobs.values() for role in ("workers", "servers") if role in job]
    servers = [server for job in jobs.values() for server in job.get("servers", {}).values()]
    workers = [agent for by_number in agents for agent in by_number.values()]
    return {
        "sent": sum(worker["sent"] for worker in workers),
        "retransmitted": sum(worker["retransmitted"] for worker in workers),
        "injected_drops": sum(way["dropped"] for way in ways),
        "lost_down": sum(way["lost_down"] for way in ways),
        "other_drops": sum(way["queue_drops"] for way in ways)
        + sum(switch[name] for switch in switches.values() for name in SWITCH_DROPS)
        + sum(worker["kernel_drops"] for worker in workers),
        "malformed": sum(worker["malformed"] for worker in workers) + tally("malformed"),
        "forged": tally("forged"),
        "network_errors": sum(worker["network_errors"] for worker in workers),
        "server_bytes": sum(server["bytes_received"] for server in servers),
    }


def _evidence(
    resolved: ResolvedScenario,
    jobs: Mapping[str, Any],
    totals: Mapping[str, int],
    measured: Measurements,
) -> fidelity.Evidence:
    begun, ways = measured.outcome.begun, measured.statistics.directions
    workers = [worker for job in jobs.values() for worker in job["workers"].values()]
    lost = totals["injected_drops"] + totals["lost_down"] + totals["other_drops"]
    losses = lost + sum(way.corrupted for way in ways)
    delaying = [f for f in begun if isinstance(f.action, Impair)]
    directions = [way for link in resolved.graph.links for *_, way in link.directions()]
    return fidelity.Evidence(
        rate_share=busiest_share(resolved.graph, measured.outcome, not resolved.virtual),
        usage=measured.outcome.usage,
        processors=measured.processors,
        injected_drops=totals["injected_drops"],
        other_drops=totals["other_drops"],
        sent=sum(worker["sent"] for worker in workers),
        retransmitted=totals["retransmitted"],
        unexplained=findings.unexplained_repeats(measured, jobs, losses),
        losses=losses,
        faults=tuple(dict.fromkeys(f.kind for f in findings.holding_up(begun))),
        window_share=_smallest_window(jobs),
        delayed=bool(delaying) or any(way.delay_us or way.impairments for way in directions),
        brief=all(_is_brief(resolved, result) for result in measured.outcome.jobs),
    )


def _smallest_window(jobs: Mapping[str, Any]) -> float:
    """Returns the smallest share of the links' rate that a job's window allows; 1 if no window is
    known to be a limit."""
    shares = (job["window_share"] for job in jobs.values())
    return min((share for share in shares if share is not None), default=1.0)


def _is_brief(resolved: ResolvedScenario, result: JobResult) -> bool:
    """Returns whether a round has so few windows of chunks that filling and emptying the path takes
    about as long as the rest."""
    return resolved.chunks(result.job) <= BRIEF_WINDOWS * result.job.window
