"""Declares the functions of runtime/pipeline.h for ctypes."""

from __future__ import annotations

import ctypes
import errno
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4native.switch.errors import PipelineError
from p4native.switch.program import Program

ERRORS = {
    errno.EEXIST: "an equal entry exists already",
    errno.ENOENT: "no entry has that handle",
    errno.ENOSPC: "the table is full",
    errno.EPERM: "the program makes this constant",
    errno.ENOMEM: "out of memory",
    errno.EINVAL: "not a valid value",
    errno.EBUSY: "it is in use",
}


class Replica(ctypes.Structure):
    """`struct pl_replica` of pipeline.h."""

    _fields_ = (("port", ctypes.c_uint16), ("rid", ctypes.c_uint16))


class Rate(ctypes.Structure):
    """`struct pl_rate` of pipeline.h."""

    _fields_ = (("per_us", ctypes.c_double), ("burst", ctypes.c_uint64))


@dataclass
class Instance:
    """A loaded program with separate state. All parts of a Pipeline use one such instance."""

    program: Program
    library: ctypes.CDLL
    handle: int
    """The `struct pipeline *`, as an integer address. It is 0 once the instance is closed."""

    def call(self, function: str, *arguments: Any) -> int:
        """Calls a function of pipeline.h whose first parameter is the pipeline, and returns the
        function's result."""
        result: int = getattr(self.library, function)(self.handle, *arguments)
        return result


@functools.cache
def array_of(kind: type, count: int) -> Any:
    """Returns the ctypes type of an array. Making a type takes far longer than making an array."""
    return kind * count  # type: ignore[operator]


U16, U32, U64, I32 = ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32
INT, BYTES, POINTER = ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
U32_OUT = ctypes.POINTER(U32)
U64_OUT = ctypes.POINTER(U64)
RATES = ctypes.POINTER(Rate)
REPLICAS = ctypes.POINTER(Replica)

PROTOTYPES: dict[str, tuple[object, tuple[object, ...]]] = {
    "pl_new": (POINTER, (U64,)),
    "pl_free": (None, (POINTER,)),
    "pl_lock": (None, (POINTER,)),
    "pl_unlock": (None, (POINTER,)),
    "pl_set_limits": (None, (POINTER, U16, U32)),
    "pl_table_add": (INT, (POINTER, U32, BYTES, BYTES, I32, U32, BYTES, U64_OUT)),
    "pl_table_modify": (INT, (POINTER, U32, U64, U32, BYTES)),
    "pl_table_delete": (INT, (POINTER, U32, U64)),
    "pl_table_set_default": (INT, (POINTER, U32, U32, BYTES)),
    "pl_entry_counter_read": (INT, (POINTER, U32, U64, U64_OUT, U64_OUT)),
    "pl_entry_counter_write": (INT, (POINTER, U32, U64, U64, U64)),
    "pl_table_add_indirect": (INT, (POINTER, U32, BYTES, BYTES, I32, U32, U64_OUT)),
    "pl_table_modify_indirect": (INT, (POINTER, U32, U64, U32)),
    "pl_table_set_default_indirect": (INT, (POINTER, U32, U32)),
    "pl_member_add": (INT, (POINTER, U32, U32, BYTES, U32_OUT)),
    "pl_member_modify": (INT, (POINTER, U32, U32, U32, BYTES)),
    "pl_member_delete": (INT, (POINTER, U32, U32)),
    "pl_group_add": (INT, (POINTER, U32, U32_OUT)),
    "pl_group_set": (INT, (POINTER, U32, U32, U32_OUT, U32)),
    "pl_group_delete": (INT, (POINTER, U32, U32)),
    "pl_meter_set": (INT, (POINTER, U32, U32, RATES)),
    "pl_meter_read": (INT, (POINTER, U32, U32, RATES, U32_OUT)),
    "pl_entry_meter_set": (INT, (POINTER, U32, U64, RATES)),
    "pl_entry_meter_read": (INT, (POINTER, U32, U64, RATES, U32_OUT)),
    "pl_entry_take_hit": (INT, (POINTER, U32, U64)),
    "pl_value_set_fill": (INT, (POINTER, U32, BYTES, U32)),
    "pl_take_messages": (U32, (POINTER, BYTES, U32)),
    "pl_take_digests": (U32, (POINTER, BYTES, U32)),
    "pl_multicast_group": (INT, (POINTER, U32, REPLICAS, U32)),
    "pl_clone_session": (INT, (POINTER, U32, REPLICAS, U32, U32)),
    "pl_counter_read": (INT, (POINTER, U32, U32, U64_OUT, U64_OUT)),
    "pl_counter_write": (INT, (POINTER, U32, U32, U64, U64)),
    "pl_register_read": (INT, (POINTER, U32, U32, BYTES)),
    "pl_registers_read": (INT, (POINTER, U32, U32_OUT, U32, BYTES)),
    "pl_register_write": (INT, (POINTER, U32, U32, BYTES)),
    "pl_drops": (U32, (POINTER, U64_OUT, U32)),
    "pl_collect": (POINTER, (POINTER, U16, BYTES, U32, U64, U64_OUT)),
}


@functools.cache
def load_library(path: Path) -> ctypes.CDLL:
    """Returns the shared object with the prototypes of pipeline.h. All instances of a program share
    it."""
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def check(result: int, what: str) -> None:
    """Raises PipelineError if a function's result is a negative errno."""
    if result:
        reason = ERRORS.get(-result, errno.errorcode.get(-result))
        raise PipelineError(f"{what}: {reason}")
