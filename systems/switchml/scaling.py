"""Conversion of floats to integers by a scenario's own scaling factor (docs/numbers.md): its keys,
the settings of workers, and the right results.

The right results are computed without the code of the step in C. The two have only the text of that
page in common.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from agglab.testbed.schema.jobs import Finding, stated_workloads
from agglab.testbed.schema.key import key
from agglab.testbed.schema.kinds import AutoOr, Choice, OneOf, Whole, duration
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import ActiveJob, Array, Truth, TruthOf
from agglab.testbed.systems.summing.truth import (
    FLOAT64_SLACK,
    chunk_scales,
    half_unit,
    quantise_bits,
)

NAME = "switchml"
DTYPE = "float32"
SCALE_MIN, SCALE_MAX = -64, 64
BITS_MIN, BITS_MAX = 2, 32
NEAREST, STOCHASTIC = "nearest", "stochastic"
FULL_BITS = 32


@dataclass(frozen=True)
class SwitchmlKeys:
    """The keys of the section `switchml`."""

    scale_log2: int | None = key(
        "scale_log2",
        AutoOr(Whole(SCALE_MIN, SCALE_MAX), "for each chunk, as its largest value allows"),
        None,
        "float32 values are multiplied by 2 to the power of this number and summed as "
        "integers; values that do not fit become the nearest integer that does",
    )
    bits: int | None = key(
        "bits",
        AutoOr(Whole(BITS_MIN, BITS_MAX), "as many as `wire_bits` and the sum leave room for"),
        None,
        "the largest number of bits, with the sign, of the integer that a float32 becomes",
    )
    rounding: str = key(
        "rounding",
        Choice((NEAREST, STOCHASTIC)),
        NEAREST,
        "`stochastic`: up or down at random, more often to the nearer integer",
    )
    wire_bits: int = key(
        "wire_bits",
        OneOf((FULL_BITS, 16, 8, 4)),
        FULL_BITS,
        "the bits of a value in a worker's packets; below 32, results have twice as many",
    )
    deadline_s: float | None = key(
        "deadline",
        AutoOr(duration("1us", "10s"), "chunks wait until all workers are in their sums"),
        None,
        "a chunk that has waited so long is summed without the workers that are still missing",
    )
    sets: int = key(
        "sets",
        OneOf((2, 4, 8, 16)),
        8,
        "with a deadline: how many results of a slot a switch keeps for workers that lack them",
    )


PLAIN = SwitchmlKeys()


def has_own_numbers(own: SwitchmlKeys) -> bool:
    """Returns whether the keys change how floats become integers."""
    return replace(own, deadline_s=PLAIN.deadline_s, sets=PLAIN.sets) != PLAIN


def keys_of(scenario: Scenario) -> SwitchmlKeys:
    """Returns the section `switchml` of a scenario, or its defaults."""
    own = dict(scenario.options).get(NAME)
    return own if isinstance(own, SwitchmlKeys) else PLAIN


def check(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Yields a problem for each job that cannot have a scaling factor: its values are not float32,
    or it has a worker class of the user's own."""
    if not has_own_numbers(keys_of(scenario)):
        return
    for path, work in stated_workloads(scenario):
        if trust(f"{path}.dtype") and work.dtype != DTYPE:
            what = f"{work.dtype} has no scaling factor, which `{NAME}` sets"
            yield f"{path}.dtype", what, f"float32, or a scenario without `{NAME}`"
        if trust(f"{path}.worker") and work.worker:
            what = f"a worker of your own does not know what `{NAME}` sets"
            yield f"{path}.worker", what, "leave it out"


def settings(own: SwitchmlKeys, seed: int, job: int, rank: int) -> dict[str, Any]:
    """Returns the settings of the worker with this rank, as fixed_point.FixedPoint takes
    them."""
    drawn = own.rounding == STOCHASTIC
    return {
        "scale_log2": own.scale_log2,
        "bits": bits_of(own),
        "noise_key": noise_key(seed, job, rank) if drawn else None,
    }


def bits_of(own: SwitchmlKeys) -> int | None:
    """Returns the largest number of bits of an integer; None if only the sum limits it."""
    return own.wire_bits if own.bits is None and own.wire_bits < FULL_BITS else own.bits


def noise_key(seed: int, job: int, rank: int) -> int:
    """Returns a 64-bit key, not 0, that differs between runs, jobs and ranks."""
    digest = hashlib.sha256(f"rounding {seed} {job} {rank}".encode()).digest()
    return int.from_bytes(digest[:8], "little") | 1


def truth_of(own: SwitchmlKeys, per_chunk: int, seed: int, job: ActiveJob) -> TruthOf:
    """Returns the truth (see RightResults). The first element of a block must be the first of a
    chunk, which has `per_chunk` values.

    A result may be off for three reasons. Rounding changes each worker's value by at most half a
    step, or by a step if it is random. Values that do not fit are cut. The result itself is rounded
    to float32.
    """
    drawn = own.rounding == STOCHASTIC
    keys = [noise_key(seed, job.job.number, rank) if drawn else 0 for rank in job.members]
    return lambda start, inputs: _truth(own, per_chunk, keys, start, inputs)


def _truth(
    own: SwitchmlKeys, per_chunk: int, keys: Sequence[int], start: int, inputs: Sequence[Array]
) -> Truth:
    limit = 2.0 ** value_bits(own, len(inputs)) - 1
    scale = _scale(own, per_chunk, inputs)
    values, total, beyond = (np.zeros(inputs[0].size) for _ in range(3))
    for noise, x in zip(keys, inputs, strict=True):
        scaled = x.astype(np.float64) * scale
        values += x.astype(np.float64)
        total += np.clip(rounded(noise, start, scaled, x), -limit, limit)
        beyond += np.maximum(np.abs(scaled) - limit, 0.0)
    step = 1.0 if any(keys) else 0.5
    rounding = (len(inputs) * step + beyond) / scale
    allowed = rounding * FLOAT64_SLACK + half_unit(np.abs(values) + rounding)
    return Truth(values, allowed, total.astype(np.int32))


def value_bits(own: SwitchmlKeys, workers: int) -> int:
    """Returns b, where each float becomes an integer of at most 2^b - 1 in magnitude."""
    room, bits = quantise_bits(workers), bits_of(own)
    return room if bits is None else min(room, bits - 1)


def _scale(own: SwitchmlKeys, per_chunk: int, inputs: Sequence[Array]) -> Array:
    """Returns the factor by which each element is multiplied."""
    if own.scale_log2 is not None:
        return np.full(inputs[0].size, 2.0**own.scale_log2)
    chunks = chunk_scales(inputs, per_chunk, value_bits(own, len(inputs)))
    return np.repeat(chunks, per_chunk)[: inputs[0].size]


def rounded(key: int, start: int, scaled: Array, x: Array) -> Array:
    """Returns the integers that the values `x` become, which are multiplied to `scaled`. start: the
    place of the first value in the tensor. key: the key of stochastic rounding, or 0."""
    if not key:
        return np.rint(scaled)
    places = np.arange(start, start + x.size, dtype=np.uint64)
    drawn = _mix(_mix(places + np.uint64(key)) + x.view(np.uint32).astype(np.uint64))
    drawn >>= np.uint64(11)
    return np.floor(scaled + np.ldexp(drawn.astype(np.float64), -53))


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Returns the output of SplitMix64's last step (Steele, Lea and Flood, OOPSLA 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
