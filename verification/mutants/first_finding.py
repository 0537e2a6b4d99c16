"""Finds the first of N schedules of faults that makes a system fail, and prints it as a line of
JSON.

`python -m agglab.verification.mutants.first_finding SYSTEM N` uses one process and does not make
the schedule small, unlike `explore`. The reason is that many such searches run side by side, and
each has to find its fault only once. Findings about timers do not count, because they do not change
what workers receive.
"""

from __future__ import annotations

import json
import sys

from agglab.verification import programs
from agglab.verification.explore.search import Subject, try_seed
from agglab.verification.judgement import SENT_AGAIN, SLOW

OF_TIMERS = (SENT_AGAIN, SLOW)


def first_finding(system: str, schedules: int) -> dict[str, object]:
    """Returns the seed and the finding, both None if no schedule fails."""
    subject = Subject(system, programs.path(system))
    for seed in range(schedules):
        for finding in try_seed(seed, subject).findings:
            if finding.kind not in OF_TIMERS:
                return {"seed": seed, "finding": str(finding)}
    return {"seed": None, "finding": None}


if __name__ == "__main__":
    print(json.dumps(first_finding(sys.argv[1], int(sys.argv[2]))))
