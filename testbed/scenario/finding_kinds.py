"""The kinds of findings (testbed/findings.py): what `expect: findings:` may list."""

FINDING_KINDS = {
    "sent-again": "workers sent packets again that no loss, delay or fault explains",
    "lost-in-switch": "a switch sent fewer frames than its program's own counters say",
    "sent-unasked": "a switch sent more frames than its program's own counters say",
    "miscounted": "a program counted another number of frames than it was given",
    "refused": "packets were refused, or came too late, that no fault, impairment or new session "
    "explains",
    "slow": "a round took many times what links, losses and jobs allow, without a fault",
    "small-window": "the window, not the links, limits the rate: it fills less than "
    "three quarters of the bandwidth-delay product",
    "accounts": "the counters of links, hosts and workers contradict each other",
}
"""Kind -> meaning."""
