"""The interface to endpoints whose processing of packets is written in C (native/endpoint.h). C
code can drive such an endpoint without calling Python. This module imports only the loader of the C
library and modules of the same folder."""

from __future__ import annotations

import ctypes
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.endpoint import Inbox, Outbox
from agglab.hosts.errors import AllReduceError
from agglab.hosts.recovery import Recovery


class Rows(ctypes.Structure):
    """The ctypes equivalent of `struct outbox` in native/io.h: the addresses and strides of an
    Outbox's arrays."""

    _fields_ = [
        (name, kind)
        for column in ("frame", "length", "peer")
        for name, kind in (
            (f"{column}s", ctypes.c_void_p),
            (f"{column}_stride", ctypes.c_uint64),
        )
    ]

    @classmethod
    def of(cls, outbox: Outbox) -> Rows:
        columns = (outbox.frames, outbox.lengths, outbox.peers)
        assert outbox.lengths.dtype == outbox.peers.dtype == np.uint32
        return cls(*(word for c in columns for word in (c.ctypes.data, c.strides[0])))


class NativeEndpoint(ctypes.Structure):
    """The ctypes equivalent of `struct endpoint` in native/endpoint.h."""

    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("state", "take", "poll", "queue")],
        ("outbox", Rows),
        *[(name, ctypes.c_void_p) for name in ("recovery", "disagreed", "pendings")],
        *[(name, ctypes.c_uint64) for name in ("pending_stride", "pending_rows")],
        ("inbox", ctypes.c_void_p),
        ("inbox_bytes", ctypes.c_uint64),
    ]


@runtime_checkable
class HasNativeEndpoint(Protocol):
    """The interface of an endpoint (endpoint.Endpoint) that has one peer and that C code can drive
    through a round."""

    def native(self, inbox: Inbox) -> NativeEndpoint:
        """Returns the structure by which C code drives the endpoint. It is valid as long as the
        endpoint exists. inbox: where the driver puts received datagrams."""

    def failure(self, error: int) -> AllReduceError:
        """Returns the exception for an error number that the C code returned."""


def native_endpoint(
    state: ctypes.Structure,
    take: Any,
    poll: Any,
    queue: NDArray[np.uint32],
    outbox: Outbox,
    pendings: NDArray[np.void],
    inbox: Inbox,
) -> NativeEndpoint:
    """Returns the structure by which C code drives an endpoint with one peer.

    state: the endpoint's structure, with the fields `recovery` and `disagreed`. take, poll: the C
    library's functions that do the work of `on_datagrams` and `poll`. pendings: records that begin
    with recovery.PENDING and a tag, one for each of the first rows of the outbox. The caller must
    keep all this memory alive.
    """
    begin, kind = ctypes.addressof(state), type(state)
    assert ctypes.sizeof(Recovery) == kind.recovery.size
    return NativeEndpoint(
        begin,
        _address(take),
        _address(poll),
        queue.ctypes.data,
        Rows.of(outbox),
        begin + kind.recovery.offset,
        begin + kind.disagreed.offset,
        pendings.ctypes.data,
        pendings.itemsize,
        pendings.size,
        inbox.rows_address,
        inbox.row_bytes,
    )


def _address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found
    return found
