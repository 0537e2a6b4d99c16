"""The levels of detail at which a compiled program logs what it does."""

from __future__ import annotations

from enum import Enum


class Detail(Enum):
    """How much the data plane reports of each packet. Anything but NOTHING costs time on every
    packet."""

    NOTHING = 0
    LOG = 1
    """`log_msg`, and `assert` and `assume` that fail."""
    TRACE = 2
    """Each step of each packet as well."""
