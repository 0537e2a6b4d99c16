"""`python -m verification.mutants.first_finding N`: the first of N schedules that fails, as a line
of JSON. In one process and without making it small, unlike `testbed explore`: here many searches
run side by side, and a fault needs to be found but once."""

from __future__ import annotations

import json
import sys

from testbed.explore.schedules import LANES, SLOTS
from testbed.explore.search import try_seed
from testbed.places import P4_FOLDER
from testbed.program import compile_program
from testbed.virtual import Chip


def first_finding(schedules: int) -> dict[str, object]:
    """seed and finding; both None where all schedules end as they must."""
    chip = Chip(compile_program(P4_FOLDER / "switchml.p4", "agglab", LANES, SLOTS).json)
    for seed in range(schedules):
        finding = try_seed(seed, chip).finding
        if finding:
            return {"seed": seed, "finding": str(finding)}
    return {"seed": None, "finding": None}


if __name__ == "__main__":
    print(json.dumps(first_finding(int(sys.argv[1]))))
