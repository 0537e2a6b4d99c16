"""Random losses, delays and other impairments of frames, which depend only on a key (made from the
seed) and the frame's number. Virtual links call these functions. Real links use eBPF programs that
make the same decisions."""

from agglab.testbed.run.impairments.decisions import Decider, FrameDecision, decider, deciders, flip
from agglab.testbed.run.impairments.rng import (
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
