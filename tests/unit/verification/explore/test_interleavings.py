"""All orders of a small case; and that a broken switch is caught with the steps that lead there."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_program import AGGREGATION, own_program

from agglab.systems.switchml.verification.interleavings import (
    ONE_CHUNK,
    SET_AGAIN,
    TWO_SLOTS,
    Case,
    InvariantViolated,
    enumerate_all,
)
from agglab.testbed.base.paths import REPOSITORY
from agglab.verification.explore.command import main

PROGRAM = REPOSITORY / "p4" / "switchml.p4"


def test_two_steps_by_hand() -> None:
    """Four packets: each is delivered, lost or doubled (12 ways). After a delivery three are left
    with three ways each, and the delivered one can be sent again (10); after a loss the same (10);
    after a doubling one cannot be doubled again (11)."""
    done = enumerate_all(PROGRAM, Case(2, 2, 2), depth=2)
    assert done.interleavings == 4 * (10 + 10 + 11)


def test_every_order_ends_well() -> None:
    shallow = enumerate_all(PROGRAM, Case(2, 5, 2), depth=6)
    assert (shallow.interleavings, shallow.states) == (940_736, 3928)
    whole = enumerate_all(PROGRAM, ONE_CHUNK, depth=None)
    assert (whole.interleavings, whole.states, whole.depth) == (None, 29511, 24)


@pytest.mark.long
def test_without_copies_every_order_of_two_slots() -> None:
    """Each slot has states of its own."""
    assert enumerate_all(PROGRAM, TWO_SLOTS, depth=None).states == 61 * 673


@pytest.mark.long
def test_a_set_that_is_used_again(tmp_path: Path) -> None:
    """The third packet of a slot meets what the first has left; one of the first may still come."""
    assert enumerate_all(PROGRAM, SET_AGAIN, depth=None).states == 6181
    program = own_program(
        tmp_path, (AGGREGATION, "meta.stale = used && ahead[31:31] == 1;", "meta.stale = false;")
    )
    with pytest.raises(InvariantViolated, match="after: "):
        enumerate_all(program, SET_AGAIN, depth=None)


@pytest.mark.long
def test_adding_twice_is_caught(tmp_path: Path) -> None:
    old = "(meta.before & meta.worker) != 0"
    program = own_program(tmp_path, (AGGREGATION, old, f"{old} && meta.before == meta.all_workers"))
    with pytest.raises(InvariantViolated, match=r"wrong sum in chunk .* after: duplicate slot"):
        enumerate_all(program, Case(2, 2, 2), depth=3)


@pytest.mark.long
def test_never_answering_again_is_caught(tmp_path: Path) -> None:
    program = own_program(tmp_path, (AGGREGATION, "if (meta.holds_result) {", "if (false) {"))
    with pytest.raises(InvariantViolated, match=r"the round does not end after: .*lose slot"):
        enumerate_all(program, Case(2, 1, 2), depth=None)


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--schedules", "0", "--program", "none.p4"]) == 2
    assert "none.p4: no such file" in capsys.readouterr().err
