"""Generates C declarations from NumPy dtypes, so that each wire format is defined only once. This
module imports only NumPy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}


def c_struct(name: str, record: np.dtype) -> str:
    """Returns C code that declares `struct name` with the fields of `record`. The struct is packed.
    Its fields are big endian, as on the wire; the C code must convert them."""
    members = "".join(
        f"\t{TYPES[record[field].itemsize]} {field};\n" for field in record.names or ()
    )
    return f"struct {name} {{\n{members}}} __attribute__((packed));\n"


def c_header(source: str, guard: str, constants: Mapping[str, int], structs: str) -> str:
    """Returns the text of a C header file. source: the file from which it is generated, for a
    comment. guard: the name of the include guard. structs: declarations in C."""
    defines = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    return (
        f"/* Generated from {source}. */\n"
        f"#ifndef {guard}\n#define {guard}\n#include <stdint.h>\n{defines}{structs}#endif\n"
    )
