"""The exit codes of `agglab`."""

from __future__ import annotations

from collections.abc import Iterable

PASSED = 0
"""Every expectation of the scenario holds."""
FAILED = 1
"""An expectation does not hold, or the run was aborted."""
INVALID = 2
"""The scenario, its P4 program or the command line is wrong."""
LACKING = 3
"""The machine lacks something; a message has named it."""
UNDECIDED = 4
"""The run cannot be judged: the program or a lack of processors explains what happened."""
INTERRUPTED = 130
"""The run was interrupted; shells use the same code for SIGINT."""


def together(codes: Iterable[int]) -> int:
    """Returns the exit code for several runs: FAILED if one failed, else the code of the first that
    ended in another way than PASSED or UNDECIDED, else UNDECIDED if one could not be judged."""
    distinct = dict.fromkeys(codes)
    others = [code for code in distinct if code not in (PASSED, UNDECIDED)]
    if FAILED in distinct:
        return FAILED
    return others[0] if others else max(distinct, default=PASSED)
