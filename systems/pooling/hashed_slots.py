"""Computes which slot of the switch each chunk of a job asks for. This module imports only
hosts.hashes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.hashes import hash_place

SALTS = 8
"""The number of salts that are tried to find a slot that the job does not use yet."""


def hashed_slots(job: int, window: int, first_slot: int, slots: int) -> NDArray[np.uint16]:
    """Returns the slots that the chunks of a job use. The chunk with tag t uses the slot at index t
    modulo the length of the result.

    The result is uint16 of shape (min(window, slots),). Its slots are all different, from
    `first_slot` to `first_slot + slots - 1`. Each slot is a hash of the job, the slot's index in
    the result, and a salt. If the job already uses this slot, the next salt is tried, as published;
    after SALTS salts, the next free slot is taken. So two chunks of one job want the same slot only
    if more than `slots` chunks are at the switch at once.
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
