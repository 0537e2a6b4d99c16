"""The paths of metrics.json: what may stand in `expect:`, and the table in docs/results.md.

`*` stands for one name: a worker's rank, a switch, a link, a direction, a process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from agglab.testbed import workloads
from agglab.testbed.systems.base import System

_OF_JOB: dict[str, str] = {
    "error.max_abs": "float32: largest distance of a result from a float64 sum; null for int32 "
    "and where a result is Inf or NaN",
    "error.bound": "float32: what quantisation can cost at most; null for int32",
    "error.within": "float32: true if every result that a worker received is within its own bound; "
    "null for int32",
    "allreduce.time_s.median": "seconds from first start to last end, median of the rounds",
    "allreduce.time_s.min": "the fastest round",
    "allreduce.time_s.max": "the slowest round",
    "allreduce.time_s.all": "each round, in order",
    "allreduce.ate_per_s": "aggregated tensor elements per second: elements / median time",
    "latency_s.p50": "from a packet's first transmission by a worker or server until its answer, "
    "half of them at most; known to 1.6 %, null where the system does not tell",
    "latency_s.p90": "90 % of them at most",
    "latency_s.p99": "99 % of them at most",
    "latency_s.p999": "99.9 % of them at most",
    "latency_s.max": "the longest",
    "payload_bound_s": "tensor bytes / link rate",
    "link_bound_s": "bytes with headers across the busiest link, none twice / its rate",
    "link_bound_ratio": "median time / link_bound_s",
    "lossy_bound_s": "what losses allow: the links' time, or a round trip for each chunk of a slot "
    "and each loss",
    "lossy_bound_ratio": "median time / lossy_bound_s",
    "window_share": "of the busiest link's rate, what a window for each round trip comes to; 1 "
    "where it is no limit",
    "rounds": "rounds that ended",
    "restarts": "how often a round was broken off and run again in a new session",
    "lost": "workers that the job went on without (`on_failure: survivors`)",
    "lost_workers": "their hosts",
    "elements_per_s": "elements of all rounds / time from the job's start to its last round's end",
    "workers.*.sent": "frames sent by this worker (by rank)",
    "workers.*.received": "frames received",
    "workers.*.retransmitted": "frames sent again, as their results were late",
    "workers.*.duplicates": "results received again",
    "workers.*.late": "results of an earlier chunk",
    "workers.*.malformed": "frames that are no result of this job",
    "workers.*.timeouts": "of them, sent again after a silence; the others had been overtaken",
    "workers.*.kernel_drops": "frames that its socket had no room for",
    "workers.*.network_errors": "errors that ICMP messages reported to its socket, forged or not",
    "workers.*.bytes_sent": "bytes sent",
    "workers.*.bytes_received": "bytes received",
    "workers.*.cpu_s": "processor seconds during the rounds",
}
"""Of each job of any system, and at the top where there is one job only."""

_METRICS: dict[str, str] = {
    "ok": "true if the run finished and every expectation holds",
    "reason": "why not, in one line; empty if ok",
    "exact": "true if all integer sums of all workers and rounds are right, bit for bit",
    "wrong_sums": "integer sums that differ from an independent computation",
    "wrong_results": "elements of what `all_reduce` returned that are wrong: float32 beyond its "
    "bound, int32 not equal; all of a result that is missing, of another dtype or length",
    "first_wrong.job": "where the first wrong sum or result is; `first_wrong` is null if none is",
    "first_wrong.worker": "the host of the worker that received it",
    "first_wrong.rank": "that worker's rank",
    "first_wrong.round": "the round, from 0",
    "first_wrong.what": "`sum`: an integer; `result`: what `all_reduce` returned; `out`: the array "
    "it was given for that",
    "first_wrong.index": "the element; null where the whole array is missing or of another shape",
    "first_wrong.expected": "what it is by float64 or integer arithmetic; or the dtype and length",
    "first_wrong.allowed": "how far from that a float32 may be; null where it has to be equal",
    "first_wrong.got": "what it was",
    **_OF_JOB,
    "jobs.*.exact": "as `exact`, of one job by name",
    "jobs.*.wrong_sums": "as `wrong_sums`",
    "jobs.*.wrong_results": "as `wrong_results`",
    **{f"jobs.*.{path}": "" for path in _OF_JOB},
    "fairness.jain": "Jain's index of the jobs' elements_per_s by share: 1 is fair, 1/n is not",
    "fairness.shares.*": "this job's part of all jobs' elements_per_s",
    "failure.job": "the job that could not end; `failure` is null if all did",
    "failure.worker": "the host of the worker that was missing, if one was",
    "failure.after_s": "seconds from the last fault's begin (or the round's start) to the failure",
    "failure.reason": "in one line: who is missing, which chunks",
    "faults.never_begun": "declared faults whose time or chunk never came; the run is not ok then",
    "faults.never_begun_faults": "which",
    "totals.sent": "frames sent, all workers and servers",
    "totals.retransmitted": "frames sent again, all workers and servers",
    "totals.injected_drops": "packets dropped on purpose, all links",
    "totals.lost_down": "packets that arrived at links while these were down",
    "totals.other_drops": "packets lost that nobody dropped on purpose: queues, rings, sockets",
    "totals.malformed": "frames refused as malformed or foreign, by workers and switches",
    "totals.forged": "packets under an address that is not their sender's, refused by switches",
    "totals.network_errors": "errors that ICMP messages reported to workers' sockets",
    "attack.*": "frames that attacks sent, by kind",
    "switches.*.packets.*": "",
    "switches.*.jobs.*.*": "the same, as far as they have to do with jobs, of one job by name",
    "switches.*.ring_drops": "packets the switch's packet rings lost",
    "switches.*.queue_drops": "packets the switch's own egress queues lost (target bmv2)",
    "switches.*.port_errors": "packets cut short, too long for a port, or for one that is down",
    "switches.*.register_bits": "bits of all registers of the switch's program",
    "switches.*.cpu_s": "processor seconds during the rounds",
    "links.*.*.seen": "packets that arrived at the end of the link, in this direction",
    "links.*.*.dropped": "of them, dropped by injection",
    "links.*.*.lost_down": "of them, lost because the link was down",
    "links.*.*.corrupted": "of them, with a bit inverted by injection",
    "links.*.*.duplicated": "copies of them that injection made, which `seen` does not count",
    "links.*.*.packets": "packets that left the sender's queue, or (virtual time) wait in it",
    "links.*.*.bytes": "bytes that left the sender's queue",
    "links.*.*.queue_drops": "packets the link's queue had no room for",
    "links.*.*.predicted_bytes": "one chunk per slot and tag, whatever is below; null where a "
    "session was restarted",
    "links_as_predicted": "true if every direction carried its predicted bytes and what was "
    "counted as sent again, no more; null where nobody can tell",
    "links_unclear": "why nobody can tell; empty if it is not null",
    "accounts.balanced": "virtual time: true if the counters of links, hosts and workers agree, "
    "frame by frame; null on real links",
    "accounts.unclear": "why nobody can tell; empty if it is not null",
    "findings": "what the run should not show, each with `kind`, `text` and `numbers` (below)",
    "fidelity.verdict": "network-bound, waiting, cpu-bound or starved",
    "fidelity.waited_for": "where it is waiting: timers, faults, window, losses, brevity, delay or "
    "unknown; else null",
    "fidelity.reasons": "the evidence, in sentences",
}
"""Path -> meaning, of any system; `metrics` adds what a system declares."""

_OF_CONTROLLER = {
    "control.steps": "how often the job's controller was asked, before rounds and at deadlines",
    "control.deadlines": "how many of its deadlines have come",
    "control.missed": "of them, those whose table changes were in place later than it allows",
    "control.entries": "table entries that it had added and taken away, at all switches",
    "control.latest_s": "the longest time from a deadline until its changes were in place",
}
"""Of jobs whose system has a controller."""

PACKETS = "switches.*.packets."
GROWTH = "growth."
"""In a sweep, `growth.<path>` is the value at the last point / the value at the first; in a
comparison `growth.<contender>.<path>`."""
RATIO = "ratio."
"""In a comparison, `ratio.<a>.<b>.<path>` is the value of contender a / that of b."""


@dataclass(frozen=True)
class Contest:
    """contenders: who is compared, nobody where nothing is. own: whose run this is; empty for the
    scenario that lies under all of them."""

    contenders: tuple[str, ...] = ()
    own: str = ""

    def about(self, metric: str) -> tuple[tuple[str, ...], str]:
        """Whose runs a metric is taken from, and its path there; nobody's name for each run alone,
        and where nothing is compared."""
        words = metric.split(".")
        named = 2 if metric.startswith(RATIO) else 1 if self.contenders else 0
        if not metric.startswith((RATIO, GROWTH)):
            return (), metric
        return tuple(words[1 : 1 + named]), ".".join(words[1 + named :])

    def concerns(self, metric: str) -> bool:
        """Whether this run has a part in the metric."""
        names, _ = self.about(metric)
        return not names or self.own in names


NO_CONTEST = Contest()

_LISTS = {
    "findings",
    "allreduce.time_s.all",
    "fidelity.reasons",
    "lost_workers",
    "training.curve",
    "training.accuracy_curve",
    "training.delay.counts",
}
_TEXTS = {
    "reason",
    "first_wrong.job",
    "first_wrong.worker",
    "first_wrong.what",
    "failure.job",
    "failure.worker",
    "failure.reason",
    "links_unclear",
    "fidelity.verdict",
    "fidelity.waited_for",
    "accounts.unclear",
}
_FLAGS = {"ok", "exact", "error.within", "links_as_predicted", "accounts.balanced"}


def type_of(pattern: str) -> str:
    """`list`, `text`, `flag` or `number`."""
    pattern = pattern.removeprefix("jobs.*.")
    if pattern in _LISTS or pattern.endswith("_faults"):
        return "list"
    if pattern in _TEXTS:
        return "text"
    return "flag" if pattern in _FLAGS else "number"


@cache
def of_job(system: System) -> Mapping[str, str]:
    """Path -> meaning, of each job; at the top, too, where there is one job only."""
    own = {
        f"workers.*.{name}": f"{counter.meaning} ({counter.unit})"
        for name, counter in system.host_counters.items()
    }
    paths = _with(_OF_JOB, "workers.*.cpu_s", own)
    counted = [p for p in paths if p.startswith("workers.*.") and p != "workers.*.cpu_s"]
    if system.abilities.has_servers:
        meaning = "as a worker's, of a server or scheduler"
        paths |= {p.replace("workers", "servers"): meaning for p in counted}
    for kind in workloads.done_with(system.abilities.workloads):
        paths |= workloads.KINDS[kind].metrics
    return {**paths, **_OF_CONTROLLER} if system.abilities.has_controller else paths


@cache
def metrics(system: System) -> Mapping[str, str]:
    """Path -> meaning, of all that metrics.json holds of a run of this system."""
    own = {path: meaning for path, meaning in of_job(system).items() if path not in _OF_JOB}
    paths = _with(_METRICS, "workers.*.cpu_s", own)
    paths = _with(paths, "jobs.*.workers.*.cpu_s", {f"jobs.*.{path}": "" for path in own})
    packets = {f"{PACKETS}{kind}": counter.meaning for kind, counter in system.counters.items()}
    found = _with(paths, f"{PACKETS}*", packets)
    return {path: meaning for path, meaning in found.items() if path != f"{PACKETS}*"}


def _with(paths: Mapping[str, str], before: str, more: Mapping[str, str]) -> dict[str, str]:
    """`paths` with `more` in front of one of them."""
    items = list(paths.items())
    place = list(paths).index(before)
    return dict([*items[:place], *more.items(), *items[place:]])


def pattern_of(path: str, system: System) -> str | None:
    """The pattern that `path` is an instance of, of those that the system's runs have, or None."""
    return next((p for p in metrics(system) if re.fullmatch(_regex(p), path)), None)


def _regex(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", r"[A-Za-z0-9_>-]+")
