"""What a run should not show unless its scenario expects it: faults of the program or its workers
that leave every sum right.

Each finding has a kind, a sentence and numbers. In virtual time every retransmission is accounted
for; on real links it is what remains of their count when all losses have had their share, and
nothing is said of timers on a machine that was short of processors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agglab.testbed.accounts import imbalances
from agglab.testbed.faults import Attack, Fault, Impair, SwitchReprogram, SwitchRestart
from agglab.testbed.measurements import Measurements
from agglab.testbed.queue_losses import Balance, balances
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.workloads import KINDS
from agglab.topologies.graph import COPYING, DELAYING

AGAIN_A_LOSS = 2
"""On real links: every worker of the job may send a chunk again for a loss, and the next one."""
AGAIN_SHARE, AGAIN_A_WORKER = 0.01, 16
"""On real links: so many more are forgiven, of all sent or for each worker (twice PROBES of
worker.c): a moment's pause of a process makes all others ask."""
MOVING = 128
"""Frames on real links that a switch may have counted and not yet sent, or the other way round."""
SLOW_TIMES, SLOW_S = 3.0, 0.1
"""A round is slow that takes so many times its bound and, on real links, so much longer."""
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
    """What findings are drawn from.

    jobs, totals: as in metrics.json. losses: frames lost on the way, for whatever reason. short:
    why timers may have been late for want of a processor, or nothing.
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
    """All of them, the surest first."""
    found = list(_in_switches(case))
    found += _sent_again(case)
    found += _refused(case)
    found += slow_rounds(case)
    found += _small_windows(case)
    if case.virtual:
        found += [Finding("accounts", text) for text in imbalances(case.measured)]
    return found


def unexpected(
    found: Sequence[Mapping[str, Any]], expected: Sequence[str], allowed: Sequence[str] = ()
) -> list[str]:
    """Why a run with these findings (as in metrics.json) is not what was expected. allowed: kinds
    that it may show or not."""
    kinds, known = {finding["kind"] for finding in found}, {*expected, *allowed}
    missed = [f"{f['kind']}: {f['text']}" for f in found if f["kind"] not in known]
    return missed + [
        f"expected a finding {kind!r}, got none" for kind in expected if kind not in kinds
    ]


def unexplained_repeats(measured: Measurements, jobs: Mapping[str, Any], losses: int) -> int:
    """Contributions sent again for no reason that the network knows of."""
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
    """Of the faults that began, those that keep somebody from sending or answering in time."""
    return [fault for fault in begun if not isinstance(fault.action, Impair | Attack)]


def _delayed(begun: Sequence[Fault]) -> bool:
    return any(
        isinstance(f.action, Impair) and isinstance(f.action.impairment, DELAYING + COPYING)
        for f in begun
    )


def _sent_again(case: Case) -> Iterator[Finding]:
    unexplained = unexplained_repeats(case.measured, case.jobs, case.losses)
    workers = [worker for job in case.jobs.values() for worker in job["workers"].values()]
    sent = sum(worker["sent"] for worker in workers)
    allowed = 0 if case.virtual else max(AGAIN_SHARE * sent, AGAIN_A_WORKER * len(workers))
    if unexplained <= allowed or case.short:
        return
    repeats = case.measured.statistics.repeats
    example = f" ({repeats.examples[0]})" if repeats and repeats.examples else ""
    yield Finding(
        "sent-again",
        f"{unexplained} of {sent} packets were sent again although nothing that they waited for "
        f"was lost or late{example}",
        {"unexplained": unexplained, "retransmitted": case.totals["retransmitted"], "sent": sent},
    )


def _in_switches(case: Case) -> Iterator[Finding]:
    """What programs did against what they counted. Nobody can tell where members left a job, or
    where a real switch forgot its counters; nor, beside frames with changed bits or a stranger's,
    what else a program should have sent."""
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
                f"{switch}'s program was given {found.came - stopped} frames and counted "
                f"{found.counted}",
                {"given": found.came - stopped, "counted": found.counted},
            )


def _sent_by(
    switch: str, found: Balance, slack: int, inside: int, foreign: bool
) -> Iterator[Finding]:
    numbers = {"owed": found.owed, "sent": found.went}
    if found.owed - found.went > slack + inside:
        yield Finding(
            "lost-in-switch",
            f"{switch}'s program should have sent {found.owed} frames by its own counters, and "
            f"sent {found.went}",
            numbers,
        )
    if found.went - found.owed > slack and not foreign:
        yield Finding(
            "sent-unasked",
            f"{switch}'s program sent {found.went} frames, {found.owed} by its own counters",
            numbers,
        )


def _dropped_inside(case: Case, switch: str) -> int:
    """Frames that a real switch's ports could not send, which are counted already."""
    details = next(s.details for s in case.measured.statistics.switches if s.name == switch)
    ports: Any = details.get("ports", {})
    return sum(port.get(k, 0) for port in ports.values() for k in ("tx_oversize", "tx_errors"))


def _stopped(case: Case, switch: str) -> int:
    nodes = case.measured.statistics.nodes
    return next((n.ignored + n.waiting for n in nodes if n.name == switch), 0)


def _refused(case: Case) -> Iterator[Finding]:
    """Strangers' frames, changed ones, and what an earlier session left are refused rightly."""
    outcome = case.measured.outcome
    if any(result.restarts or result.failure or result.lost for result in outcome.jobs):
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
        f"{found} packets were refused, and {late} came for chunks that are over, which nothing in "
        "the scenario explains",
        {"refused": found, "stale": late, "explained": expected},
    )


def _stale(case: Case) -> int:
    """In virtual time a contribution is stale only if something held it up."""
    known = case.resolved.system.counters
    stale = [kind for kind, counter in known.items() if counter.tally == "stale"]
    counters = case.measured.counters.values()
    return sum(n for kinds in counters for kind in stale for n, _ in kinds.get(kind, {}).values())


def slow_rounds(case: Case) -> Iterator[Finding]:
    """Losses are in the bound only on average, so where frames were lost nobody can tell."""
    begun = case.measured.outcome.begun
    if case.losses or case.short or holding_up(begun) or _delayed(begun) or _disorderly(case):
        return
    for name, job in case.jobs.items():
        if job["lossy_bound_ratio"] is None:
            continue
        median_s, bound_s = job["allreduce"]["time_s"]["median"], job["lossy_bound_s"]
        bound_s *= len(case.jobs)
        if median_s > SLOW_TIMES * bound_s and (case.virtual or median_s - bound_s > SLOW_S):
            yield Finding(
                "slow",
                f"a round of {name} took {median_s:.4g} s, {median_s / bound_s:.1f} times what the "
                "links allow, and no packet was lost",
                {"time_s": median_s, "bound_s": bound_s},
            )


def _disorderly(case: Case) -> bool:
    return any(
        isinstance(impairment, DELAYING)
        for link in case.resolved.graph.links
        for _, _, _, way in link.directions()
        for impairment in way.impairments
    )


def _small_windows(case: Case) -> Iterator[Finding]:
    for name, job in case.jobs.items():
        if job["window_share"] < WINDOW_SHARE:
            yield Finding(
                "small-window",
                f"the window of {name} fills {job['window_share']:.0%} of the bandwidth-delay "
                "product: results cannot come faster than that share of the links' rate",
                {"share": job["window_share"]},
            )
