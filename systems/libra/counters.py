"""The names of Libra's own counters, which its agents have in addition to those that all agents
have, each with its unit and meaning."""

from __future__ import annotations

OWN_COUNTERS = {
    "bytes_again": (
        "bytes",
        "bytes of the frames that a worker or a server sent again",
    ),
    "streams": (
        "streams",
        "destinations that a worker sends to at first: the switch, or each server",
    ),
    "directly": (
        "packets",
        "packets that a worker sent to the server itself, because the switch did not answer",
    ),
    "answered_again": ("packets", "answers that a server sent again because a worker asked"),
    "groups_whole": ("groups", "groups of hot keys that a server summed and gave to all workers"),
    "sums": ("packets", "packets accepted by a server that a switch had summed"),
    "singles": ("packets", "packets of hot keys accepted by a server that no switch had summed"),
    "cold_pairs": ("pairs", "pairs of cold keys that a server accepted"),
}
