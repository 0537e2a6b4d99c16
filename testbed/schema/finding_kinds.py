"""The kinds of findings (testbed/judge/findings.py), which `findings:` in the section `expect:` may
list."""

FAULTS = {
    "sent-again": "workers sent packets again although no loss, delay or fault explains it",
    "lost-in-switch": "a switch sent fewer frames than the counters of its own program say",
    "sent-unasked": "a switch sent more frames than the counters of its own program say",
    "miscounted": "a switch's program counted a different number of frames than it was given",
    "too-early": "a switch summed without some workers before the deadline had passed",
    "refused": "packets were refused, or arrived too late, and no fault, impairment or new "
    "session explains it",
    "slow": "without a fault, a round took many times as long as links, losses and jobs require",
    "small-window": "the window limits the rate, not the links: it fills less than three "
    "quarters of the bandwidth-delay product",
    "not-aggregated": "a training script's sums were not made by the system, or Gloo summed more "
    "bytes than the system did; or switches did not make sums that they owed a server",
    "accounts": "the counters of links, hosts and workers contradict each other",
}
"""The meaning of each kind that makes a run fail unless its scenario expects it."""

WARNINGS = {
    "idle-paths": "links between switches carried nothing although they are on shortest paths, "
    "because forwarding takes one path for each destination, and the path that it took limited the "
    "run",
}
"""The meaning of each kind that is said first and makes no run fail, because neither the program
nor its workers are to blame."""

FINDING_KINDS = {**FAULTS, **WARNINGS}
