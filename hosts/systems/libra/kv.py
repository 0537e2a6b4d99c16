"""Keys and values on parameter servers, for a user's own programs. The calls are those of PS-lite,
over UDP.

The calls raise the exceptions that hosts.all_reduce.Reducer raises. This module imports only
p4native.common and `hosts`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agglab.hosts.all_reduce import Reducer
from agglab.hosts.endpoint import Address
from agglab.hosts.recovery import Timing
from agglab.hosts.systems.libra import wire
from agglab.hosts.systems.libra.job import LibraJob
from agglab.hosts.systems.libra.server import LibraServer, TableSizes
from agglab.hosts.systems.libra.worker import LibraWorker
from p4native.common.contexts import Closing

MTU_BYTES, IP_AND_UDP_BYTES = 1500, 28
LANES = (MTU_BYTES - IP_AND_UDP_BYTES - wire.HEADER_BYTES) // wire.PAIR_BYTES
WINDOW = 64
KEYS, PAIRS = 1 << 16, 1 << 16
"""The default limits: the number of keys at a server, and the number of keys that a worker pushes
at once."""


def _job(workers: int, servers: int, dtype: str, fraction_bits: int) -> LibraJob:
    if dtype not in ("int32", "float32"):
        raise ValueError(f"dtype: {dtype!r} is neither int32 nor float32")
    is_float = dtype == "float32"
    return LibraJob(1, workers, servers, LANES, WINDOW, 0, 1, fraction_bits, is_float, 1)


class KVWorker(Closing):
    """One worker of a key-value store. servers: the addresses of the servers, the same at every
    worker. bind: the worker's own address.

    Every worker of a job makes the same calls in the same order. The keys in a call may differ
    between workers; they are uint64, ascending, each once. Values are int32, summed modulo 2^32, or
    float32, summed in fixed point with `fraction_bits` bits (docs/systems/libra.md). Calls that
    return a timestamp are performed in the background, in order; `wait` raises the exception of
    such a call, if any.
    """

    def __init__(
        self,
        rank: int,
        workers: int,
        servers: Sequence[Address],
        bind: Address,
        dtype: str = "float32",
        fraction_bits: int = 20,
        give_up_s: float = 10.0,
    ) -> None:
        job = _job(workers, len(servers), dtype, fraction_bits)
        timing = Timing(give_up_ns=round(give_up_s * 1e9))
        self._dtype = np.dtype(dtype)
        self._reducer = Reducer(LibraWorker(job, rank, servers, timing), bind)
        self._background = ThreadPoolExecutor(1)
        self._calls: list[Future[NDArray]] = []

    def push(self, keys: ArrayLike, values: ArrayLike) -> int:
        """Adds values to the values that the servers store under these keys. Returns the timestamp
        of the call, for `wait`."""
        pushed = np.zeros(np.size(keys), [("key", "u8"), ("value", self._dtype)])
        pushed["key"], pushed["value"] = keys, values
        self._calls.append(self._background.submit(self._round, pushed))
        return len(self._calls) - 1

    def wait(self, timestamp: int) -> None:
        """Waits until all workers have completed the call with this timestamp."""
        self._calls[timestamp].result()

    def push_pull(self, keys: ArrayLike, values: ArrayLike) -> NDArray:
        """Adds values to the values that the servers store under these keys. Returns the stored
        value for each key after the pushes of all workers in this call."""
        return self._calls[self.push(keys, values)].result()

    def pull(self, keys: ArrayLike) -> NDArray:
        """Returns the stored value for each key, or 0 for a key that nobody has pushed."""
        return self.push_pull(keys, np.zeros(np.size(keys), self._dtype))

    def _round(self, pushed: NDArray) -> NDArray:
        pulled = np.zeros(pushed.size, self._dtype)
        self._reducer.run(pushed, pulled, None)
        return pulled

    def close(self) -> None:
        """Waits for all calls and releases the socket. May be called twice."""
        self._background.shutdown()
        self._reducer.close()


class KVServer(Closing):
    """One server of a key-value store. A thread that the constructor starts runs it. index: its
    number among the servers. workers: the addresses of the workers, by rank. keys: the number of
    keys for which it has room. pairs: the largest number of keys that a worker pushes at once.
    dtype, fraction_bits: the same as at the workers."""

    def __init__(
        self,
        index: int,
        servers: int,
        workers: Sequence[Address],
        bind: Address,
        dtype: str = "float32",
        fraction_bits: int = 20,
        keys: int = KEYS,
        pairs: int = PAIRS,
    ) -> None:
        job = _job(len(workers), servers, dtype, fraction_bits)
        server = LibraServer(job, index, workers, TableSizes(keys, pairs, keeps=True))
        self._reducer = Reducer(server, bind)
        self._stop, self._stopped = os.pipe()
        self._thread = threading.Thread(target=self._reducer.serve, args=(self._stop,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the server's thread, so that requests are no longer answered. May be called
        twice."""
        if self._thread.is_alive():
            os.write(self._stopped, b"x")
            self._thread.join()
            os.close(self._stop)
            os.close(self._stopped)
        self._reducer.close()
