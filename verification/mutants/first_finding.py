"""Prints the first of N schedules that fails, as a line of JSON.

`python -m agglab.verification.mutants.first_finding SYSTEM N` works in one process and does not
make the schedule small, unlike `explore`. The reason is that many searches run side by side here,
and a fault has to be found only once.
"""

from __future__ import annotations

import json
import sys

from agglab.verification import programs
from agglab.verification.explore.search import Subject, try_seed


def first_finding(system: str, schedules: int) -> dict[str, object]:
    """Returns the seed and the finding, both None if no schedule fails."""
    subject = Subject(system, programs.path(system))
    for seed in range(schedules):
        finding = try_seed(seed, subject).finding
        if finding:
            return {"seed": seed, "finding": str(finding)}
    return {"seed": None, "finding": None}


if __name__ == "__main__":
    print(json.dumps(first_finding(sys.argv[1], int(sys.argv[2]))))
