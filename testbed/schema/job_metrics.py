"""Declares the metrics of a job. If a scenario has only one job, they are also at the top level of
metrics.json. A system's own counters are declared by the system, and the metrics of one kind of
workload by that kind."""

from __future__ import annotations

from agglab.testbed.schema.metric import counted, flag, items, measured, text

OF_JOB = (
    counted(
        "error.max_abs",
        "",
        "float32: the largest distance of a result from a float64 sum; null for int32 and where a "
        "result is Inf or NaN",
    ),
    counted(
        "error.bound",
        "",
        "float32: the largest error that quantisation can cause; null for int32",
    ),
    flag(
        "error.within",
        "float32: true if every result that a worker received is within its own bound; null for "
        "int32",
    ),
    measured(
        "allreduce.time_s.median",
        "s",
        "seconds from the first worker's start to the last one's end, median of the rounds, "
        "without those of `workload.warmup`",
    ),
    measured("allreduce.time_s.min", "s", "the fastest of these rounds"),
    measured("allreduce.time_s.max", "s", "the slowest of these rounds"),
    items("allreduce.time_s.all", "each of these rounds' time, in order"),
    measured(
        "allreduce.ate_per_s",
        "elements/s",
        "aggregated tensor elements per second: elements / median time; null where a round does "
        "not reduce the elements of the scenario once",
    ),
    measured(
        "latency_s.p50",
        "s",
        "median time from a worker's or server's first transmission of a packet to its answer; "
        "known to 1.6 %, null where the system does not report it",
    ),
    measured("latency_s.p90", "s", "the time that 90 % of them do not exceed"),
    measured("latency_s.p99", "s", "the time that 99 % of them do not exceed"),
    measured("latency_s.p999", "s", "the time that 99.9 % of them do not exceed"),
    measured("latency_s.max", "s", "the longest"),
    measured(
        "send_rate_bps.median",
        "bit/s",
        "bits of frames per second that all agents of the job sent together: the median over the "
        "samples within rounds (series.csv); null if nothing was recorded",
    ),
    measured("send_rate_bps.p10", "bit/s", "the rate that nine of ten of these samples reach"),
    counted(
        "payload_bound_s",
        "s",
        "seconds that a worker's values without headers need on the slowest link that the job "
        "uses; null where a round does not reduce the elements of the scenario once",
    ),
    counted(
        "link_bound_s",
        "s",
        "seconds that the bytes with all headers need on the busiest link, each sent once on the "
        "one path that forwarding takes: bytes / its rate, as if the job were alone; 0 if nothing "
        "crosses a link, or if what does is decided in the round; null, as all bounds, if the "
        "system states none",
    ),
    measured("link_bound_ratio", "", "median time / link_bound_s; null where that is 0 or null"),
    counted(
        "lossy_bound_s",
        "s",
        "seconds that no run with the constant `loss` of its links can undercut on average: what "
        "the busiest link needs if every lost frame is sent again, and where slots of switches "
        "follow each other also their round trips and losses (Bounds, below). It leaves out what "
        "a system's timers and fallbacks cost",
    ),
    measured(
        "lossy_bound_ratio",
        "",
        "median time / lossy_bound_s: how much more a loss costs than sending the frame again; "
        "null where that is 0",
    ),
    counted(
        "window_share",
        "",
        "the share of the slowest used link's rate that one window for each round trip reaches; 1 "
        "where the window does not limit it",
    ),
    counted("rounds", "rounds", "rounds that were completed, those of `workload.warmup` included"),
    counted("restarts", "rounds", "how often a round was aborted and run again in a new session"),
    counted("lost", "workers", "workers without which the job went on (`on_failure: survivors`)"),
    items("lost_workers", "their hosts"),
    items(
        "gain_limits",
        "sentences about what limits the gain for which one chooses the system; absent if there "
        "is nothing to say",
    ),
    measured(
        "elements_per_s",
        "elements/s",
        "elements of all rounds / time from the job's start to the end of its last round; null "
        "where a round does not reduce the elements of the scenario once",
    ),
)
COUNTS_OF_AGENTS = (
    counted(
        "workers.*.sent",
        "packets",
        "frames sent by this worker (by rank), those sent again included",
    ),
    counted("workers.*.received", "packets", "frames received, whatever they were"),
    counted(
        "workers.*.retransmitted",
        "packets",
        "frames that this worker sent again because no answer had come",
    ),
    counted(
        "workers.*.duplicates",
        "packets",
        "packets of which this worker had taken an equal one, such as a result that came twice",
    ),
    counted("workers.*.late", "packets", "packets of an earlier chunk, round or session"),
    counted(
        "workers.*.malformed",
        "packets",
        "packets that no agent or switch of this job can have sent",
    ),
    counted(
        "workers.*.timeouts",
        "packets",
        "retransmissions after a timeout; the other frames were sent again because later ones "
        "were answered first",
    ),
    counted(
        "workers.*.kernel_drops",
        "packets",
        "frames that the kernel dropped at its socket: the buffer had no room, or the UDP "
        "checksum was wrong",
    ),
    counted(
        "workers.*.network_errors",
        "errors",
        "errors that ICMP messages, genuine or forged, reported to its socket",
    ),
    counted("workers.*.bytes_sent", "bytes", "bytes sent"),
    counted("workers.*.bytes_received", "bytes", "bytes received"),
)
"""What every worker counts. Servers count the same (docs/results.md)."""
CPU_S = measured("workers.*.cpu_s", "s", "processor seconds during the rounds")
COUNTS_OF_SERVERS = {
    each.path: each
    for each in (
        counted(
            "servers.*.sent",
            "packets",
            "frames sent by this server or scheduler, those sent again included",
        ),
        counted(
            "servers.*.retransmitted",
            "packets",
            "frames that it sent again by a timer of its own; 0 for servers that only answer "
            "workers",
        ),
        counted(
            "servers.*.duplicates",
            "packets",
            "packets of which it had taken an equal one, such as a contribution that a worker sent "
            "again because the answer was lost or late; a complete answer is sent again",
        ),
        counted(
            "servers.*.timeouts", "packets", "those of its retransmissions that followed a silence"
        ),
        counted(
            "servers.*.malformed", "packets", "packets that no agent of this job can have sent"
        ),
    )
}
"""The counts of servers whose meaning is not that of a worker's count of the same name."""
OF_CONTROLLER = (
    counted(
        "control.steps",
        "calls",
        "how often the job's controller was called, before rounds and at deadlines",
    ),
    counted("control.deadlines", "deadlines", "how many of its deadlines were reached"),
    counted(
        "control.missed",
        "deadlines",
        "how many deadlines' table changes took longer than the controller allows",
    ),
    counted(
        "control.entries",
        "entries",
        "table entries that the controller added and removed, at all switches",
    ),
    measured(
        "control.latest_s",
        "s",
        "the longest time from a deadline until its table changes were complete",
    ),
)
"""The metrics of jobs whose system has a controller."""
OF_HEADLINE = (
    text(
        "headline.metric",
        "the time by which the job is judged and compared; absent if that is the time of its "
        "rounds",
    ),
    text("headline.of", "what takes this time"),
)
"""The metrics of jobs that are judged by another time than that of their rounds."""
