"""Gives each name a color. The same contender has the same color in every chart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from zlib import crc32

COLOURS = (
    *("#0B7F8C", "#8A5CD6", "#D0458F", "#00805A", "#C65D00", "#B441C6", "#7A7A00", "#0072B2"),
    *("#2477D4", "#CC3358", "#808080", "#A0622D", "#A87500", "#3F8F1F", "#5F7AA8", "#C2607A"),
)
"""The colors of lines and bars. Each can be told from a white and from a dark page."""
REFERENCE = "#E0501F"
"""The color of references and of marks, which no line has."""
BOUND = "#6E6E6E"
"""The color of the marks at bars."""
DASHES = (
    *((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (12, 4), (1, 4)),
    *((10, 3, 2, 3, 2, 3), (4, 8), (16, 3, 4, 3), (2, 8), (6, 2, 6, 8), (1, 2, 1, 8)),
)
SALT = 47
"""Chosen so that the systems that come with Agglab have different colors."""
NUMBERED = re.compile(r"(?:^|\D)(\d{1,6})$", re.ASCII)


@dataclass(frozen=True)
class Palette:
    """The colors of one result. contenders: those of all runs; they have the first choice, in each
    chart alike."""

    contenders: tuple[str, ...] = ()

    def of(self, names: Sequence[str]) -> Mapping[str, str]:
        """Returns the color of each name. If the color that a name prefers is taken, the name gets
        the next one that is free. From the 17th name on, colors repeat."""
        slots: dict[str, int] = {}
        for name in dict.fromkeys((*sorted(self.contenders), *names)):
            slots[name] = _free(_preferred(name), set(slots.values()))
        return {name: COLOURS[slots[name] % len(COLOURS)] for name in names}


def _preferred(name: str) -> int:
    """Returns the number of a color that depends on the name alone: `worker 3` has that of 3."""
    numbered = NUMBERED.search(name)
    number = int(numbered[1]) if numbered else crc32(f"{SALT} {name}".encode(errors="replace"))
    return number % len(COLOURS)


def _free(preferred: int, taken: Set[int]) -> int:
    """Returns the next free slot. Slots beyond the colors are further rounds of the same colors."""
    count = len(COLOURS)
    first_of_round = len(taken) // count * count
    slots = (first_of_round + (preferred + step) % count for step in range(count))
    return next(slot for slot in slots if slot not in taken)
