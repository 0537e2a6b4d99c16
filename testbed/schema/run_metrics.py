"""Declares the metrics of a run: those of all jobs together, and those of its network."""

from __future__ import annotations

from agglab.testbed.schema.metric import counted, flag, items, measured, text

VERDICT = (
    flag("ok", "true if `verdict` is `passed`"),
    text(
        "verdict",
        "`passed` if the run finished and every expectation holds; `undecided` if the program or "
        "a lack of processors explains what happened ([Doubts](#doubts)); else `failed`",
    ),
    text("reason", "why `ok` is false, in one line; empty if it is true"),
)
OF_ALL_JOBS = (
    flag(
        "exact",
        "true if all integer sums of all workers and rounds are correct, bit for bit; null if "
        "nothing was compared with a right value",
    ),
    counted("wrong_sums", "sums", "integer sums that differ from an independent computation"),
    counted(
        "wrong_results",
        "elements",
        "elements of `all_reduce`'s results that are wrong: float32 outside its bound, int32 not "
        "equal; all elements of a result that is missing or has another dtype or length",
    ),
    measured(
        "completion_s",
        "s",
        "seconds from a job's start to the end of its last round, mean of the jobs; includes the "
        "time for which it waits for slots",
    ),
    counted(
        "switch_share",
        "",
        "the share of a job's chunks whose sums switches completed, so that no server had to add "
        "anything, mean of the jobs; null if the system does not know",
    ),
)
"""The metrics that a run has for all jobs together, and each job for itself."""
FIRST_WRONG = (
    text(
        "first_wrong.job",
        "where the first wrong sum or result is; `first_wrong` is null if there is none",
    ),
    text("first_wrong.worker", "the host of the worker that received it"),
    counted("first_wrong.rank", "", "that worker's rank"),
    counted("first_wrong.round", "", "the round, from 0"),
    text(
        "first_wrong.what",
        "`sum`: an integer sum; `result`: what `all_reduce` returned; `out`: the array that it "
        "was given to fill",
    ),
    counted(
        "first_wrong.index",
        "",
        "the element's index; null where the whole array is missing or has another shape",
    ),
    counted(
        "first_wrong.expected",
        "",
        "the correct value by float64 or integer arithmetic; or the correct dtype and length",
    ),
    counted(
        "first_wrong.allowed",
        "",
        "how far a float32 may be from that; null where it has to be equal",
    ),
    counted("first_wrong.got", "", "the wrong value"),
)
TOGETHER = (
    measured(
        "fairness.jain",
        "",
        "Jain's index of the jobs' elements_per_s relative to their shares: 1 is fair, 1/n is as "
        "unfair as possible",
    ),
    measured("fairness.shares.*", "", "this job's part of the sum of all jobs' elements_per_s"),
    text("failure.job", "the job that could not finish; `failure` is null if all jobs finished"),
    text("failure.worker", "the host of the missing worker, if a worker was missing"),
    measured(
        "failure.after_s",
        "s",
        "seconds from the beginning of the last fault (or of the round) to the failure",
    ),
    text("failure.reason", "who is missing and which chunks, in one line"),
    counted(
        "faults.never_begun",
        "faults",
        "declared faults whose time or chunk never came; `ok` is then false",
    ),
    items("faults.never_begun_faults", "which"),
    counted("totals.sent", "packets", "frames sent by all workers and servers"),
    counted("totals.retransmitted", "packets", "frames sent again by all workers and servers"),
    counted("totals.injected_drops", "packets", "packets dropped on purpose on all links"),
    counted("totals.lost_down", "packets", "packets that arrived at a link while it was down"),
    counted(
        "totals.other_drops",
        "packets",
        "packets lost that nothing dropped on purpose: in queues, rings, sockets and at ports",
    ),
    counted(
        "totals.malformed",
        "packets",
        "frames that workers, servers and switches refused as malformed or foreign",
    ),
    counted(
        "totals.forged",
        "packets",
        "packets with a source address that is not their sender's, refused by switches",
    ),
    counted(
        "totals.network_errors",
        "errors",
        "errors that ICMP messages reported to the sockets of workers and servers",
    ),
    counted("totals.server_bytes", "bytes", "bytes that all servers received"),
    counted("attack.*", "packets", "frames that attacks sent, by kind"),
)
OF_SWITCHES = (
    counted(
        "switches.*.jobs.*.*",
        "packets",
        "the counters that belong to a job, for one job by name",
    ),
    counted(
        "switches.*.program.*",
        "",
        "a counter of your own P4 program, by the last part of its name: packets (or bytes, if it "
        "counts only these) of all its cells; `program.json` has each cell",
    ),
    counted("switches.*.ring_drops", "packets", "packets that the switch's packet rings lost"),
    counted(
        "switches.*.queue_drops",
        "packets",
        "packets that the switch's own egress queues lost (target bmv2)",
    ),
    counted(
        "switches.*.port_errors",
        "packets",
        "packets that were truncated, too long for a port, or sent to a port that was down",
    ),
    counted(
        "switches.*.register_bits",
        "bits",
        "the size of all registers of the switch's program, in bits",
    ),
    measured("switches.*.cpu_s", "s", "processor seconds during the rounds"),
)
"""The metrics of a switch. Its system declares the packets that its program counts."""
OF_DIRECTIONS = (
    counted(
        "links.*.*.seen",
        "packets",
        "packets that arrived at the end of the link in this direction",
        counter="seen",
    ),
    counted(
        "links.*.*.dropped",
        "packets",
        "of the packets seen, those that were dropped on purpose",
        counter="dropped_injected",
    ),
    counted(
        "links.*.*.lost_down",
        "packets",
        "of the packets seen, those that were lost because the link was down",
        counter="lost_link_down",
    ),
    counted(
        "links.*.*.corrupted",
        "packets",
        "of the packets seen, those in which an impairment inverted a bit",
        counter="corrupted",
    ),
    counted(
        "links.*.*.duplicated",
        "packets",
        "copies of packets that an impairment made, which `seen` does not count",
        counter="duplicated",
    ),
    counted(
        "links.*.*.packets",
        "packets",
        "packets that left the sender's queue; in virtual time, those in the queue as well",
        counter="packets",
    ),
    counted(
        "links.*.*.bytes",
        "bytes",
        "bytes of these packets, as Ethernet frames without their checksums",
        counter="bytes",
    ),
    counted(
        "links.*.*.queue_drops",
        "packets",
        "packets for which the link's queue had no room",
        counter="dropped_by_queue",
    ),
)
"""What the counters of each direction of a link say."""
ASKED_OF_DIRECTIONS = (
    counted("links.*.*.rate_bps", "bit/s", "the rate of this direction; null if it has no limit"),
    counted("links.*.*.delay_s", "s", "its delay"),
    counted(
        "links.*.*.queue_bytes",
        "bytes",
        "the size of the queue in front of it; null if that is a number of packets",
    ),
    counted("links.*.*.queue_packets", "packets", "this number; null if the size is in bytes"),
    items(
        "links.*.*.impairments",
        "what happened to its packets on purpose: for the whole run, and by faults that began, "
        "each with its `kind` and values",
    ),
)
"""What the scenario asks of each direction of a link, as resolved."""
JUDGED = (
    counted(
        "links.*.*.predicted_bytes",
        "bytes",
        "the bytes that all rounds send if nothing is sent again; null where this cannot be known",
    ),
    flag(
        "links_as_predicted",
        "true if every direction carried exactly its predicted bytes and those counted as sent "
        "again; null where this cannot be known",
    ),
    text(
        "links_unclear",
        "why `links_as_predicted` is null or false, in the latter case with the directions that "
        "differ most; empty if it is true",
    ),
    flag(
        "accounts.balanced",
        "virtual time: true if the counters of links, hosts and workers agree on every frame; "
        "null on real links",
    ),
    text("accounts.unclear", "why the counters were not compared; empty if they were"),
    items(
        "findings",
        "what the run should not have shown and what it lacks, each with `kind`, `text` and "
        "`numbers` (below)",
    ),
    items(
        "doubts",
        "what may be a finding, each with the `kind` of that finding, a `text`, and `firm`: "
        "whether the run cannot be judged unless the doubt is cleared",
    ),
    items(
        "second_opinion.findings",
        "the findings of the same scenario in virtual time, which was asked because of the "
        "doubts; null if it could not be asked. `second_opinion` is null if it was not asked",
    ),
    text("second_opinion.lacking", "why it could not be asked; empty if it was"),
    text("fidelity.verdict", "network-bound, waiting, cpu-bound or starved"),
    text(
        "fidelity.waited_for",
        "what a waiting run waited for: timers, faults, window, losses, brevity, delay or "
        "unknown; else null",
    ),
    items("fidelity.reasons", "the evidence, in sentences"),
)
