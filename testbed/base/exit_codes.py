"""The exit codes of `agglab`: those of the P4 toolchain's commands, and UNDECIDED.

A run is FAILED if an expectation of its scenario does not hold or it was aborted. It is INVALID if
the scenario, its P4 program or the command line is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable

from p4native.common.exit_codes import FAILED, INTERRUPTED, INVALID, LACKING, PASSED

__all__ = ["FAILED", "INTERRUPTED", "INVALID", "LACKING", "PASSED", "UNDECIDED", "together"]
UNDECIDED = 4
"""The run cannot be judged: the program or a lack of processors explains what happened."""


def together(codes: Iterable[int]) -> int:
    """Returns the exit code for several runs: FAILED if one failed, else the code of the first that
    ended in another way than PASSED or UNDECIDED, else UNDECIDED if one could not be judged."""
    distinct = dict.fromkeys(codes)
    others = [code for code in distinct if code not in (PASSED, UNDECIDED)]
    if FAILED in distinct:
        return FAILED
    return others[0] if others else max(distinct, default=PASSED)
