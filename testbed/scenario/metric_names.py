"""The paths of the metrics in metrics.json, which `expect:` may use, and their meanings. The table
in docs/results.md is written from them.

In a path, `*` stands for one name: a worker's rank, a switch, a link, a direction or a process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from agglab.testbed.scenario import workloads
from agglab.testbed.scenario.workloads.judged_time import MEANINGS, ROUND
from agglab.testbed.systems.base import System

_OF_JOB: dict[str, str] = {
    "error.max_abs": "float32: the largest distance of a result from a float64 sum; null for "
    "int32 and where a result is Inf or NaN",
    "error.bound": "float32: the largest error that quantisation can cause; null for int32",
    "error.within": "float32: true if every result that a worker received is within its own bound; "
    "null for int32",
    "allreduce.time_s.median": "seconds from the first worker's start to the last one's end, "
    "median of the rounds, without those of `workload.warmup`",
    "allreduce.time_s.min": "the fastest of these rounds",
    "allreduce.time_s.max": "the slowest of these rounds",
    "allreduce.time_s.all": "each of these rounds' time, in order",
    "allreduce.ate_per_s": "aggregated tensor elements per second: elements / median time; null "
    "where a round does not reduce the elements of the scenario once",
    "latency_s.p50": "median time from a worker's or server's first transmission of a packet "
    "to its answer; known to 1.6 %, null where the system does not report it",
    "latency_s.p90": "the time that 90 % of them do not exceed",
    "latency_s.p99": "the time that 99 % of them do not exceed",
    "latency_s.p999": "the time that 99.9 % of them do not exceed",
    "latency_s.max": "the longest",
    "send_rate_bps.median": "bits of frames per second that all agents of the job sent together: "
    "the median over the samples within rounds (series.csv); null if nothing was recorded",
    "send_rate_bps.p10": "the rate that nine of ten of these samples reach",
    "payload_bound_s": "seconds that a worker's values without headers need on the slowest link "
    "that the job uses; null where a round does not reduce the elements of the scenario once",
    "link_bound_s": "seconds that the bytes with all headers need on the busiest link, each "
    "sent once on the one path that forwarding takes: bytes / its rate, as if the job were alone; "
    "0 if nothing crosses a link, or if what does is decided in the round",
    "link_bound_ratio": "median time / link_bound_s; null where that is 0",
    "lossy_bound_s": "seconds that no run with the constant `loss` of its links can undercut on "
    "average: what the busiest link needs if every lost frame is sent again, and where slots of "
    "switches follow each other also their round trips and losses (Bounds, below). It leaves out "
    "what a system's timers and fallbacks cost",
    "lossy_bound_ratio": "median time / lossy_bound_s: how much more a loss costs than sending "
    "the frame again; null where that is 0",
    "window_share": "the share of the slowest used link's rate that one window for each round "
    "trip reaches; 1 where the window does not limit it",
    "rounds": "rounds that were completed, those of `workload.warmup` included",
    "restarts": "how often a round was aborted and run again in a new session",
    "lost": "workers without which the job went on (`on_failure: survivors`)",
    "lost_workers": "their hosts",
    "gain_limits": "sentences about what limits the gain for which one chooses the system; absent "
    "if there is nothing to say",
    "elements_per_s": "elements of all rounds / time from the job's start to the end of its "
    "last round; null where a round does not reduce the elements of the scenario once",
    "workers.*.sent": "frames sent by this worker (by rank), those sent again included",
    "workers.*.received": "frames received, whatever they were",
    "workers.*.retransmitted": "frames that this worker sent again because no answer had come",
    "workers.*.duplicates": "packets of which this worker had taken an equal one, such as a "
    "result that came twice",
    "workers.*.late": "packets of an earlier chunk, round or session",
    "workers.*.malformed": "packets that no agent or switch of this job can have sent",
    "workers.*.timeouts": "retransmissions after a timeout; the other frames were sent again "
    "because later ones were answered first",
    "workers.*.kernel_drops": "frames that the kernel dropped at its socket: the buffer had no "
    "room, or the UDP checksum was wrong",
    "workers.*.network_errors": "errors that ICMP messages, genuine or forged, reported to its "
    "socket",
    "workers.*.bytes_sent": "bytes sent",
    "workers.*.bytes_received": "bytes received",
    "workers.*.cpu_s": "processor seconds during the rounds",
}
"""The metrics of each job of any system. If a scenario has only one job, they are also at the top
level."""

_OF_SERVERS = {
    "workers.*.sent": "frames sent by this server or scheduler, those sent again included",
    "workers.*.retransmitted": "frames that it sent again by a timer of its own; 0 for servers "
    "that only answer workers",
    "workers.*.duplicates": "packets of which it had taken an equal one, such as a contribution "
    "that a worker sent again because the answer was lost or late; a complete answer is sent again",
    "workers.*.timeouts": "those of its retransmissions that followed a silence",
    "workers.*.malformed": "packets that no agent of this job can have sent",
}
"""The meaning of a server's counter, where it is not that of a worker's counter of the same
name."""
_METRICS: dict[str, str] = {
    "ok": "true if `verdict` is `passed`",
    "verdict": "`passed` if the run finished and every expectation holds; `undecided` if the "
    "program or a lack of processors explains what happened ([Doubts](#doubts)); else `failed`",
    "reason": "why `ok` is false, in one line; empty if it is true",
    "exact": "true if all integer sums of all workers and rounds are correct, bit for bit; null if "
    "nothing was compared with a right value",
    "wrong_sums": "integer sums that differ from an independent computation",
    "wrong_results": "elements of `all_reduce`'s results that are wrong: float32 outside its "
    "bound, int32 not equal; all elements of a result that is missing or has "
    "another dtype or length",
    "completion_s": "seconds from a job's start to the end of its last round, mean of the jobs; "
    "includes the time for which it waits for slots",
    "switch_share": "the share of a job's chunks whose sums switches completed, so that no server "
    "had to add anything, mean of the jobs; null if the system does not know",
    "first_wrong.job": "where the first wrong sum or result is; `first_wrong` is null if there "
    "is none",
    "first_wrong.worker": "the host of the worker that received it",
    "first_wrong.rank": "that worker's rank",
    "first_wrong.round": "the round, from 0",
    "first_wrong.what": "`sum`: an integer sum; `result`: what `all_reduce` returned; `out`: "
    "the array that it was given to fill",
    "first_wrong.index": "the element's index; null where the whole array is missing or has "
    "another shape",
    "first_wrong.expected": "the correct value by float64 or integer arithmetic; or the "
    "correct dtype and length",
    "first_wrong.allowed": "how far a float32 may be from that; null where it has to be equal",
    "first_wrong.got": "the wrong value",
    **_OF_JOB,
    "jobs.*.exact": "as `exact`, for one job by name",
    "jobs.*.wrong_sums": "as `wrong_sums`, for one job",
    "jobs.*.wrong_results": "as `wrong_results`, for one job",
    "jobs.*.completion_s": "as `completion_s`, for one job",
    "jobs.*.switch_share": "as `switch_share`, for one job",
    **{f"jobs.*.{path}": "" for path in _OF_JOB},
    "fairness.jain": "Jain's index of the jobs' elements_per_s relative to their shares: 1 is "
    "fair, 1/n is as unfair as possible",
    "fairness.shares.*": "this job's part of the sum of all jobs' elements_per_s",
    "failure.job": "the job that could not finish; `failure` is null if all jobs finished",
    "failure.worker": "the host of the missing worker, if a worker was missing",
    "failure.after_s": "seconds from the beginning of the last fault (or of the round) to the "
    "failure",
    "failure.reason": "who is missing and which chunks, in one line",
    "faults.never_begun": "declared faults whose time or chunk never came; `ok` is then false",
    "faults.never_begun_faults": "which",
    "totals.sent": "frames sent by all workers and servers",
    "totals.retransmitted": "frames sent again by all workers and servers",
    "totals.injected_drops": "packets dropped on purpose on all links",
    "totals.lost_down": "packets that arrived at a link while it was down",
    "totals.other_drops": "packets lost that nothing dropped on purpose: in queues, rings, "
    "sockets and at ports",
    "totals.malformed": "frames that workers, servers and switches refused as malformed or foreign",
    "totals.forged": "packets with a source address that is not their sender's, refused by "
    "switches",
    "totals.network_errors": "errors that ICMP messages reported to the sockets of workers and "
    "servers",
    "totals.server_bytes": "bytes that all servers received",
    "attack.*": "frames that attacks sent, by kind",
    "switches.*.packets.*": "",
    "switches.*.jobs.*.*": "the counters that belong to a job, for one job by name",
    "switches.*.program.*": "a counter of your own P4 program, by the last part of its name: "
    "packets (or bytes, if it counts only these) of all its cells; `program.json` has each cell",
    "switches.*.ring_drops": "packets that the switch's packet rings lost",
    "switches.*.queue_drops": "packets that the switch's own egress queues lost (target bmv2)",
    "switches.*.port_errors": "packets that were truncated, too long for a port, or sent to a "
    "port that was down",
    "switches.*.register_bits": "the size of all registers of the switch's program, in bits",
    "switches.*.cpu_s": "processor seconds during the rounds",
    "links.*.*.seen": "packets that arrived at the end of the link in this direction",
    "links.*.*.dropped": "of the packets seen, those that were dropped on purpose",
    "links.*.*.lost_down": "of the packets seen, those that were lost because the link was down",
    "links.*.*.corrupted": "of the packets seen, those in which an impairment inverted a bit",
    "links.*.*.duplicated": "copies of packets that an impairment made, which `seen` does not "
    "count",
    "links.*.*.packets": "packets that left the sender's queue; in virtual time, those in the "
    "queue as well",
    "links.*.*.bytes": "bytes of these packets, as Ethernet frames without their checksums",
    "links.*.*.queue_drops": "packets for which the link's queue had no room",
    "links.*.*.predicted_bytes": "the bytes that all rounds send if nothing is sent again; null "
    "where this cannot be known",
    "links_as_predicted": "true if every direction carried exactly its predicted bytes and "
    "those counted as sent again; null where this cannot be known",
    "links_unclear": "why `links_as_predicted` is null or false, in the latter case with the "
    "directions that differ most; empty if it is true",
    "accounts.balanced": "virtual time: true if the counters of links, hosts and workers agree "
    "on every frame; null on real links",
    "accounts.unclear": "why the counters were not compared; empty if they were",
    "findings": "what the run should not have shown and what it lacks, each with `kind`, `text` "
    "and `numbers` (below)",
    "doubts": "what may be a finding, each with the `kind` of that finding, a `text`, and `firm`: "
    "whether the run cannot be judged unless the doubt is cleared",
    "second_opinion.findings": "the findings of the same scenario in virtual time, which was asked "
    "because of the doubts; null if it could not be asked. `second_opinion` is null if it was not "
    "asked",
    "second_opinion.lacking": "why it could not be asked; empty if it was",
    "fidelity.verdict": "network-bound, waiting, cpu-bound or starved",
    "fidelity.waited_for": "what a waiting run waited for: timers, faults, window, losses, "
    "brevity, delay or unknown; else null",
    "fidelity.reasons": "the evidence, in sentences",
}
"""The meaning of each metric that every system has, by its path; `metrics` adds those that a system
declares."""

_OF_CONTROLLER = {
    "control.steps": "how often the job's controller was called, before rounds and at deadlines",
    "control.deadlines": "how many of its deadlines were reached",
    "control.missed": "how many deadlines' table changes took longer than the controller allows",
    "control.entries": "table entries that the controller added and removed, at all switches",
    "control.latest_s": "the longest time from a deadline until its table changes were complete",
}
"""The metrics of jobs whose system has a controller."""

PACKETS = "switches.*.packets."
GROWTH = "growth."
"""In a sweep, `growth.<path>` is the value at the last point divided by the value at the first. In
a comparison it is `growth.<contender>.<path>`."""
RATIO = "ratio."
"""In a comparison, `ratio.<a>.<b>.<path>` is contender a's value divided by contender b's."""


@dataclass(frozen=True)
class ComparisonContext:
    """A comparison, as one of its runs sees it. contenders: the names of all contenders; empty if
    nothing is compared. own: the contender whose run this is; empty for the scenario on which all
    contenders are based."""

    contenders: tuple[str, ...] = ()
    own: str = ""

    def about(self, metric: str) -> tuple[tuple[str, ...], str]:
        """Returns the contenders that the metric's path names, and the metric's path in the run of
        each. There are no contenders if the metric is about a single run, or if nothing is
        compared."""
        words = metric.split(".")
        named = 2 if metric.startswith(RATIO) else 1 if self.contenders else 0
        if not metric.startswith((RATIO, GROWTH)):
            return (), metric
        return tuple(words[1 : 1 + named]), ".".join(words[1 + named :])

    def concerns(self, metric: str) -> bool:
        """Returns whether the metric is about this run. That is the case if the metric's path names
        this run's contender, or no contender."""
        names, _ = self.about(metric)
        return not names or self.own in names


NO_COMPARISON = ComparisonContext()

_LISTS = {
    "findings",
    "doubts",
    "second_opinion.findings",
    "allreduce.time_s.all",
    "fidelity.reasons",
    "lost_workers",
    "gain_limits",
    "training.curve",
    "training.accuracy_curve",
    "training.delay.counts",
    "training.step_s.all",
}
_TEXTS = {
    "verdict",
    "reason",
    "second_opinion.lacking",
    "first_wrong.job",
    "first_wrong.worker",
    "first_wrong.what",
    "failure.job",
    "failure.worker",
    "failure.reason",
    "headline.metric",
    "headline.of",
    "links_unclear",
    "fidelity.verdict",
    "fidelity.waited_for",
    "accounts.unclear",
}
_FLAGS = {"ok", "exact", "error.within", "links_as_predicted", "accounts.balanced"}


def type_of(pattern: str) -> str:
    """Returns the type of a metric: `list`, `text`, `flag` or `number`."""
    pattern = pattern.removeprefix("jobs.*.")
    if pattern in _LISTS or pattern.endswith("_faults"):
        return "list"
    if pattern in _TEXTS:
        return "text"
    return "flag" if pattern in _FLAGS else "number"


_MEASURED = re.compile(r"((?<!_bound)_s|_ratio|_bps)(\.|$)|^fairness\.")


def is_measured(pattern: str) -> bool:
    """Returns whether a metric is a time, a rate, or a ratio of such values, so that no two runs
    need have exactly the same value. Counts and computed bounds are not."""
    return type_of(pattern) == "number" and bool(_MEASURED.search(pattern))


@cache
def of_job(system: System) -> Mapping[str, str]:
    """Returns the meaning of each metric of a job, by path. If there is only one job, its metrics
    are also at the top level."""
    own = {
        f"workers.*.{name}": f"{counter.meaning} ({counter.unit})"
        for name, counter in system.host_counters.items()
    }
    paths = _with(_OF_JOB, "workers.*.cpu_s", own)
    counted = [p for p in paths if p.startswith("workers.*.") and p != "workers.*.cpu_s"]
    if system.abilities.has_servers:
        paths |= {p.replace("workers", "servers"): _OF_SERVERS.get(p, paths[p]) for p in counted}
    for kind in workloads.done_with(system.abilities.workloads):
        paths |= workloads.KINDS[kind].metrics
        paths |= MEANINGS if workloads.KINDS[kind].headline != ROUND else {}
    return {**paths, **_OF_CONTROLLER} if system.abilities.has_controller else paths


@cache
def metrics(system: System) -> Mapping[str, str]:
    """Returns the meaning of each metric that metrics.json holds for a run of this system, by
    path."""
    own = {path: meaning for path, meaning in of_job(system).items() if path not in _OF_JOB}
    paths = _with(_METRICS, "workers.*.cpu_s", own)
    paths = _with(paths, "jobs.*.workers.*.cpu_s", {f"jobs.*.{path}": "" for path in own})
    packets = {f"{PACKETS}{kind}": counter.meaning for kind, counter in system.counters.items()}
    found = _with(paths, f"{PACKETS}*", packets)
    return {path: meaning for path, meaning in found.items() if path != f"{PACKETS}*"}


def _with(paths: Mapping[str, str], before: str, more: Mapping[str, str]) -> dict[str, str]:
    """Returns `paths` with `more` inserted in front of the path `before`."""
    items = list(paths.items())
    place = list(paths).index(before)
    return dict([*items[:place], *more.items(), *items[place:]])


def pattern_of(path: str, system: System) -> str | None:
    """Returns the pattern of the system's metrics that `path` matches; None if there is none."""
    return next((p for p in metrics(system) if re.fullmatch(regex_of(p), path)), None)


def regex_of(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", r"[A-Za-z0-9_>-]+")
