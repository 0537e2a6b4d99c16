"""Seeded impairments as pure functions of (key, frame number): virtual links apply them as they
stand here, real links as eBPF programs that decide the same."""

from agglab.testbed.impairments.decisions import Decider, FrameDecision, decider, deciders, flip
from agglab.testbed.impairments.rng import (
    ALWAYS,
    direction_key,
    draw,
    drop_numbers,
    splitmix64,
    threshold,
)

__all__ = [
    "ALWAYS",
    "Decider",
    "FrameDecision",
    "decider",
    "deciders",
    "direction_key",
    "draw",
    "drop_numbers",
    "flip",
    "splitmix64",
    "threshold",
]
