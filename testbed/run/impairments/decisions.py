"""Decides what happens to frame k of a direction under each impairment, by calling
native/decisions.c.

Every decision depends only on (key, k). Gilbert-Elliott also keeps its current state, which follows
from the key and the frames before. Frames must be asked for in ascending order. Each impairment
decides on every frame that arrives, even if another impairment has dropped it, so that none changes
the decisions of another. The decision for a frame also applies to its duplicates.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agglab.testbed.run.impairments import native
from agglab.testbed.run.impairments.rng import ALWAYS, direction_key, threshold
from agglab.topologies.graph import (
    Corrupt,
    Drop,
    DropList,
    Duplicate,
    GilbertElliott,
    Impairment,
    Jitter,
    PeriodicDrop,
    Reorder,
)

NS_PER_US = 1000
NUMBERS = 1 << 64
"""The numbers of frames are below this number."""


@dataclass(slots=True)
class FrameDecision:
    """What happens to a frame. late_ns: how much later it arrives than without impairments.
    copies_ns: for each copy, how long after the frame it arrives. flipped: the inverted bits; bit 0
    is the highest bit of the first byte."""

    dropped: bool = False
    late_ns: int = 0
    copies_ns: list[int] = field(default_factory=list)
    flipped: list[int] = field(default_factory=list)


class _Chance(ctypes.Structure):
    """The fields of `struct chance`: a probability of `below` / 2^64, or 1."""

    _fields_ = [("below", ctypes.c_uint64), ("always", ctypes.c_uint64)]


class _Settings(ctypes.Structure):
    """The fields of `struct decider`."""

    _fields_ = [
        *[(name, ctypes.c_uint64) for name in ("kind", "key")],
        *[(name, _Chance * 2) for name in ("chances", "losses")],
        *[(name, ctypes.c_uint64) for name in ("delay_ns", "period", "count", "offset")],
        ("numbers", ctypes.c_void_p),
        *[(name, ctypes.c_uint64) for name in ("number_count", "bad", "reached")],
    ]


class _Decision(ctypes.Structure):
    """The fields of `struct decision`."""

    _fields_ = [
        ("late_ns", ctypes.c_int64),
        ("copies_ns", ctypes.POINTER(ctypes.c_int64)),
        ("flipped", ctypes.POINTER(ctypes.c_uint64)),
        *[(name, ctypes.c_uint32) for name in ("copies", "flips", "dropped")],
    ]


class Decider:
    """Makes the decisions of one impairment. key: the key of its random numbers. address: the
    address of its `struct decider`, which exists as long as this object."""

    def __init__(self, impairment: Impairment, key: int) -> None:
        kind, settings = KINDS[type(impairment)]
        self._numbers = np.array(_numbers(impairment), np.uint64)
        self._settings = _Settings(
            kind=kind,
            key=key,
            numbers=self._numbers.ctypes.data,
            number_count=self._numbers.size,
            **settings(impairment),
        )
        self.address = ctypes.addressof(self._settings)

    def __call__(self, k: int, size: int, decision: FrameDecision) -> None:
        """Adds to the decision what this impairment does to frame k, of `size` bytes."""
        library = native.load()
        layout = ctypes.sizeof(_Settings) << 16 | ctypes.sizeof(_Decision)
        assert library.decider_layout() == layout, "decisions.h and decisions.py differ"
        copies, flips = (ctypes.c_int64 * 1)(), (ctypes.c_uint64 * 1)()
        found = _Decision(copies_ns=copies, flipped=flips)
        library.decide(self.address, k, size, ctypes.byref(found))
        decision.dropped |= bool(found.dropped)
        decision.late_ns += found.late_ns
        decision.copies_ns += copies[: found.copies]
        decision.flipped += flips[: found.flips]


def deciders(
    impairments: Sequence[Impairment], seed: int, link: str, direction: str
) -> list[Decider]:
    """Returns one decider for each impairment of a direction, in their order. The first uses the
    direction's own key. The n-th, counted from 0, uses the key whose `part` (see `direction_key`)
    is n."""
    parts = ["", *(str(n) for n in range(1, len(impairments)))]
    keys = (direction_key(seed, link, direction, part) for part in parts)
    return [Decider(each, key) for each, key in zip(impairments, keys, strict=False)]


def decider(impairment: Impairment, key: int) -> Decider:
    """Returns the decider of one impairment. key: the key of its random numbers."""
    return Decider(impairment, key)


def flip(frame: bytes, bit: int) -> bytes:
    """Returns the frame with one bit inverted."""
    changed = bytearray(frame)
    changed[bit >> 3] ^= 0x80 >> (bit & 7)
    return bytes(changed)


def _numbers(impairment: Impairment) -> list[int]:
    """Returns the frame numbers that an impairment lists, without those that no frame can have."""
    if not isinstance(impairment, DropList):
        return []
    return [number for number in impairment.numbers if number < NUMBERS]


def _chance(probability: float) -> _Chance:
    limit = threshold(probability)
    return _Chance(limit % ALWAYS, limit == ALWAYS)


def _once(probability: float) -> Any:
    return (_Chance * 2)(_chance(probability))


def _drop(impairment: Drop | Corrupt) -> dict[str, Any]:
    return {"chances": _once(impairment.probability)}


def _gilbert_elliott(impairment: GilbertElliott) -> dict[str, Any]:
    leave = (_chance(impairment.to_bad), _chance(impairment.to_good))
    loss = (_chance(impairment.good_loss), _chance(impairment.bad_loss))
    return {"chances": (_Chance * 2)(*leave), "losses": (_Chance * 2)(*loss)}


def _periodic(impairment: PeriodicDrop) -> dict[str, Any]:
    return {name: getattr(impairment, name) for name in ("period", "count", "offset")}


def _drop_list(impairment: DropList) -> dict[str, Any]:
    return {}


def _delayed(impairment: Duplicate | Reorder) -> dict[str, Any]:
    delay_ns = impairment.delay_us * NS_PER_US
    return {"chances": _once(impairment.probability), "delay_ns": delay_ns}


def _jitter(impairment: Jitter) -> dict[str, Any]:
    return {"delay_ns": impairment.max_us * NS_PER_US}


KINDS: dict[type, tuple[int, Callable[..., dict[str, Any]]]] = {
    Drop: (0, _drop),
    GilbertElliott: (1, _gilbert_elliott),
    PeriodicDrop: (2, _periodic),
    DropList: (3, _drop_list),
    Duplicate: (4, _delayed),
    Reorder: (5, _delayed),
    Corrupt: (6, _drop),
    Jitter: (7, _jitter),
}
"""The number of each kind in native/decisions.h, and the function that sets its fields."""
