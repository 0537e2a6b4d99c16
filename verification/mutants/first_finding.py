"""The first of N schedules that fails, as a line of JSON.

`python -m agglab.verification.mutants.first_finding N` works in one process and does not make the
schedule small, unlike `explore`: here many searches run side by side, and a fault needs to be found
but once."""

from __future__ import annotations

import json
import sys

from agglab.testbed.places import P4_FOLDER
from agglab.testbed.program import compile_program
from agglab.testbed.virtual import CompiledProgram
from agglab.verification.explore.schedules import LANES, SLOTS
from agglab.verification.explore.search import try_seed


def first_finding(schedules: int) -> dict[str, object]:
    """seed and finding; both None where all schedules end as they must."""
    compiled = CompiledProgram(
        compile_program(P4_FOLDER / "switchml.p4", "agglab", {"LANES": LANES, "SLOTS": SLOTS}).json
    )
    for seed in range(schedules):
        finding = try_seed(seed, compiled).finding
        if finding:
            return {"seed": seed, "finding": str(finding)}
    return {"seed": None, "finding": None}


if __name__ == "__main__":
    print(json.dumps(first_finding(int(sys.argv[1]))))
