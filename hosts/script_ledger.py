"""An agent's record of the reductions that it made for a training script: the times, the type and
number of values, and a hash of each result. For a random sample of the reductions, the record also
has all values. The testbed judges a training by this record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from random import Random

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.agreement import PLAIN, Agreement
from agglab.hosts.bfloat16 import name_of
from agglab.hosts.endpoint import PRESENCE
from agglab.hosts.workloads import DTYPES

DIGEST_BYTES = 16
REDUCTION = np.dtype(
    [
        ("elements", "i8"),
        ("dtype", "i8"),
        ("operation", "i8"),
        ("tensors", "i8"),
        ("begin_ns", "i8"),
        ("end_ns", "i8"),
        ("digest", "u1", (DIGEST_BYTES,)),
    ]
)
"""One reduction. elements: the number of values. dtype: their type, as an index in
`DTYPES`. operation, tensors: the Agreement of the ranks. digest: BLAKE2b of the result's bytes."""
FIRST = 2
"""The number of first reductions that are always in the sample."""
ONE_IN = 8
"""On average, one of this number of the later reductions is in the sample."""
SAMPLE_BYTES_MAX = 64 << 20
"""The limit in bytes on the results in a sample. With inputs and sums, the sample takes three times
as much memory."""
ROWS, OUTCOME = "result", "outcome"
"""Names of the two arrays of bytes that an agent leaves of a round. `result` holds a REDUCTION for
each reduction, in order. `outcome` holds JSON with `began_ns`, `ended_ns`, `reports` (what the
script has reported, each with `t_ns`) and `counts` (what the script's process group has
counted)."""
INPUT, RESULT, SUMS = "input", "result", "sums"
"""Names of the arrays that a sample holds of a reduction, besides PRESENCE."""


def sample_name(what: str, number: int) -> str:
    """Returns the name of an array of the sample, such as `input-17`."""
    return f"{what}-{number}"


class Ledger:
    """The record of one run of a script at one rank. key: a text that identifies the run. Ranks
    with the same key choose the same reductions for the sample, if they make the same
    reductions."""

    def __init__(self, key: str) -> None:
        self._chance = Random(f"{key}/sample")
        self._rows: list[tuple[int, int, Agreement, int, int, bytes]] = []
        self._sample: dict[str, NDArray] = {}
        self._sampled_bytes = 0
        self._samples_next = True

    @property
    def samples_next(self) -> bool:
        """Whether the next reduction is part of the sample."""
        return self._samples_next

    @property
    def rows(self) -> NDArray[np.void]:
        """The reductions so far, as an array of dtype REDUCTION and shape (reductions,)."""
        rows = np.zeros(len(self._rows), REDUCTION)
        for row, (elements, dtype, agreement, *times, digest) in zip(rows, self._rows, strict=True):
            row["elements"], row["dtype"] = elements, dtype
            row["operation"], row["tensors"] = agreement.operation, agreement.tensors
            row["begin_ns"], row["end_ns"] = times
            row["digest"] = np.frombuffer(digest, np.uint8)
        return rows

    @property
    def sample(self) -> Mapping[str, NDArray]:
        """The sampled arrays by name (see `sample_name`)."""
        return self._sample

    def add(
        self,
        values: NDArray | None,
        result: NDArray,
        sums: NDArray[np.int32] | None,
        begin_ns: int,
        end_ns: int,
        presence: NDArray[np.uint64] | None = None,
        agreement: Agreement = PLAIN,
    ) -> None:
        """Adds a reduction that has ended. values: the input, or None if the reduction is not in
        the sample. result: a flat array of one of the types in `DTYPES`. sums: the integers that
        crossed the network, or None if the endpoint does not return them. presence: who is in the
        sum of each chunk (Worker.presence), or None if everybody is."""
        number = len(self._rows)
        digest = hashlib.blake2b(result.tobytes(), digest_size=DIGEST_BYTES).digest()
        dtype = DTYPES.index(name_of(result.dtype))
        self._rows.append((result.size, dtype, agreement, begin_ns, end_ns, digest))
        if values is not None:
            given = {INPUT: values, RESULT: result, SUMS: sums, PRESENCE: presence}
            for what, array in given.items():
                if array is not None:
                    self._sample[sample_name(what, number)] = array.copy()
            self._sampled_bytes += result.nbytes
        drawn = self._chance.randrange(ONE_IN) == 0
        has_room = self._sampled_bytes < SAMPLE_BYTES_MAX
        self._samples_next = has_room and (drawn or number + 1 < FIRST)
