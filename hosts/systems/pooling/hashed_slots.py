"""Computes the slot that each chunk of a job asks for. Imports hosts.hashes only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.hashes import hash_place

SALTS = 8
"""How often a place is drawn again if the job already has it."""


def hashed_slots(job: int, window: int, first_slot: int, slots: int) -> NDArray[np.uint16]:
    """Slots in which a job's chunks follow each other: that of tag t is number t modulo the length.

    uint16 of shape (min(window, slots),), all different and within `slots` slots from `first_slot`
    on: a hash of job, number and salt; where the job has another number there, the next salt, as
    published, and after SALTS of them the next slot that is free. So only where more chunks than
    `slots` are at the switch at once do two chunks of one job want the same slot.
    """
    count = min(window, slots)
    taken = np.zeros(slots, np.bool_)
    found = np.zeros(count, np.uint16)
    for number in range(count):
        place = _free_place(job, number, slots, taken)
        taken[place] = True
        found[number] = first_slot + place
    return found


def _free_place(job: int, number: int, slots: int, taken: NDArray[np.bool_]) -> int:
    place = 0
    for salt in range(SALTS):
        place = hash_place("crc32", [(job, 16), (number, 16), (salt, 16)], 0, slots)
        if not taken[place]:
            return place
    return int((np.flatnonzero(~np.roll(taken, -place))[0] + place) % slots)
