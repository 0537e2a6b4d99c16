"""Computes a round's correct sums and results, from nothing but the inputs and README.md."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agglab.systems.pooling.scales import unfit
from agglab.testbed.systems.base import Array, Truth, TruthOf, integer_sum
from agglab.testbed.systems.between_hosts import one_after_another


def truth_of(dtype: str, lanes: int, scale_log2: int) -> TruthOf:
    """Returns the truth (see RightResults). The first element of a block must be the first of a
    chunk."""
    if dtype == "int32":
        return integer_sum
    return lambda start, inputs: _float_truth(inputs, lanes, scale_log2)


def _float_truth(inputs: Sequence[Array], lanes: int, scale_log2: int) -> Truth:
    """Returns the truth for float32. If a chunk fits the scale, its result may be off by half a
    step for each worker, and by the rounding of the result. If it does not fit, its result must be
    the float32 sum in the order of the ranks, bit for bit; no integers are sent for it."""
    as_floats = np.repeat(unfit(inputs, lanes, scale_log2), lanes)[: inputs[0].size]
    wide = [np.where(as_floats, 0.0, x.astype(np.float64)) for x in inputs]
    values = np.zeros(inputs[0].size)
    sums = np.zeros(inputs[0].size)
    for x in wide:
        values += x
        sums += np.rint(np.ldexp(x, scale_log2))
    rounding = 0.5 * len(inputs) * 2.0**-scale_log2
    half_unit = np.spacing((np.abs(values) + rounding).astype(np.float32)).astype(np.float64) / 2
    allowed = np.where(as_floats, 0.0, rounding + half_unit)
    values = np.where(as_floats, one_after_another(inputs).astype(np.float64), values)
    return Truth(values, allowed, sums.astype(np.int32))
