"""Where a job's chunks look for a slot. Imports hosts.hashes only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.hashes import hash_place

SALTS = 64
"""How often a place is drawn again that the job has already."""


def places(job: int, window: int, first_slot: int, slots: int) -> NDArray[np.uint16]:
    """The slot of each of a job's positions: uint16 of shape (window,), all within `slots` slots
    from `first_slot` on. A hash of job, position and salt; where the job has another position
    there, the next salt, as published, and after SALTS of them the next slot that is free. Only if
    the window is larger than `slots` do two positions have one slot.
    """
    taken = np.zeros(slots, np.bool_)
    found = np.zeros(window, np.uint16)
    for position in range(window):
        if position % slots == 0:
            taken[:] = False
        place = _free_place(job, position, slots, taken)
        taken[place] = True
        found[position] = first_slot + place
    return found


def _free_place(job: int, position: int, slots: int, taken: NDArray[np.bool_]) -> int:
    place = 0
    for salt in range(SALTS):
        place = hash_place("crc32", [(job, 16), (position, 16), (salt, 16)], 0, slots)
        if not taken[place]:
            return place
    return int((np.flatnonzero(~np.roll(taken, -place))[0] + place) % slots)
