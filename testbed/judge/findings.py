"""Finds signs that the program or its workers have errors, even if every sum is right. A run must
not show them unless its scenario expects them. Warnings are findings that make no run fail.

Each finding has a kind, a sentence and numbers. In virtual time every retransmission is accounted
for. On real links, all retransmissions that losses explain are deducted first, and the remaining
ones are a finding. If the machine was short of processors, that may be why timers expired; then
what timers show is not a finding, but a doubt (unexplained_counts.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agglab.testbed.judge.collectives import NOT_AGGREGATED, not_aggregated
from agglab.testbed.judge.frame_conservation import imbalances
from agglab.testbed.judge.idle_paths import idle_paths
from agglab.testbed.judge.queue_losses import Balance, balances
from agglab.testbed.judge.switch_sums import missing_sums
from agglab.testbed.run.measurements import Measurements
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.scenario.workloads import KINDS
from agglab.testbed.schema.faults import (
    AgentCrash,
    Attack,
    Fault,
    Impair,
    SwitchReprogram,
    SwitchRestart,
)
from agglab.testbed.schema.finding_kinds import WARNINGS
from agglab.testbed.systems.unloaded_latency import trips_s
from agglab.topologies.graph import COPYING, DELAYING

AGAIN_A_LOSS = 2
"""On real links, how many retransmissions one loss explains for each worker of the job: a chunk and
the next one."""
AGAIN_SHARE, AGAIN_A_WORKER = 0.01, 16
"""On real links, how many more retransmissions are tolerated: AGAIN_SHARE of all frames sent, or
AGAIN_A_WORKER for each worker (twice PROBES of worker.c), whichever is more. When one process
pauses for a moment, all the others ask again."""
MOVING = 128
"""On real links, the most frames that a switch may have counted and not yet sent, or sent and not
yet counted."""
SLOW_TIMES, SLOW_S = 3.0, 0.1
"""A round counts as slow if it takes more than SLOW_TIMES times its bound. In virtual time, this
bound includes the round trips of its packets through empty queues. On real links, the round must
take more than SLOW_S seconds longer than its bound instead."""
WINDOW_SHARE = 0.75


@dataclass(frozen=True)
class Finding:
    kind: str
    text: str
    numbers: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """The data of one run from which findings are derived.

    jobs, totals: as in metrics.json. losses: frames lost in transit, for any reason. short: why
    timers may have been late for lack of a processor; empty if they were not.
    """

    measured: Measurements
    resolved: ResolvedScenario
    jobs: Mapping[str, Mapping[str, Any]]
    totals: Mapping[str, int]
    losses: int
    target: str
    short: str

    @property
    def virtual(self) -> bool:
        return self.measured.statistics.repeats is not None


def find(case: Case) -> list[Finding]:
    """Returns all findings, the most certain first."""
    found = [*_in_switches(case), *_too_early(case)]
    found += [] if case.short else _sent_again(case)
    found += _refused(case)
    found += [] if case.short else slow_rounds(case)
    found += _small_windows(case)
    found += [Finding(NOT_AGGREGATED, *each) for each in not_aggregated(case.jobs)]
    found += _missing_sums(case)
    if case.virtual:
        found += [Finding("accounts", text) for text in imbalances(case.measured)]
    return [*found, *_idle_paths(case)]


def by_timers(case: Case) -> list[Finding]:
    """Returns the findings that late processes alone can cause: expired timers and slow rounds."""
    return [*_sent_again(case), *slow_rounds(case)]


def unexpected(
    found: Sequence[Mapping[str, Any]], expected: Sequence[str], allowed: Sequence[str] = ()
) -> list[str]:
    """Returns why a run with these findings (as in metrics.json) is not what was expected.
    expected: kinds that the run must show. allowed: kinds that it may show."""
    kinds, known = {finding["kind"] for finding in found}, {*expected, *allowed}
    failing = (f for f in found if f["kind"] not in WARNINGS)
    missed = [f"{f['kind']}: {f['text']}" for f in failing if f["kind"] not in known]
    absent = [kind for kind in expected if kind not in kinds]
    return missed + [f"expected a finding of kind {k!r}, but there was none" for k in absent]


def unexplained_repeats(measured: Measurements, jobs: Mapping[str, Any], losses: int) -> int:
    """Returns the number of contributions that were sent again although nothing in the network
    explains it."""
    repeats = measured.statistics.repeats
    if repeats is not None:
        more = sum(repeats.consequences.values()) - sum(repeats.explained.values())
        return sum(repeats.unexplained.values()) + max(0, more)
    if holding_up(measured.outcome.begun) or _delayed(measured.outcome.begun):
        return 0
    workers = [worker for job in jobs.values() for worker in job["workers"].values()]
    again = sum(worker["retransmitted"] for worker in workers)
    forgiven = AGAIN_A_LOSS * losses * max((len(j["workers"]) for j in jobs.values()), default=0)
    return max(0, again - forgiven)


def holding_up(begun: Sequence[Fault]) -> list[Fault]:
    """Returns the faults that have begun and that keep an agent or switch from sending or answering
    in time."""
    return [fault for fault in begun if not isinstance(fault.action, Impair | Attack)]


def _delayed(begun: Sequence[Fault]) -> bool:
    return any(
        isinstance(f.action, Impair) and isinstance(f.action.impairment, DELAYING + COPYING)
        for f in begun
    )


def _sent_again(case: Case) -> Iterator[Finding]:
    unexplained = unexplained_repeats(case.measured, case.jobs, case.losses)
    unexplained = max(0, unexplained - intended_repeats(case))
    workers = [worker for job in case.jobs.values() for worker in job["workers"].values()]
    sent = sum(worker["sent"] for worker in workers)
    allowed = 0 if case.virtual else max(AGAIN_SHARE * sent, AGAIN_A_WORKER * len(workers))
    if unexplained <= allowed:
        return
    repeats = case.measured.statistics.repeats
    example = f" ({repeats.examples[0]})" if repeats and repeats.examples else ""
    yield Finding(
        "sent-again",
        f"{unexplained} of {sent} packets were sent again although neither they nor their "
        f"answers were lost or late{example}",
        {"unexplained": unexplained, "retransmitted": case.totals["retransmitted"], "sent": sent},
    )


def intended_repeats(case: Case) -> int:
    """Returns the number of packets that the system sent again although all was well."""
    counters = case.resolved.system.host_counters.items()
    names = [name for name, counter in counters if counter.explains_repeats]
    workers = [worker for job in case.jobs.values() for worker in job["workers"].values()]
    return sum(worker.get(name, 0) for worker in workers for name in names)


def _in_switches(case: Case) -> Iterator[Finding]:
    """Yields findings about switches whose programs sent or counted other frames than they should
    have. The counts cannot be compared if members left a job or a real switch lost its counters.
    With corrupted or foreign frames, it is not known what else a program should have sent."""
    outcome = case.measured.outcome
    emptied = any(isinstance(f.action, SwitchRestart | SwitchReprogram) for f in outcome.begun)
    left = any(result.lost for result in outcome.jobs)
    if left or case.target == "bmv2" or (emptied and not case.virtual):
        return
    scripted = any(KINDS[result.job.work.kind].unpredictable for result in outcome.jobs)
    foreign = scripted or bool(outcome.injected)
    foreign |= any(way.corrupted for way in case.measured.statistics.directions)
    slack = 0 if case.virtual else MOVING
    for switch, found in balances(case.resolved, case.measured).items():
        inside = _dropped_inside(case, switch)
        yield from _sent_by(switch, found, slack, inside, foreign)
        stopped = _stopped(case, switch)
        if case.virtual and not foreign and found.counted != found.came - stopped:
            yield Finding(
                "miscounted",
                f"the program of {switch} was given {found.came - stopped} frames, but counted "
                f"{found.counted}",
                {"given": found.came - stopped, "counted": found.counted},
            )


def _sent_by(
    switch: str, found: Balance, slack: int, inside: int, foreign: bool
) -> Iterator[Finding]:
    numbers = {"owed": found.expected, "sent": found.went}
    if found.expected - found.went > slack + inside:
        yield Finding(
            "lost-in-switch",
            f"the program of {switch} should have sent {found.expected} frames by its own "
            f"counters, but sent {found.went}",
            numbers,
        )
    if found.went - found.expected > slack and not foreign:
        yield Finding(
            "sent-unasked",
            f"the program of {switch} sent {found.went} frames, but only {found.expected} by its "
            "own counters",
            numbers,
        )


def _too_early(case: Case) -> Iterator[Finding]:
    work = case.resolved.system.switch_work(case.resolved)
    for result in case.measured.outcome.jobs:
        if result.started_ns is None or result.ended_ns is None:
            continue
        job = case.resolved.whole(result.job)
        ran_s = (result.ended_ns - result.started_ns) / 1e9
        for switch, counters in case.measured.counters.items():
            if what := work.too_early(job, counters, ran_s):
                yield Finding("too-early", f"the program of {switch} {what} ({result.job.name})")


def _missing_sums(case: Case) -> Iterator[Finding]:
    """Yields a finding for each job of which switches did not make the sums that they owed. Faults,
    delays and attackers are good reasons not to make one."""
    outcome = case.measured.outcome
    disturbed = _disorderly(case) or _delayed(outcome.begun) or holding_up(outcome.begun)
    if disturbed or outcome.attacked or outcome.injected:
        return
    if any(result.restarts or result.failure or result.lost for result in outcome.jobs):
        return
    for text, numbers in missing_sums(case.resolved, case.measured, case.losses):
        yield Finding(NOT_AGGREGATED, text, numbers)


def _dropped_inside(case: Case, switch: str) -> int:
    """Returns the number of frames that a real switch's ports could not send after its program had
    counted them."""
    details = next(s.details for s in case.measured.statistics.switches if s.name == switch)
    ports: Any = details.get("ports", {})
    return sum(port.get(k, 0) for port in ports.values() for k in ("tx_oversize", "tx_errors"))


def _stopped(case: Case, switch: str) -> int:
    nodes = case.measured.statistics.nodes
    return next((n.ignored + n.waiting for n in nodes if n.name == switch), 0)


def _refused(case: Case) -> Iterator[Finding]:
    """Yields a finding about packets that switches or agents refused without a reason. A reason is
    that a packet is foreign, corrupted or of an earlier session, or that it is for the agent before
    one that was started again."""
    outcome = case.measured.outcome
    renewed = any(isinstance(fault.action, AgentCrash) for fault in outcome.begun)
    if renewed or any(r.restarts or r.failure or r.lost for r in outcome.jobs):
        return
    ways = case.measured.statistics.directions
    changed = sum(way.corrupted for way in ways)
    copies = sum(way.duplicated for way in ways) if changed else 0
    expected = sum(outcome.injected.values()) + changed + copies
    found = case.totals["malformed"] + case.totals["forged"] - expected
    disorder = _disorderly(case) or _delayed(outcome.begun) or holding_up(outcome.begun)
    late = 0 if disorder or not case.virtual else _stale(case)
    if found <= 0 and not late:
        return
    found = max(0, found)
    yield Finding(
        "refused",
        f"{found} packets were refused and {late} arrived for chunks that were already "
        "complete, and nothing in the scenario explains these",
        {"refused": found, "stale": late, "explained": expected},
    )


def _stale(case: Case) -> int:
    """Returns the number of stale contributions that programs counted, which are contributions to a
    result that was already complete. In virtual time, only a delay makes a contribution stale."""
    known = case.resolved.system.counters
    stale = [kind for kind, counter in known.items() if counter.tally == "stale"]
    counters = case.measured.counters.values()
    return sum(n for kinds in counters for kind in stale for n, _ in kinds.get(kind, {}).values())


def slow_rounds(case: Case) -> Iterator[Finding]:
    """Yields a finding for each job whose median round took too long. The bound includes losses
    only on average, so runs with lost frames are not judged. Nor are jobs whose results depend on
    time, such as critical sections: their workers wait for each other, and not for links."""
    begun = case.measured.outcome.begun
    if case.losses or holding_up(begun) or _delayed(begun) or _disorderly(case):
        return
    jobs = case.resolved.jobs
    of_time = {job.name for job in jobs if KINDS[job.work.kind].depends_on_time(job.work)}
    for name, job in case.jobs.items():
        if name in of_time or job["lossy_bound_ratio"] is None:
            continue
        median_s = job["allreduce"]["time_s"]["median"]
        bound_s = job["lossy_bound_s"] * len(case.jobs) / (job["window_share"] or 1.0)
        if median_s > SLOW_TIMES * bound_s and median_s > _slow_from_s(case, name, bound_s):
            yield Finding(
                "slow",
                f"a round of {name} took {median_s:.4g} s, which is {median_s / bound_s:.1f} "
                "times what links and window allow, although no packet was lost",
                {"time_s": median_s, "bound_s": bound_s},
            )


def _slow_from_s(case: Case, name: str, bound_s: float) -> float:
    """Returns the time from which a round is slow even if it has few packets."""
    if not case.virtual:
        return bound_s + SLOW_S
    job = next(job for job in case.resolved.jobs if job.name == name)
    return SLOW_TIMES * (bound_s + trips_s(case.resolved, job))


def _disorderly(case: Case) -> bool:
    return any(
        isinstance(impairment, DELAYING)
        for link in case.resolved.graph.links
        for _, _, _, way in link.directions()
        for impairment in way.impairments
    )


def _idle_paths(case: Case) -> Iterator[Finding]:
    carried = {way.direction: way.bytes for way in case.measured.statistics.directions}
    bounds_s = {name: job["link_bound_s"] or 0.0 for name, job in case.jobs.items()}
    for each in idle_paths(case.resolved, bounds_s, carried):
        yield Finding("idle-paths", str(each), each.numbers())


def _small_windows(case: Case) -> Iterator[Finding]:
    for name, job in case.jobs.items():
        share = job["window_share"]
        if share is not None and share < WINDOW_SHARE:
            yield Finding(
                "small-window",
                f"the window of {name} fills only {share:.0%} of the "
                "bandwidth-delay product, so results cannot arrive faster than that share of "
                "the links' rate",
                {"share": share},
            )
