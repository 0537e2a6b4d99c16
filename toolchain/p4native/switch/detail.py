"""Defines the levels of detail at which a compiled program reports what it does."""

from __future__ import annotations

from enum import Enum


class Detail(Enum):
    """The amount of detail that the data plane reports about each packet. Any level except NOTHING
    costs time for every packet."""

    NOTHING = 0
    LOG = 1
    """The level that reports `log_msg`, and each `assert` and `assume` that fails."""
    TRACE = 2
    """The level that also reports each step of each packet."""
