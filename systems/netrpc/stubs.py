"""The stubs of a service, which an application calls. A stub only returns a value that describes
the call. The application yields this value, the endpoint performs the call (worker.py), and the
application is sent the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.systems.netrpc.service import Array, Map, Method, Service

Keys = NDArray[np.uint64]
Values = NDArray[np.uint32]


@dataclass(frozen=True)
class Reduce:
    """A call that sums an array over all workers into `out`, chunk by chunk. Its result is None."""

    method: Method
    values: NDArray
    out: NDArray


@dataclass(frozen=True)
class Barrier:
    """A call that ends when all workers have made it. Its result is None."""

    method: Method


@dataclass(frozen=True)
class MapAccess:
    """A call that performs the method for each of the given keys. If the method gets values, the
    result is an array of the values (uint32), one for each key. If the method counts, the result is
    an array that says for each key whether the counter reached the threshold (bool). Otherwise the
    result is None."""

    method: Method
    keys: Keys
    values: Values


@dataclass(frozen=True)
class Pause:
    """A call that ends after a given time. Its result is None."""

    pause_ns: int


class Stubs:
    """The stubs of a service: one attribute for each method, and `pause`."""

    @staticmethod
    def pause(seconds: float) -> Pause:
        """Returns a call that does nothing and ends after `seconds`."""
        return Pause(round(seconds * 1e9))

    def __init__(self, service: type[Service]) -> None:
        self._methods = {m.name: m for m in service.methods}

    def __getattr__(self, name: str) -> Any:
        declared = self._methods.get(name)
        if declared is None:
            raise AttributeError(f"the service declares no method {name}")
        return {Array: _reduce, Map: _map_access}.get(declared.argument, _barrier)(declared)


def _reduce(declared: Method) -> Any:
    return lambda values, out: Reduce(declared, values, out)


def _barrier(declared: Method) -> Any:
    return lambda: Barrier(declared)


def _map_access(declared: Method) -> Any:
    def stub(
        keys: Sequence[int] | Keys, values: Sequence[int] | NDArray | None = None
    ) -> MapAccess:
        wanted = np.asarray(keys, np.uint64)
        given = np.zeros(wanted.size) if values is None else np.asarray(values)
        return MapAccess(declared, wanted, given.astype(np.int64).astype(np.uint32))

    return stub
