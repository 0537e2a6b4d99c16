"""Seeded impairments, which depend on nothing but (key, frame number). Virtual links call these
functions. Real links use eBPF programs that make the same decisions."""

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
