"""The common part of workers whose switches sum in slots: the settings on which the workers of a
job agree, and their error messages. This module imports only agreement.py, bfloat16.py, errors.py,
quantise.py and wire.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import quantise, wire
from agglab.hosts.agreement import PLAIN, Agreement, operation_name
from agglab.hosts.bfloat16 import BFLOAT16, name_of
from agglab.hosts.errors import NotFinite, RoundTimeout, ShapeMismatch, check_range
from agglab.hosts.wire import Kind, Shape

KINDS: dict[np.dtype, Kind] = {
    np.dtype(np.int32): Kind.INT32,
    np.dtype(np.float32): Kind.SCALED,
    np.dtype(np.float16): Kind.HALF,
    BFLOAT16: Kind.BFLOAT,
}
"""The kind of the contributions of each type, unless they are narrow."""
DTYPES: Mapping[int, str] = {
    **{kind: name_of(dtype) for dtype, kind in KINDS.items()},
    **{kind: f"float32 (as {bits} bits)" for bits, kind in wire.NARROW.items()},
}
DETAILS = {
    **{name: name for name in ("lanes", "window", "workers")},
    "round": "round (modulo 256)",
    "operation": "operation",
    "tensors": "tensors of digest",
}
"""The names, in errors about shapes, of the fields other than elements and dtype."""
MAX_RANGES = 8
MAX_PRESENT = 64
"""The largest number of workers of a job with a deadline: a sum says in 64 bits who is in it."""


@dataclass(frozen=True)
class Job:
    """The settings on which all workers of a job must agree. window: the number of slots that are
    in use at the same time. wire_bits: the number of bits of a float in a contribution, 16, 8 or 4,
    or None for 32. deadline_ns: after what time switches may close a chunk without everybody
    (docs/partial-sums.md), or None if they never do. sets: how many sets a slot has in this case.

    Raises ValueError for numbers that do not fit the wire format.
    """

    job: int
    workers: int
    lanes: int
    slots: int
    window: int
    first_tag: int = 1
    wire_bits: int | None = None
    deadline_ns: int | None = None
    sets: int = 8

    def __post_init__(self) -> None:
        check_range("job", self.job, 0, 65535)
        check_range("workers", self.workers, 1, quantise.MAX_WORKERS)
        check_range("lanes", self.lanes, 1, wire.MAX_LANES)
        check_range("slots", self.slots, 1, 65535)
        check_range("window", self.window, 1, self.slots)
        check_range("first_tag", self.first_tag, 0, 2**32 - 1)
        if self.wire_bits is not None:
            self._check_wire_bits(self.wire_bits)
        if self.deadline_ns is not None:
            self._check_deadline(self.deadline_ns)

    def _check_deadline(self, deadline_ns: int) -> None:
        if deadline_ns < 1:
            raise ValueError(f"deadline_ns is {deadline_ns}; it must be at least 1")
        if self.wire_bits is not None:
            raise ValueError("wire_bits cannot be used together with deadline_ns")
        check_range("workers", self.workers, 1, MAX_PRESENT)

    def _check_wire_bits(self, bits: int) -> None:
        if bits not in wire.NARROW:
            raise ValueError(f"wire_bits is {bits}; it must be 16, 8 or 4")
        if self.lanes % 2:
            raise ValueError(f"lanes is {self.lanes}; with wire_bits it must be even")
        check_range("workers", self.workers, 1, 2**bits + 1)

    @property
    def dtypes(self) -> tuple[np.dtype, ...]:
        """The types of values that the workers can send."""
        if self.deadline_ns is None:
            return tuple(KINDS)
        return tuple(dtype for dtype in KINDS if dtype.itemsize == wire.VALUE_BYTES)

    def shape(
        self, elements: int, dtype: np.dtype, rounds: int, agreement: Agreement = PLAIN
    ) -> Shape:
        """Returns the shape of a round that reduces `elements` values of this type. rounds: the
        number of rounds that the session had before this one."""
        kind, sizes = self.kind(dtype), (elements, self.workers, self.lanes, self.window)
        return Shape(*sizes, kind, rounds % 256, agreement.operation, agreement.tensors)

    def kind(self, dtype: np.dtype) -> Kind:
        """Returns the kind of the contributions that carry values of this dtype."""
        if self.wire_bits is not None and dtype == np.float32:
            return wire.NARROW[self.wire_bits]
        return KINDS[dtype]

    def values_per_chunk(self, dtype: np.dtype) -> int:
        """Returns the number of values of type `dtype` in a packet. A lane holds two values
        of float16 or bfloat16. With `wire_bits`, a lane holds the sums of one or more float32
        values."""
        if self.wire_bits is not None and dtype == np.float32:
            return wire.narrow_values(self.lanes, self.wire_bits)
        return self.lanes * wire.VALUE_BYTES // dtype.itemsize


def mismatch(job: Job, number: int, own: Shape, both: Sequence[Shape]) -> ShapeMismatch:
    """Returns an exception that names this worker's shape and the other known shapes, with every
    field in which they differ. number: the number of the round."""
    others = [shape for shape in dict.fromkeys(both) if shape != own]
    named = [name for name in DETAILS if len({getattr(s, name) for s in (own, *both)}) > 1]
    listed = " and ".join(f"another {_words(shape, named)}" for shape in others)
    return ShapeMismatch(
        f"round {number} of job {job.job}: this worker reduces "
        f"{_words(own, named)}, {listed}; all workers of a job have to reduce alike"
    )


def timeout(
    job: Job, chunks: NDArray[np.uint32], slots: NDArray[np.int64], give_up_ns: int
) -> RoundTimeout:
    """Returns an exception that names the chunks without a result, and their slots. chunks, slots:
    the number of each such chunk, and the number of its slot."""
    order = np.argsort(chunks)
    pairs = list(_ranges(chunks[order].astype(np.int64), slots[order]))
    parts = [f"chunk{_span(a, b)} (slot{_span(c, d)})" for a, b, c, d in pairs[:MAX_RANGES]]
    more = f" and {len(pairs) - MAX_RANGES} more ranges" if len(pairs) > MAX_RANGES else ""
    message = (
        f"no result for {', '.join(parts)}{more} of job {job.job} after {give_up_ns / 1e9:g} s"
    )
    return RoundTimeout(message, [pair[:2] for pair in pairs])


def check_finite(job: Job, exponents: NDArray[np.uint8], values: NDArray, out: NDArray) -> None:
    """Raises NotFinite if the input of a worker contains Inf or NaN, or if a sum exceeds the range
    of float32. exponents: the exponents on which the workers agreed, one for each chunk. values:
    the input of this worker. out: the results."""
    _check_inputs_finite(job, exponents, values)
    _check_sums_finite(job, exponents, out)


def _check_inputs_finite(job: Job, exponents: NDArray[np.uint8], values: NDArray) -> None:
    bad = np.flatnonzero(exponents == quantise.EXPONENT_NOT_FINITE)
    if not bad.size:
        return
    first = int(bad[0])
    message = f"Inf or NaN in chunk {first} of job {job.job}"
    per_chunk = job.values_per_chunk(values.dtype)
    for chunk in bad.tolist():
        start = chunk * per_chunk
        index = quantise.first_not_finite(values[start : start + per_chunk])
        if index is not None:
            raise NotFinite(f"{message}: this worker's index {start + index}")
    raise NotFinite(f"{message}: not at this worker, but at another of the job's")


def _check_sums_finite(job: Job, exponents: NDArray[np.uint8], out: NDArray) -> None:
    """Raises NotFinite if a sum exceeds the range of float32. Only chunks with the largest
    log2(workers) exponents can contain such a sum, so only these are checked."""
    top = quantise.EXPONENT_NOT_FINITE - (31 - quantise.value_bits(job.workers))
    per_chunk = job.values_per_chunk(out.dtype)
    for chunk in np.flatnonzero(exponents >= top).tolist():
        start = chunk * per_chunk
        index = quantise.first_not_finite(out[start : start + per_chunk])
        if index is not None:
            raise NotFinite(
                f"the sum at index {start + index} (chunk {chunk} of job {job.job}) "
                "is beyond float32's range"
            )


def _words(shape: Shape, named: Sequence[str]) -> str:
    """Returns a shape in words: elements, dtype, and the fields in `named`."""
    dtype = DTYPES.get(shape.dtype, f"dtype {shape.dtype}")
    shown = {**vars(shape), "operation": operation_name(shape.operation)}
    details = ", ".join(f"{DETAILS[name]} {shown[name]}" for name in named)
    return f"{shape.elements} {dtype} elements{' with ' if named else ''}{details}"


def _ranges(
    chunks: NDArray[np.int64], slots: NDArray[np.int64]
) -> Iterator[tuple[int, int, int, int]]:
    """Yields, for each run in which the numbers of chunks and slots both increase by one, its first
    and last chunk and its first and last slot."""
    breaks = np.flatnonzero((np.diff(chunks) != 1) | (np.diff(slots) != 1)) + 1
    for run in np.split(np.arange(chunks.size), breaks):
        first, last = run[0], run[-1]
        yield int(chunks[first]), int(chunks[last]), int(slots[first]), int(slots[last])


def _span(first: int, last: int) -> str:
    return f" {first}" if first == last else f"s {first}-{last}"
