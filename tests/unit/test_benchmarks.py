"""What `make bench` says of a figure and its goal."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import _line
from benchmarks.row import Goal, Row


@pytest.mark.parametrize(
    ("row", "met", "says"),
    [
        (Row("p", "w", 90.0, "packets/s", "copy", 0.9, Goal(0.9)), True, "at least 0.9 x: met"),
        (
            Row("p", "w", 89.0, "packets/s", "copy", 0.89, Goal(0.9)),
            False,
            "at least 0.9 x: MISSED",
        ),
        (
            Row("p", "w", 5.1, "s", goal=Goal(5.0, most=True, of_value=True)),
            False,
            "at most 5 s: MISSED",
        ),
        (
            Row("p", "w", 0.2, "s", "cold", 7.0, Goal(0.3, most=True, of_value=True)),
            True,
            "at most 0.3 s: met",
        ),
        (Row("p", "w", 4321.0, "calls/s"), None, "4,321 calls/s"),
    ],
)
def test_a_row_says_whether_its_goal_is_reached(row: Row, met: bool | None, says: str) -> None:
    assert row.met is met
    assert _line(row).endswith(says)
