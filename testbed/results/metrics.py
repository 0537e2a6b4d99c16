"""Computes metrics.json from the Measurements of a run. The result depends on nothing else, such as
files or clocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from statistics import fmean, median
from typing import Any, Protocol, runtime_checkable

import numpy as np

from agglab.testbed.judge import fidelity, findings, link_bytes, unexplained_counts
from agglab.testbed.judge.fairness import completion_s, elements_per_s, fairness
from agglab.testbed.judge.frame_conservation import ON_REAL_LINKS
from agglab.testbed.judge.link_utilization import busiest_share
from agglab.testbed.judge.queue_losses import lost_inside
from agglab.testbed.results import counts
from agglab.testbed.results.chunk_latencies import percentiles
from agglab.testbed.results.series_table import sent_rates
from agglab.testbed.results.shortcomings import first_wrong
from agglab.testbed.run.measurements import Measurements
from agglab.testbed.run.outcome import ControlCounts, JobResult, Outcome
from agglab.testbed.run.samples import Record
from agglab.testbed.scenario import ResolvedScenario, workloads
from agglab.testbed.scenario.workloads import reductions
from agglab.testbed.scenario.workloads.correctness import all_exact, combine
from agglab.testbed.scenario.workloads.judged_time import ROUND
from agglab.testbed.schema.faults import Impair
from agglab.testbed.schema.run_metrics import OF_ALL_JOBS
from agglab.testbed.systems.base import ActiveJob, Bounds

UNBOUNDED = Bounds(0.0, 0.0, 0.0, 1.0)
"""The bounds of a job whose scenario does not say what it reduces."""
BRIEF_WINDOWS = 4


def compute(resolved: ResolvedScenario, measured: Measurements) -> dict[str, Any]:
    """Returns the whole of metrics.json except `ok`, `verdict`, `reason` and `second_opinion`
    (overall_verdict.py)."""
    results = measured.outcome.jobs
    jobs = {result.job.name: _job(resolved, result, measured.record) for result in results}
    lost = lost_inside(resolved, measured) if resolved.target == "bmv2" else {}
    switches = counts.switches(measured, lost)
    links = counts.links(measured.statistics, resolved.graph, measured.outcome.begun)
    as_predicted, unclear = link_bytes.compare(resolved, measured, links)
    totals = counts.totals(resolved.system, jobs, switches, links)
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
        "first_wrong": next(filter(None, map(first_wrong, results)), None),
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
    servers, share = counts.servers(system, result), system.switch_work(resolved).share
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
        "workers": counts.workers(system, result),
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
        return dict.fromkeys(_bounds(UNBOUNDED, time_s, reduces_elements))
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
    of_all_jobs = {metric.path for metric in OF_ALL_JOBS}
    return {name: value for name, value in job.items() if name not in of_all_jobs}


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
