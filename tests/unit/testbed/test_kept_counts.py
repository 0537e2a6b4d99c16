"""What a real switch has counted outlives its restart, for any system's counters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.mininet_backend import MininetBackend
from agglab.topologies import rack


class Emptied:
    """A switch whose counters hold two packets of 90 bytes, also after it was emptied."""

    def read_counter(self, counter: str) -> dict[int, tuple[int, int]]:
        if counter == "not_there":
            raise ValueError(counter)
        return {0: (2, 180)}

    def reprogram(self) -> None: ...


@pytest.mark.parametrize(("kept", "packets"), [(["of_a_users_own", "not_there"], 4), ([], 2)])
def test_counters_are_those_of_the_system(tmp_path: Path, kept: list[str], packets: int) -> None:
    target: Any = None
    backend = MininetBackend(
        rack(2), 1, (), {"s1": target}, tmp_path, tmp_path, tmp_path, 1.0, iter(kept)
    )
    emptied: Any = Emptied()
    backend._switches["s1"] = emptied
    backend.reprogram_switch("s1")
    assert backend.counters("s1", "of_a_users_own") == {0: (packets, 90 * packets)}
    assert backend.counters("s1", "not_there") is None
