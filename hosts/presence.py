"""The counters of workers whose sums may lack other workers (docs/partial-sums.md)."""

from __future__ import annotations

import ctypes

COUNTERS = {
    "partial": ("chunks", "whose sum lacked a worker, because the switch did not wait for it"),
    "absent": ("contributions", "that these sums lacked"),
    "skipped": (
        "contributions",
        "that a worker did not send, because the chunk's sum had come before",
    ),
    "ahead": (
        "packets",
        "received with sums of chunks that came after the chunk that the worker was waiting for",
    ),
    "asked": (
        "packets",
        "sent again because the deadline had passed; the switch then closes the chunk",
    ),
}
"""For each name the unit and the meaning."""
HELD = ("partial", "absent", "skipped", "ahead")
"""The counters of `struct presence`; the others are counted by loss recovery."""


class State(ctypes.Structure):
    """The ctypes equivalent of `struct presence` in native/presence.h."""

    _fields_ = (("of_chunks", ctypes.c_void_p), *[(name, ctypes.c_uint64) for name in HELD])
