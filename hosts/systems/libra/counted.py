"""The counters of Libra's agents beside those of all agents: unit and meaning of each."""

from __future__ import annotations

OWN_COUNTERS = {
    "bytes_again": (
        "bytes",
        "of frames sent again, by a worker without an answer or by a server",
    ),
    "streams": (
        "streams",
        "of a worker: to whom it sends at first, the switch or all servers",
    ),
    "directly": ("packets", "of a worker: sent again past the switch, which did not answer"),
    "answered_again": ("packets", "of a server: answers sent again because a worker asked"),
    "groups_whole": ("groups", "of a server: of hot keys, summed and given to all workers"),
    "sums": ("packets", "of a server: taken that a switch had summed"),
    "singles": ("packets", "of a server: of hot keys taken that no switch had summed"),
    "cold_pairs": ("pairs", "of a server: of cold keys, taken"),
}
