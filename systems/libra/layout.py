"""The ctypes equivalents of the structures in libra.h, and the signatures of the functions in
worker.c and server.c."""

from __future__ import annotations

import ctypes

import numpy as np

from agglab.hosts import library
from agglab.hosts.library import I64, INT, U32, U64, P
from agglab.hosts.recovery import PENDING, check_layout
from agglab.systems.libra import wire

HOT, PUSH, PULL, LEARN = range(4)
PHASES = 4
NO_AGGREGATOR = 2**32 - 1

LIBRARY = library.SystemLibrary(
    __file__,
    {"libra_wire.h": wire.c_header()},
    {
        "libra_worker_begin": (None, [P, I64]),
        "libra_worker_datagrams": (U32, [P, I64, P, U64, P, P, U32]),
        "libra_worker_poll": (INT, [P, I64]),
        "libra_worker_layout": (U32, []),
        "libra_server_datagrams": (U32, [P, P, U64, P, P, U32]),
        "libra_server_poll": (INT, [P]),
        "libra_server_layout": (U32, []),
    },
)
COMMON_COUNTERS = (
    *("sent", "received", "duplicates", "late", "malformed"),
    *("bytes_sent", "bytes_received"),
)

REQUEST = np.dtype([*PENDING, ("item", "u4"), ("spare_word", "u4")])
"""`struct libra_request`."""

_pointers = [("frames", P), ("lengths", P), ("peers", P), ("queue", P)]
_numbers = ("job", "session", "workers", "servers", "lanes", "slots", "row_bytes", "queued")


class Common(ctypes.Structure):
    """The ctypes equivalent of `struct libra_common`."""

    _fields_ = [
        *[(name, U32) for name in _numbers],
        *_pointers,
        *[(name, U64) for name in COMMON_COUNTERS],
    ]


class Share(ctypes.Structure):
    """The ctypes equivalent of `struct libra_share`."""

    _fields_ = [
        *[(name, P) for name in ("hot_keys", "hot_values", "hot_sums")],
        *[(name, P) for name in ("cold_keys", "cold_values", "cold_sums", "learnt")],
        ("cold_pairs", U64),
        ("items", U32 * PHASES),
        *[(name, U32) for name in ("pages_max", "phase", "answered", "spare")],
    ]


class Worker(ctypes.Structure):
    """The ctypes equivalent of `struct libra_worker`."""

    _anonymous_ = ("common",)
    _fields_ = [
        ("common", Common),
        *[(name, P) for name in ("recoveries", "rtts_ns", "requests", "shares")],
        *[(name, U32) for name in ("aggregator", "direct_after", "digest", "round", "begun")],
        *[(name, U32) for name in ("disagreed", "other_digest", "items", "items_done", "rank")],
        *[(name, U64) for name in ("directly", "bytes_again")],
        *[(name, I64) for name in ("hold_ns", "deadline_ns")],
    ]


class Round(ctypes.Structure):
    """The ctypes equivalent of `struct libra_round`."""

    _fields_ = [
        *[(name, P) for name in ("keys", "values", "counts", "chunks", "arrived", "pairs")],
        *[(name, P) for name in ("places", "group_keys", "parts", "part_values", "whole")],
        *[(name, U32) for name in ("round", "digest", "used", "keys_used", "groups")],
        ("workers_done", U32),
    ]


class Server(ctypes.Structure):
    """The ctypes equivalent of `struct libra_server`."""

    _anonymous_ = ("common",)
    _fields_ = [
        ("common", Common),
        *[(name, U32) for name in ("index", "capacity", "keys_max", "chunks_max", "groups_max")],
        ("racks", U32),
        *[(name, U64) for name in ("low_key", "high_key")],
        *[
            (name, P)
            for name in ("rounds", "store", "rack_workers", "rack_peer", "asked", "waiting")
        ],
        *[(name, P) for name in ("waiting_attempt", "hot_keys", "learnt")],
        *[(name, U32) for name in ("hot_pages", "choose", "round", "begun", "disagreed")],
        *[(name, U32) for name in ("other_digest", "hot_round", "spare")],
        *[(name, U64) for name in ("answered_again", "bytes_again", "groups_whole", "sums")],
        *[(name, U64) for name in ("singles", "cold_pairs")],
    ]


def load() -> ctypes.CDLL:
    """Returns the C library. Raises AssertionError unless C and Python agree on the layout of the
    structures in memory."""
    check_layout()
    native = LIBRARY.load()
    worker = ctypes.sizeof(Worker) << 16 | ctypes.sizeof(Share)
    server = ctypes.sizeof(Server) << 16 | ctypes.sizeof(Round)
    assert native.libra_worker_layout() == worker, "libra.h and layout.py differ"
    assert native.libra_server_layout() == server, "libra.h and layout.py differ"
    return native
