"""Structures that C and Python share: what is declared once is the same on both sides."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

from agglab.hosts import library, native_structures
from agglab.hosts.recovery import PENDING, Pending
from agglab.hosts.structures import (
    U8,
    U16,
    U32,
    U64,
    Pointer,
    ReadOnly,
    Structure,
    address,
    c_structs,
    dtype_of,
    repeated,
    structure,
)
from agglab.systems.libra.state import LIBRARY as LIBRA
from agglab.systems.netrpc.state import LIBRARY as NETRPC
from agglab.systems.omnireduce.state import LIBRARY as OMNIREDUCE
from agglab.systems.pooling.state import LIBRARY as POOLING
from agglab.systems.ps.state import LIBRARY as PS
from agglab.systems.ring.state import LIBRARY as RING
from agglab.systems.switchml.state import LIBRARY as SWITCHML

Layout = dict[tuple[str, str], int]


@structure("inner")
class Inner(Structure):
    small: U8
    large: U64


@structure("outer")
class Outer(Structure):
    _anonymous_ = ("inner",)
    first: U32
    second: U32
    inner: Inner
    three: Annotated[int, repeated(U16, 3)]
    values: ReadOnly[U32]
    inners: Pointer[Pointer[Inner]]
    call: Annotated[int, address("int (*{})(struct outer *, const void *)")]


TEXT = """struct inner {
\tuint8_t small;
\tuint64_t large;
};

struct outer {
\tuint32_t first;
\tuint32_t second;
\tstruct inner inner;
\tuint16_t three[3];
\tconst uint32_t *values;
\tstruct inner **inners;
\tint (*call)(struct outer *, const void *);
};
"""


def test_the_c_text_has_the_fields_in_their_order() -> None:
    assert c_structs(Inner, Outer) == TEXT


def in_python(declared: Iterable[type[Structure]]) -> Layout:
    """The offset of every field, and under "" the size of every structure."""
    offsets = {
        (one.c_name, name): getattr(one, name).offset
        for one in declared
        for name, *_ in one._fields_
    }
    return offsets | {(one.c_name, ""): ctypes.sizeof(one) for one in declared}


def in_c(folder: Path, include: str, layout: Layout) -> Layout:
    """The same of the compiler. include: the header that declares the structures."""
    said = {
        (name, field): f"offsetof(struct {name}, {field})" if field else f"sizeof(struct {name})"
        for name, field in layout
    }
    printed = "".join(f'printf("%zu\\n", {text});' for text in said.values())
    source = folder / "layout.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n"
        f'#include "{include}"\nint main(void) {{{printed}}}\n'
    )
    command = ["cc", f"-I{folder}", str(source), "-o", str(folder / "layout")]
    subprocess.run(command, check=True)
    done = subprocess.run([folder / "layout"], capture_output=True, text=True, check=True)
    return dict(zip(said, map(int, done.stdout.split()), strict=True))


LIBRARIES = {
    "hosts": ("structures.h", native_structures.DECLARED, {}),
    **{
        name: ("state.h", one.structures, one.headers)
        for name, one in (
            *(("libra", LIBRA), ("netrpc", NETRPC), ("omnireduce", OMNIREDUCE)),
            *(("pooling", POOLING), ("ps", PS), ("ring", RING), ("switchml", SWITCHML)),
        )
    },
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_fields_lie_where_the_compiler_puts_them(name: str, tmp_path: Path) -> None:
    include: str
    declared: Sequence[type[Structure]]
    headers: Mapping[str, str]
    include, declared, headers = LIBRARIES[name]
    for file, text in library.HEADERS.items():
        (tmp_path / file).write_bytes(text)
    for file, own in headers.items():
        (tmp_path / file).write_text(own)
    layout = in_python(declared)
    assert len(layout) > len(declared) > 1
    assert in_c(tmp_path, include, layout) == layout


def test_fields_that_are_swapped_are_swapped_on_both_sides(tmp_path: Path) -> None:
    """Two that have the same size, so that the structure's size does not tell."""

    @structure("outer")
    class Swapped(Structure):
        second: U32
        first: U32

    assert (Swapped.second.offset, Swapped.first.offset) == (0, 4)
    (tmp_path / "swapped.h").write_text(c_structs(Swapped))
    assert in_c(tmp_path, "swapped.h", in_python([Swapped])) == in_python([Swapped])


def test_a_pointer_keeps_its_array() -> None:
    state, values = Outer(first=3), np.arange(5, dtype=np.uint32)
    kept = weakref.ref(values)
    state.values = values
    assert state.values == values.ctypes.data and state.first == 3
    del values
    gc.collect()
    assert kept() is not None
    state.values = None
    assert state.values is None


def test_fields_of_a_nested_structure_can_be_the_own_ones() -> None:
    state = Outer()
    state.large = 7
    assert state.inner.large == 7


def test_an_array_of_structures_has_all_their_bytes() -> None:
    assert PENDING.itemsize == ctypes.sizeof(Pending)
    assert [PENDING.fields[name][1] for name in PENDING.names] == [
        getattr(Pending, name).offset for name in PENDING.names
    ]
    with pytest.raises(AssertionError, match="declare spare fields"):
        dtype_of(Inner)
