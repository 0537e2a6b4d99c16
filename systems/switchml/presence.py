"""The counters of workers whose sums may lack other workers (docs/partial-sums.md)."""

from __future__ import annotations

COUNTERS = {
    "partial": ("chunks", "whose sum some worker was missing from, because of a deadline"),
    "absent": ("contributions", "that were missing from these sums"),
    "skipped": (
        "contributions",
        "not sent, because the chunk was summed without them before",
    ),
    "ahead": (
        "packets",
        "with the sum of a later chunk than the one that was awaited in the slot",
    ),
    "asked": (
        "packets",
        "sent again because a deadline had passed, so that the switch sums without the others",
    ),
}
"""For each name the unit and the meaning."""
