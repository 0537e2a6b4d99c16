"""Floats of 16 bits as switches sum them (docs/numbers.md): what a scenario may ask for, and what
results must be.

The truth shares no code with the P4 program. A sum of float16 is exact in float64, and so is most
sums of bfloat16. The others are computed with Python's whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from agglab.hosts.bfloat16 import BFLOAT16, NAME, cast, dtype_of, widened
from agglab.hosts.wire import VALUE_BYTES
from agglab.systems.switchml.partial import PLAIN_SETS
from agglab.testbed.schema.jobs import Finding, stated, stated_workloads
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import ActiveJob, Array, Truth, TruthOf
from agglab.testbed.systems.plan import Tree
from p4native.switch import MAX_CELLS

PROGRAMS = {"float16": "switchml_float16", NAME: "switchml_bfloat16"}
"""The types, with the name of the P4 program that sums them."""
BINS = {"float16": 1, NAME: 8}
"""The number of a slot's accumulators for each value."""
INFINITY = {np.dtype(np.float16): 0x7C00, BFLOAT16: 0x7F80}
NAN = {np.dtype(np.float16): 0x7E00, BFLOAT16: 0x7FC0}
"""The bits of the only NaN that switches send."""
BIN_FACTOR = 4
"""The memory for accumulators with one bin, relative to that for a lane's 32-bit sums. A lane has
two values with 64 bits each."""
UNIT_LOG2 = -133
"""The smallest bfloat16 above 0 is 2 to this power."""
SPAN_MAX = 38
"""If the exponents of values of 8 bits differ by no more than this, the sum of 64 of them has at
most 52 bits, so float64 holds it."""
FLOAT64_BITS = 53


def used(scenario: Scenario) -> list[str]:
    """Returns the types of 16 bits that the scenario's jobs have."""
    found = {job.workload.dtype for job in stated(scenario)}
    return [dtype for dtype in PROGRAMS if dtype in found]


def factor(scenario: Scenario) -> int:
    """Returns the memory for sums of halves, relative to that for a lane's 32-bit sums."""
    return sum(BIN_FACTOR * BINS[dtype] for dtype in used(scenario))


def even(lanes: int) -> int:
    """Returns the number of lanes of a program that sums halves. It is even, because halves are
    processed in words of two lanes, which hold four values."""
    return max(2, lanes - lanes % 2)


def values_per_chunk(lanes: int, dtype: str) -> int:
    """Returns how many values of this dtype a packet carries."""
    return lanes * VALUE_BYTES // dtype_of(dtype).itemsize


def check(
    scenario: Scenario, trust: Trust, lanes_of: Callable[[Scenario], int]
) -> Iterator[Finding]:
    """Yields the problems of a scenario with halves. lanes_of: returns the lanes of the scenario's
    program."""
    types = used(scenario)
    if not types:
        return
    for path, work in stated_workloads(scenario):
        dtype = work.dtype
        if trust(f"{path}.worker") and work.worker and dtype in PROGRAMS:
            what = f"{dtype} is supported only by the worker that comes with Agglab"
            yield f"{path}.worker", what, "remove this key"
        if trust(f"{path}.dtype") and len(types) > 1 and dtype == types[-1]:
            what = f"a switch sums either {types[0]} or {types[1]}"
            yield f"{path}.dtype", what, f"the same type in all jobs, or float32 beside {types[0]}"
    lanes = scenario.switch.lanes
    if trust("switch.lanes") and lanes is not None and lanes % 2:
        yield (
            "switch.lanes",
            f"{lanes} is odd, but {types[0]} uses lanes in pairs",
            "an even number",
        )
    elif trust("switch.lanes", "switch.slots", "links.mtu"):
        yield from _too_many_accumulators(types[0], scenario.switch.slots, lanes_of(scenario))


def _too_many_accumulators(dtype: str, slots: int, lanes: int) -> Iterator[Finding]:
    """Yields a problem if the accumulators need a larger register than a switch can have."""
    of_a_slot = PLAIN_SETS * values_per_chunk(lanes, dtype) * BINS[dtype]
    if slots * of_a_slot > MAX_CELLS:
        what = f"{slots} slots with {of_a_slot:,} accumulators each for {dtype} are too many"
        yield "switch.slots", what, f"at most {MAX_CELLS // of_a_slot}, or fewer switch.lanes"


def truth_of(tree: Tree, job: ActiveJob) -> TruthOf:
    """Returns the truth (see RightResults). Every switch rounds the exact sum of what its children
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
    """Returns the float16 or bfloat16 nearest to the exact sum of arrays of the same type, ties to
    even. docs/numbers.md defines the results for zeros, infinities and NaN."""
    dtype = parts[0].dtype
    with np.errstate(invalid="ignore", over="ignore"):
        if dtype == BFLOAT16:
            total = _nearest(_wide_sum([widened(part) for part in parts]))
        else:
            total = np.sum([part.astype(np.float64) for part in parts], axis=0).astype(dtype)
    bits: Array = total.view(np.uint16)
    bits[np.all([part.view(np.uint16) == 0x8000 for part in parts], axis=0)] = 0x8000
    bits[(bits & 0x7FFF) > INFINITY[dtype]] = NAN[dtype]
    return bits.view(dtype)


def _wide_sum(parts: Sequence[Array]) -> Array:
    """Returns the sum of bfloat16 values, given as float32, in float64. Where float64 does not hold
    the sum, it is cut off after 53 bits, the last of which is set."""
    total: Array = np.sum([part.astype(np.float64) for part in parts], axis=0)
    exponents = np.frexp(parts)[1]
    counts = np.isfinite(parts) & (np.asarray(parts) != 0)
    largest = np.max(exponents, axis=0, where=counts, initial=-1000)
    smallest = np.min(exponents, axis=0, where=counts, initial=1000)
    for at in np.flatnonzero((largest - smallest > SPAN_MAX) & np.isfinite(total)):
        total[at] = _odd(sum(int(np.ldexp(float(part[at]), -UNIT_LOG2)) for part in parts))
    return total


def _odd(units: int) -> float:
    """Returns a number of units as a float64, cut off as in `_wide_sum`."""
    cut = max(0, abs(units).bit_length() - FLOAT64_BITS)
    kept = abs(units) >> cut | (abs(units) & ((1 << cut) - 1) != 0)
    return float(np.copysign(np.ldexp(float(kept), cut + UNIT_LOG2), units))


def _nearest(wide: Array) -> Array:
    """Returns the bfloat16 nearest to each float64, ties to even."""
    last = np.maximum(np.frexp(wide)[1] - 8, UNIT_LOG2)  # log2 of the last place
    rounded = np.ldexp(np.rint(np.ldexp(wide, -last)), last)
    return cast(rounded, BFLOAT16)  # which rounds nothing any more
