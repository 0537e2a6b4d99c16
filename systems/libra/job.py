"""The settings on which the workers and servers of a job agree, and numbers that are derived from
them: ranges of keys, lists of hot keys, numbers of packets, and the fixed-point format."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.errors import AllReduceError, check_range
from agglab.systems.libra import wire

Keys = NDArray[np.uint64]
MAX_WINDOW = 65535
NO_KEYS: Keys = np.zeros(0, np.uint64)
LARGEST_SUM = 2**31 - 1


@dataclass(frozen=True)
class LibraJob:
    """The settings on which workers and servers of a job agree.

    workers, servers: their numbers. window: the number of requests that a worker has in flight,
    rounded up to the same number for each server. hot: the number of keys that switches sum, over
    all servers. sample_every: the number of rounds from one sample to the next. fraction_bits: the
    bits after the point of a float32 in fixed point. is_float: whether values are float32. session:
    packets of other sessions are refused. Raises ValueError for numbers that do not fit the wire
    format.
    """

    job: int
    workers: int
    servers: int
    lanes: int
    window: int
    hot: int
    sample_every: int
    fraction_bits: int
    is_float: bool
    session: int

    def __post_init__(self) -> None:
        check_range("job", self.job, 0, 65535)
        check_range("workers", self.workers, 1, wire.MAX_WORKERS)
        check_range("servers", self.servers, 1, wire.MAX_SERVERS)
        check_range("lanes", self.lanes, 1, wire.MAX_LANES)
        check_range("window", self.window, 1, MAX_WINDOW)
        check_range("sample_every", self.sample_every, 1, 2**31 - 1)
        check_range("fraction_bits", self.fraction_bits, 0, 30)
        check_range("session", self.session, 0, 2**32 - 1)

    @property
    def slots(self) -> int:
        """The largest number of requests that a worker has in flight to one server."""
        return -(-self.window // self.servers)

    def is_sample(self, number: int) -> bool:
        """Returns whether a round is a sample: a round in which all keys are cold, and from whose
        keys the hot keys of the following rounds are chosen. number: the number of the round in the
        session."""
        return self.hot > 0 and number % self.sample_every == 0

    def hot_of(self, server: int) -> int:
        """Returns the largest number of hot keys that server `server` may have."""
        return self.hot // self.servers + (server < self.hot % self.servers)

    def pages_of(self, server: int) -> int:
        """Returns the number of packets in which a server announces its hot keys. A worker needs
        the same number of packets to push that many keys."""
        return -(-self.hot_of(server) // self.lanes)

    def digest(self, hot: Sequence[Keys]) -> int:
        """Returns a digest of 32 bits of everything on which agents must agree in a round: the
        settings, and each server's hot keys."""
        shape = shared.shape_digest(
            self.hot, self.workers, self.lanes, self.slots, self.is_float, self.servers
        )
        agreed = zlib.crc32(
            np.array([shape, self.sample_every, self.fraction_bits], ">u4").tobytes()
        )
        for keys in hot:
            agreed = zlib.crc32(keys.astype(">u8").tobytes(), agreed)
        return agreed


def lowest_key(servers: int, server: int) -> int:
    """Returns the lowest key of a server. Server s of S has the keys from s 2^64 / S, rounded up,
    to just below the lowest key of server s + 1."""
    return -(-(server << 64) // servers)


def bounds(keys: Keys, servers: int) -> NDArray[np.int64]:
    """Returns the index in `keys`, which ascend, of the first key of each server, and the index
    after the last server's last key."""
    firsts = np.array([lowest_key(servers, server) for server in range(servers)], np.uint64)
    return np.append(np.searchsorted(keys, firsts), keys.size)


def hottest(keys: Keys, counts: NDArray[np.integer], most: int) -> Keys:
    """Returns at most `most` keys of a sample: those that were pushed by the largest numbers of
    workers, in this order. Of keys that equally many workers pushed, the smaller comes first. A key
    that only one worker pushed is never included, because there would be nothing to sum."""
    found = counts > 1
    keys, counts = keys[found], counts[found].astype(np.int64)
    return keys[np.lexsort((keys, -counts))[:most]]


def to_fixed(values: NDArray[np.float32], job: LibraJob) -> NDArray[np.int32]:
    """Returns each value times 2^fraction_bits, rounded. Raises AllReduceError, which names the
    index, for a value whose sum over all workers might not fit into 32 bits."""
    scaled = np.rint(values.astype(np.float64) * 2.0**job.fraction_bits)
    wrong = np.flatnonzero(~(np.abs(scaled) <= LARGEST_SUM // job.workers))
    if wrong.size:
        at = int(wrong[0])
        most = LARGEST_SUM // job.workers / 2.0**job.fraction_bits
        raise AllReduceError(
            f"the value at index {at} of job {job.job} is {values[at]}: with {job.fraction_bits} "
            f"fraction bits and {job.workers} workers it must lie within +-{most:g}"
        )
    return scaled.astype(np.int32)


def from_fixed(sums: NDArray[np.int32], job: LibraJob) -> NDArray[np.float32]:
    """Returns the float32 values of sums in fixed point. Each is rounded once."""
    return (sums.astype(np.float64) / 2.0**job.fraction_bits).astype(np.float32)


def common_of(job: LibraJob) -> dict[str, int]:
    """Returns the fields of `state.Common` that do not change."""
    names = ("job", "session", "workers", "servers", "lanes", "slots")
    return {name: getattr(job, name) for name in names}
