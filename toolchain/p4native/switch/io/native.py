"""Declares the C functions and structures of the packet loop (loop.h) for ctypes."""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_char_p, c_int, c_uint16, c_uint32, c_uint64, c_void_p

from p4native.switch.io.build import loop_library


class LoopProgram(ctypes.Structure):
    """`struct loop_program` of loop.h."""

    _fields_ = [
        ("instance", c_void_p),
        ("lock", c_void_p),
        ("unlock", c_void_p),
        ("process", c_void_p),
        ("know_sum", c_void_p),
    ]


class LoopOptions(ctypes.Structure):
    """`struct loop_options` of loop.h."""

    _fields_ = [("ring_frames", c_uint32), ("batch", c_uint32), ("coalesce_us", c_uint32)]


def _counters(*names: str) -> list[tuple[str, type[c_uint64]]]:
    return [(name, c_uint64) for name in names]


class PortStats(ctypes.Structure):
    """`struct loop_port_stats` of loop.h."""

    _fields_ = _counters(
        "rx_packets",
        "rx_bytes",
        "tx_packets",
        "tx_bytes",
        "ring_drops",
        "rx_truncated",
        "rx_gso",
        "rx_gso_drops",
        "rx_checksums",
        "tx_drops",
        "tx_oversize",
        "tx_errors",
    )


class LoopStats(ctypes.Structure):
    """`struct loop_stats` of loop.h."""

    _fields_ = _counters(
        "cpu_ns", "batches", "sleeps", "no_port_drops", "no_program", "pcap_errors"
    )


class DropStats(ctypes.Structure):
    """`struct loop_drop_stats` of loop.h."""

    _fields_ = _counters("seen", "dropped", "dropped_bytes")


DROP_NUMBERS = 65536
"""LOOP_DROP_NUMBERS of loop.h."""


def as_dict(stats: ctypes.Structure) -> dict[str, int]:
    """Returns a statistics structure as plain integers by field name."""
    return {name: getattr(stats, name) for name, *_ in stats._fields_}


@functools.cache
def library() -> ctypes.CDLL:
    """Returns the compiled packet loop with its signatures declared."""
    lib = ctypes.CDLL(str(loop_library()))
    port, pointer = c_uint16, c_void_p
    signatures: dict[str, tuple[type | None, list[type]]] = {
        "loop_new": (c_int, [POINTER(LoopOptions), POINTER(pointer)]),
        "loop_add_interface": (c_int, [pointer, port, c_char_p, POINTER(c_char_p)]),
        "loop_attach": (c_int, [pointer, port, POINTER(c_char_p)]),
        "loop_add_cpu_port": (c_int, [pointer, port]),
        "loop_add_pcap": (c_int, [pointer, port, c_char_p, c_char_p]),
        "loop_add_drop": (c_int, [pointer, port, c_int, c_uint64, c_uint64, c_int]),
        "loop_start": (c_int, [pointer]),
        "loop_set_program": (None, [pointer, POINTER(LoopProgram)]),
        "loop_stop": (None, [pointer]),
        "loop_free": (None, [pointer]),
        "loop_read_stats": (None, [pointer, POINTER(LoopStats)]),
        "loop_read_port_stats": (c_int, [pointer, port, POINTER(PortStats)]),
        "loop_read_drop_stats": (
            c_int,
            [pointer, port, c_int, POINTER(DropStats), POINTER(c_uint64), c_uint32],
        ),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib
