"""Functions that the endpoints of several systems use. This module imports only `hosts`."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import quantise
from agglab.hosts.agreement import PLAIN, Agreement
from agglab.hosts.driver import first_timeout_s
from agglab.hosts.endpoint import Address, Outbox
from agglab.hosts.errors import NotFinite
from agglab.hosts.part import Part
from agglab.hosts.recovery import Timing
from agglab.hosts.wire import frame_bytes

NS_PER_S = 1_000_000_000
DTYPES = (np.dtype(np.int32), np.dtype(np.float32))

COUNTERS = {
    "sent": ("packets", "sent, those that were sent again included"),
    "received": ("packets", "received, whatever they were"),
    "retransmitted": ("packets", "sent again"),
    "duplicates": ("packets", "received that had come before; they changed nothing"),
    "late": (
        "packets",
        "of an older round, of another session, or overtaken; they changed nothing",
    ),
    "malformed": ("packets", "that no agent of the job can have sent; they changed nothing"),
    "timeouts": ("packets", "sent again after a silence; the others followed a gap"),
    "bytes_sent": ("bytes", "of Ethernet frames sent, without their checksums"),
    "bytes_received": ("bytes", "of Ethernet frames received, without their checksums"),
}
"""The counters of every endpoint, each with its unit and meaning."""


def first_timeout_of(part: Part, lanes: int, window: int) -> float:
    """Returns the first timeout in seconds. If the part does not state it, it is computed from the
    time that a window of packets takes on the link and from the links' delays."""
    usual_s = first_timeout_s(window, lanes, part.link_rate_bps, part.delays_s)
    return part.first_timeout_s or usual_s


def timing_of(part: Part, lanes: int, window: int, in_step: bool = True) -> Timing:
    """Returns the timing of loss recovery that all systems use. lanes: how many values fill the
    longest packet. in_step: whether workers send the same packets at about the same time, so that
    each measures what the packets of all together take."""
    first_s = first_timeout_of(part, lanes, window)
    first_ns = round(first_s * NS_PER_S)
    return Timing(
        initial_rto_ns=first_ns,
        max_rto_ns=max(first_ns, Timing.max_rto_ns),
        give_up_ns=round(part.give_up_s * NS_PER_S),
        delays_ns=0 if part.first_timeout_s else round(part.delays_s * NS_PER_S),
        others_ns=0 if in_step else _others_ns(part, lanes),
    )


def _others_ns(part: Part, lanes: int) -> int:
    """Returns how long the worker's link needs for a packet of each worker and for its answer; 0 if
    its rate is not known, or if the first timeout is stated."""
    if not part.link_rate_bps or part.first_timeout_s:
        return 0
    return round(2 * part.workers * frame_bytes(lanes) * 8 * NS_PER_S / part.link_rate_bps)


def outbox_of(rows: int, longest_bytes: int) -> Outbox:
    """Returns an outbox with room for `rows` datagrams of at most `longest_bytes`, which all have
    that length, and go to the first peer, until this is changed."""
    frames = np.zeros((rows, -(-longest_bytes // 64) * 64), np.uint8)
    return Outbox(frames, np.full(rows, longest_bytes, np.uint32), np.zeros(rows, np.uint32))


def check_count(name: str, addresses: Sequence[Address], count: int) -> None:
    """Raises ValueError unless there are exactly `count` addresses and all are different."""
    if len(addresses) != count:
        raise ValueError(f"{name} has {len(addresses)} addresses; it must have {count}")
    if len(set(addresses)) != count:
        raise ValueError(f"{name} has an address twice")


def shape_digest(
    elements: int,
    workers: int,
    lanes: int,
    window: int,
    is_float: bool,
    servers: int,
    agreement: Agreement = PLAIN,
) -> int:
    """Returns a digest of 32 bits of everything on which workers must agree before a round. It is a
    CRC: two shapes that differ in only one number, by less than 2^32, never have the same
    digest."""
    values = agreement.number << 1 | is_float
    shape = struct.pack("!QIIIII", elements, workers, lanes, window, values, servers)
    return zlib.crc32(shape)


def check_arrays(values: NDArray, out: NDArray) -> None:
    """Asserts that the arrays are as `Endpoint.begin` requires."""
    assert values.dtype in DTYPES, values.dtype
    assert out.dtype == values.dtype and out.shape == values.shape == (values.size,)
    assert all(array.flags.c_contiguous and array.flags.aligned for array in (values, out))


def check_finite(result: NDArray, job: int) -> None:
    """Raises NotFinite if a float32 result contains Inf or NaN. The message names the first index
    at which it does."""
    if result.dtype != np.float32:
        return
    index = quantise.first_not_finite(result)
    if index is not None:
        raise NotFinite(
            f"the result at index {index} of job {job} is {result[index]}: a worker's value is not "
            "finite, or a sum is beyond float32's range"
        )


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Returns the first and the last number of each run of consecutive numbers. The given numbers
    must ascend."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def words(ranges: Sequence[tuple[int, int]], most: int = 8) -> str:
    """Returns runs of numbers, such as `runs` returns, as a text for an error message."""
    parts = [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges[:most]]
    more = f" and {len(ranges) - most} more ranges" if len(ranges) > most else ""
    return ", ".join(parts) + more
