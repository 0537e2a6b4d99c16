"""Half precision as switches sum it (docs/numbers.md): what a scenario may ask for, and what
results must be.

The truth uses NumPy and shares no code with the P4 program. Values are exact in float64, and so is
the sum of fewer than 8,192 of them. A cast from float64 rounds to nearest, ties to even.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from agglab.hosts.wire import VALUE_BYTES
from agglab.testbed.plan import Tree
from agglab.testbed.scenario import Scenario
from agglab.testbed.scenario.jobs import Finding, stated
from agglab.testbed.scenario.trust import Trust
from agglab.testbed.systems.base import ActiveJob, Array, Truth, TruthOf

DTYPE = "float16"
NAN = np.array(0x7E00, np.uint16).view(np.float16)
"""The only NaN that switches send."""
FACTOR = 8
"""The memory for sums of halves, relative to that for a lane's 32-bit sums. A lane has two values
with 64 bits each, in a register of twice the necessary length."""


def used(scenario: Scenario) -> bool:
    """Returns whether some job's values are halves."""
    return any(job.workload.dtype == DTYPE for job in stated(scenario))


def even(lanes: int) -> int:
    """Returns the number of lanes of a program that sums halves. It is even, because halves are
    processed in words of two lanes, which hold four values."""
    return max(2, lanes - lanes % 2)


def values_per_chunk(lanes: int, dtype: str) -> int:
    """Returns how many values of this dtype a packet carries."""
    return lanes * VALUE_BYTES // np.dtype(dtype).itemsize


def check(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Yields the problems of a scenario with halves."""
    if not used(scenario):
        return
    for i, job in enumerate(stated(scenario)):
        path = f"jobs[{i}].workload.worker" if scenario.jobs else "workload.worker"
        if trust(path) and job.workload.worker and job.workload.dtype == DTYPE:
            yield (
                path,
                "float16 is supported only by the worker that comes with Agglab",
                "remove this key",
            )
    lanes = scenario.switch.lanes
    if trust("switch.lanes") and lanes is not None and lanes % 2:
        yield "switch.lanes", f"{lanes} is odd, but float16 uses lanes in pairs", "an even number"


def truth_of(tree: Tree, job: ActiveJob) -> TruthOf:
    """Returns the truth (see System.truth). Every switch rounds the exact sum of what its children
    sent."""
    ranks = [job.job.hosts[rank] for rank in job.members]

    def truth(start: int, inputs: Sequence[Array]) -> Truth:
        return Truth(_summed(tree, tree.root, dict(zip(ranks, inputs, strict=True))))

    return truth


def _summed(tree: Tree, node: str, inputs: Mapping[str, Array]) -> Array:
    if node in inputs:
        return inputs[node]
    return rounded_sum([_summed(tree, child, inputs) for _, child in tree.branches[node].children])


def rounded_sum(parts: Sequence[Array]) -> Array:
    """Returns the float16 nearest to the exact sum of float16 arrays, ties to even. docs/numbers.md
    defines the results for zeros, infinities and NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        wide = np.sum([part.astype(np.float64) for part in parts], axis=0)
        total: Array = wide.astype(np.float16)
    total[np.all([part.view(np.uint16) == 0x8000 for part in parts], axis=0)] = -0.0
    total[np.isnan(total)] = NAN
    return total
