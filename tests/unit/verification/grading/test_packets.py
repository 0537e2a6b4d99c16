"""Which packet of a script is told of: the first that shows that something is wrong."""

from __future__ import annotations

import pytest

from agglab.verification.grading.packets import _first
from agglab.verification.grading.symptoms import Frames, Sent
from p4native.stf import Expect, Mismatch, parse

COMMANDS = parse("packet 1 01\npacket 1 02\nexpect 2 0a\nexpect 2 0b\npacket 1 03\nexpect 3 0c\n")
OF_FIRST, OF_SECOND, OF_THIRD = (each for each in COMMANDS if isinstance(each, Expect))
WRONG = b"\xff"


def sent(*came: Frames) -> list[Sent]:
    return [Sent(1, b"", each, {}, {}) for each in came]


CASES = {
    "an answer that is expected behind the next packet": (
        sent([(2, WRONG)], [(2, b"\x0b")], [(3, b"\x0c")]),
        [Mismatch(2, 0, OF_FIRST, WRONG)],
        0,
    ),
    "an answer that comes one packet later than it is expected": (
        sent([], [(2, b"\x0a")], [(2, WRONG), (3, b"\x0c")]),
        [Mismatch(2, 1, OF_SECOND, WRONG)],
        1,
    ),
    "no answer": (sent([], [(2, b"\x0a")], []), [Mismatch(3, 0, OF_THIRD, None)], 2),
    "an answer too many": (
        sent([(2, b"\x0a")], [(2, b"\x0b"), (4, WRONG)], [(3, b"\x0c")]),
        [Mismatch(4, 0, None, WRONG)],
        1,
    ),
    "the first of several": (
        sent([(2, WRONG)], [(2, WRONG)], [(3, WRONG)]),
        [Mismatch(3, 0, OF_THIRD, WRONG), Mismatch(2, 1, OF_SECOND, WRONG)],
        1,
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_the_first_packet_that_shows_it(what: str) -> None:
    came, mismatches, number = CASES[what]
    assert _first(COMMANDS, came, mismatches) == (number, mismatches[-1])


def test_nothing_is_shown_without_a_mismatch() -> None:
    assert _first(COMMANDS, sent([], [], []), []) is None
