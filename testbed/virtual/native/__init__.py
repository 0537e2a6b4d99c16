"""The C code of virtual time (`*.c` here, and that of the impairments), built into one library."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from agglab.hosts import formats, library
from agglab.hosts.structures import I64 as Int64
from agglab.hosts.structures import U32 as UInt32
from agglab.hosts.structures import U64 as UInt64
from agglab.hosts.structures import Structure, c_structs, structure
from agglab.testbed.run.impairments import native as impairments
from p4native.common import c_build
from p4native.switch import RUNTIME

HERE = Path(__file__).resolve().parent
INCLUDED = (library.SOURCES, RUNTIME)

P, U16, U32, U64 = ctypes.c_void_p, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64
I32, I64, INT, BYTES = ctypes.c_int32, ctypes.c_int64, ctypes.c_int, ctypes.c_char_p
Ask = ctypes.CFUNCTYPE(None, U32, U64, I64, P, U32)
"""The type `ask_function` of clock.h."""

SIGNATURES: dict[str, tuple[type | None, list[type]]] = {
    "clock_new": (P, [Ask]),
    "clock_free": (None, [P]),
    "clock_ask_at": (None, [P, I64, I64]),
    "clock_run": (INT, [P, I64, U64, U64]),
    "clock_is_idle": (INT, [P]),
    "clock_layout": (U32, []),
    "link_new": (P, [P, P, U64]),
    "link_free": (None, [P]),
    "link_tap": (None, [P]),
    "link_to": (None, [P, P, P, U16]),
    "link_send_copy": (None, [P, BYTES, U32]),
    "link_impair": (None, [P, P, U32]),
    "link_down": (None, [P, I32]),
    "link_change_rate": (None, [P, U64]),
    "link_look": (None, [P, P]),
    "link_dropped_numbers": (P, [P]),
    "switch_new": (P, [P, U64, U64]),
    "switch_free": (None, [P]),
    "switch_connect": (INT, [P, U16, P]),
    "switch_start": (None, [P, P, P]),
    "switch_watch": (None, [P, U32]),
    "switch_sent": (U64, [P, U16]),
    "switch_receive_copy": (None, [P, U16, BYTES, U32]),
    "framing_frame": (None, [P, BYTES, U32, P]),
    "framing_payload": (P, [P, BYTES, U32, P]),
    "host_new": (P, [P, U64]),
    "host_free": (None, [P]),
    "host_connect": (None, [P, P]),
    "host_open": (None, [P, U16, P, U32, P]),
    "host_send": (None, [P, BYTES, U32]),
    "host_send_datagram": (None, [P, P, BYTES, U32]),
    "hits_new": (P, []),
    "hits_free": (None, [P]),
    "hits_add": (INT, [P, U16, U16, U32]),
    "hits_explain": (INT, [P, U16, U32, U16, U32, I64]),
    "gathered_new": (P, [P]),
    "gathered_free": (None, [P]),
    "share_take": (None, [P, U64, U64, P, P]),
    "share_copy": (U64, [P, U64, U64, P, P]),
    "agent_new": (P, [P, U64]),
    "agent_free": (None, [P]),
    "agent_drive": (None, [P, P, P, U64, P, P, P]),
    "agent_wake": (None, [P, I64]),
    "agent_poll": (None, [P]),
}


@structure("host_counts")
class HostCounts(Structure):
    """What a host counts (host.h)."""

    received: UInt64  # frames
    used: UInt64  # datagrams in them that a program took
    sent: UInt64  # frames


@structure("agent_state")
class AgentState(Structure):
    """What C code has to know of an agent (host.h)."""

    timer_ns: Int64  # when the event of its deadline comes; NEVER_NS if there is none
    alive: UInt32  # its program runs, and its sockets take datagrams
    driven: UInt32  # C takes its datagrams and sends what is due, if Python need not
    in_round: UInt32
    spare: UInt32


@functools.cache
def load() -> ctypes.CDLL:
    """Returns the library. Raises BuildError if there is no compiler, or if it refuses the code."""
    folders = (HERE, impairments.HERE)
    sources = [source for folder in folders for source in sorted(folder.glob("*.c"))]
    included = (*folders, *INCLUDED)
    structs = c_structs(HostCounts, AgentState)
    own = formats.c_header("testbed/virtual/", "AGGLAB_HOST_STATE_H", {}, structs)
    texts = {**library.HEADERS, "host_state.h": own.encode()}
    path = c_build.build_library(impairments.PART, sources, included, texts=texts)
    loaded = ctypes.CDLL(str(path))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def address_of(function: object) -> int:
    """Returns the address of a function of a loaded library."""
    found = ctypes.cast(function, P).value  # type: ignore[arg-type]
    assert found
    return found
