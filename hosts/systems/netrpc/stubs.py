"""The stubs of a service's methods: what an application calls. Each call is a value that the
application yields, and is sent what the call returns; the endpoint performs it (endpoint.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.systems.netrpc.service import Array, Map, Method, Service

Keys = NDArray[np.uint64]
Values = NDArray[np.uint32]


@dataclass(frozen=True)
class Reduce:
    """Add up an array over all workers into `out`, chunk by chunk. Returns nothing."""

    method: Method
    values: NDArray
    out: NDArray


@dataclass(frozen=True)
class Barrier:
    """Go on when all workers have called. Returns nothing."""

    method: Method


@dataclass(frozen=True)
class MapAccess:
    """Do what the method does to each of these keys. Returns an array with an entry a key: the
    value (uint32) where the method gets it; whether the counter stood at the threshold (bool) where
    it counts; otherwise None."""

    method: Method
    keys: Keys
    values: Values


@dataclass(frozen=True)
class Pause:
    """Go on after so long. Returns nothing."""

    pause_ns: int


class Stubs:
    """One attribute for each method of the service, and `pause`."""

    @staticmethod
    def pause(seconds: float) -> Pause:
        """Do nothing for so long."""
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
