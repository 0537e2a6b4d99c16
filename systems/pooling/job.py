"""The settings on which the worker and the server of a job agree."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.hosts import quantise, shared
from agglab.hosts.agreement import PLAIN, Agreement
from agglab.hosts.errors import check_range
from agglab.systems.pooling import wire

MAX_WINDOW = 32768
SCALES = range(-64, 65)


@dataclass(frozen=True)
class PoolingJob:
    """The settings on which all agents of a job must agree.

    window: the largest number of chunks in flight. slots, first_slot: the range of slots in which a
    switch keeps sums of this job; other jobs may use the same slots. scale_log2: floats are
    multiplied by 2 to this power. priority: 0 to 255, for switches that take slots away. Raises
    ValueError for numbers that do not fit the wire format.
    """

    job: int
    workers: int
    lanes: int
    window: int
    session: int
    slots: int
    first_slot: int = 0
    scale_log2: int = 24
    priority: int = 0
    congestion_control: bool = True

    def __post_init__(self) -> None:
        check_range("job", self.job, 0, 65535)
        check_range("workers", self.workers, 1, wire.MAX_WORKERS)
        check_range("lanes", self.lanes, 1, wire.MAX_LANES)
        check_range("window", self.window, 1, MAX_WINDOW)
        check_range("session", self.session, 1, 2**32 - 1)
        check_range("slots", self.slots, 1, 65535)
        check_range("first_slot", self.first_slot, 0, 65535 - self.slots)
        check_range("scale_log2", self.scale_log2, SCALES[0], SCALES[-1])
        check_range("priority", self.priority, 0, 255)

    @property
    def everybody(self) -> int:
        """The set of all workers, as a number with a bit for each rank."""
        return (1 << self.workers) - 1

    @property
    def value_bits(self) -> int:
        """The number b for which scaled integers are from -(2^b - 1) to 2^b - 1, so that the sum of
        all workers' integers fits int32."""
        return quantise.value_bits(self.workers)

    def digest(self, elements: int, is_float: bool, agreement: Agreement = PLAIN) -> int:
        """Returns a digest of everything on which workers must agree before a round."""
        scale = self.scale_log2 - SCALES[0] if is_float else 0
        return shared.shape_digest(
            elements, self.workers, self.lanes, self.window, is_float, 1 + scale, agreement
        )


def common_of(job: PoolingJob) -> dict[str, int]:
    """Returns the fields of `state.Common` that do not change."""
    names = ("job", "session", "workers", "lanes", "window")
    return {name: getattr(job, name) for name in names}
