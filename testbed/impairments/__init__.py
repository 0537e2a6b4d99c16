"""Seeded impairments as pure functions of (key, frame number). Virtual links call them; real links
use eBPF programs that make the same decisions."""

from agglab.testbed.impairments.draws import (
    ALWAYS,
    direction_key,
    draw,
    drop_numbers,
    splitmix64,
    threshold,
)
from agglab.testbed.impairments.fates import Decider, Fate, decider, deciders, flip

__all__ = [
    "ALWAYS",
    "Decider",
    "Fate",
    "decider",
    "deciders",
    "direction_key",
    "draw",
    "drop_numbers",
    "flip",
    "splitmix64",
    "threshold",
]
