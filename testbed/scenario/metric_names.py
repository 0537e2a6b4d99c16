"""The paths of metrics.json: what may stand in `expect:`, and the table in docs/results.md.

`*` stands for one name: a worker's rank, a switch, a link, a direction, a process.
"""

from __future__ import annotations

import re

OF_JOB: dict[str, str] = {
    "error.max_abs": "float32: largest distance from a float64 sum; null for int32",
    "error.bound": "float32: what quantisation can cost at most; null for int32",
    "error.within": "float32: true if every sum is within its own bound; null for int32",
    "allreduce.time_s.median": "seconds from first start to last end, median of the rounds",
    "allreduce.time_s.min": "the fastest round",
    "allreduce.time_s.max": "the slowest round",
    "allreduce.time_s.all": "each round, in order",
    "allreduce.ate_per_s": "aggregated tensor elements per second: elements / median time",
    "payload_bound_s": "tensor bytes / link rate",
    "link_bound_s": "bytes with headers across the busiest link, none twice / its rate",
    "link_bound_ratio": "median time / link_bound_s",
    "lossy_bound_s": "what losses allow: the links' time, or a round trip for each chunk of a slot "
    "and each loss",
    "lossy_bound_ratio": "median time / lossy_bound_s",
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
    "workers.*.bytes_sent": "bytes sent",
    "workers.*.bytes_received": "bytes received",
    "workers.*.cpu_s": "processor seconds during the rounds",
}
"""Of each job, and at the top where there is one job only."""

METRICS: dict[str, str] = {
    "ok": "true if the run finished and every expectation holds",
    "reason": "why not, in one line; empty if ok",
    "exact": "true if all integer sums of all workers and rounds are right, bit for bit",
    "wrong_sums": "integer sums that differ from an independent computation",
    **OF_JOB,
    "jobs.*.exact": "as `exact`, of one job by name",
    "jobs.*.wrong_sums": "as `wrong_sums`",
    **{f"jobs.*.{path}": "" for path in OF_JOB},
    "fairness.jain": "Jain's index of the jobs' elements_per_s by share: 1 is fair, 1/n is not",
    "fairness.shares.*": "this job's part of all jobs' elements_per_s",
    "failure.job": "the job that could not end; `failure` is null if all did",
    "failure.worker": "the host of the worker that was missing, if one was",
    "failure.after_s": "seconds from the last fault's begin (or the round's start) to the failure",
    "failure.reason": "in one line: who is missing, which chunks",
    "faults.never_begun": "declared faults whose time or chunk never came; the run is not ok then",
    "faults.never_begun_faults": "which",
    "totals.retransmitted": "frames sent again, all workers",
    "totals.injected_drops": "packets dropped on purpose, all links",
    "totals.other_drops": "packets lost that nobody dropped on purpose: queues, rings, sockets",
    "totals.malformed": "frames refused as malformed or foreign, by workers and switches",
    "switches.*.packets.new": "contributions summed",
    "switches.*.packets.duplicate": "contributions seen before",
    "switches.*.packets.stale": "contributions to a chunk that is over",
    "switches.*.packets.complete": "chunks completed",
    "switches.*.packets.refused": "packets for the aggregator that are no valid contribution",
    "switches.*.packets.repeated": "results sent again to one worker or switch",
    "switches.*.packets.partial_repeated": "partial sums sent up again",
    "switches.*.packets.final_new": "results from the parent switch, handed down",
    "switches.*.packets.final_unneeded": "results from the parent switch that were there already",
    "switches.*.packets.malformed": "packets the parser could not finish",
    "switches.*.jobs.*.*": "the same (but `malformed`) of one job by name",
    "switches.*.ring_drops": "packets the switch's packet rings lost",
    "switches.*.queue_drops": "packets the switch's own egress queues lost (target bmv2)",
    "switches.*.port_errors": "packets cut short, too long for a port, or for one that is down",
    "switches.*.cpu_s": "processor seconds during the rounds",
    "links.*.*.seen": "packets that arrived at the end of the link, in this direction",
    "links.*.*.dropped": "of them, dropped by injection",
    "links.*.*.duplicated": "copies of them that injection made, which `seen` does not count",
    "links.*.*.bytes": "bytes that left the sender's queue",
    "links.*.*.queue_drops": "packets the link's queue had no room for",
    "links.*.*.predicted_bytes": "one chunk per slot and tag, whatever is below; null where a "
    "session was restarted",
    "links_as_predicted": "true if every direction carried its predicted bytes and what was "
    "counted as sent again, no more; null where nobody can tell",
    "links_unclear": "why nobody can tell; empty if it is not null",
    "fidelity.verdict": "network-bound, cpu-bound or starved; virtual-time on that backend",
    "fidelity.reasons": "the evidence, in sentences",
}
"""Path -> meaning."""

GROWTH = "growth."
"""In a sweep, `growth.<path>` is the value at the last point / the value at the first."""

_LISTS = {"allreduce.time_s.all", "fidelity.reasons", "lost_workers"}
_TEXTS = {
    "reason",
    "failure.job",
    "failure.worker",
    "failure.reason",
    "links_unclear",
    "fidelity.verdict",
}
_FLAGS = {"ok", "exact", "error.within", "links_as_predicted"}


def type_of(pattern: str) -> str:
    """`list`, `text`, `flag` or `number`."""
    pattern = pattern.removeprefix("jobs.*.")
    if pattern in _LISTS or pattern.endswith("_faults"):
        return "list"
    if pattern in _TEXTS:
        return "text"
    return "flag" if pattern in _FLAGS else "number"


def pattern_of(path: str) -> str | None:
    """The known pattern that `path` is an instance of, or None."""
    return next((p for p in METRICS if re.fullmatch(_regex(p), path)), None)


def _regex(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", r"[A-Za-z0-9_>-]+")
