"""Declares structures that C code and Python share, each of them once.

    @structure("ring_packet")
    class RingPacket(Structure):
        pending: Pending
        sequence: U32

A declaration is the ctypes structure. `c_structs` makes the C declaration from it, with the same
fields in the same order, and `dtype_of` the dtype of a NumPy array of such structures. What a field
means, and its unit, stands beside the declaration. This module imports only NumPy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


@dataclass(frozen=True)
class CType:
    """The type of a field. ctype: its ctypes type. declaration: its declaration in C, in which {}
    stands for the name."""

    ctype: Any
    declaration: str


U8 = Annotated[int, CType(ctypes.c_uint8, "uint8_t {}")]
U16 = Annotated[int, CType(ctypes.c_uint16, "uint16_t {}")]
U32 = Annotated[int, CType(ctypes.c_uint32, "uint32_t {}")]
U64 = Annotated[int, CType(ctypes.c_uint64, "uint64_t {}")]
I32 = Annotated[int, CType(ctypes.c_int32, "int32_t {}")]
I64 = Annotated[int, CType(ctypes.c_int64, "int64_t {}")]
F32 = Annotated[float, CType(ctypes.c_float, "float {}")]
F64 = Annotated[float, CType(ctypes.c_double, "double {}")]


def address(declaration: str) -> CType:
    """Returns the type of a field that holds the address of a function, or of something that only C
    code knows. declaration: its declaration in C, in which {} stands for the name."""
    return CType(ctypes.c_void_p, declaration)


def repeated(hint: Any, count: int) -> CType:
    """Returns the type of an array of `count` elements within the structure. hint: their type."""
    one = _c_type(hint)
    return CType(one.ctype * count, one.declaration.format(f"{{}}[{count}]"))


if TYPE_CHECKING:

    class Pointer(Generic[T]):
        """A field with the address of elements of type T; T is None for `void`. The field of a
        structure can be set to a NumPy array, which then lives as long as the structure."""

        def __get__(self, state: object, owner: object = None) -> int | None: ...
        def __set__(self, state: object, value: NDArray | int | None) -> None: ...

    class ReadOnly(Pointer[T]):
        """A Pointer to elements that C code does not change."""

else:

    class Pointer:
        def __class_getitem__(cls, hint: Any) -> Any:
            pointed = "void {}" if hint is None else _c_type(hint).declaration
            return Annotated[int, address(pointed.format("*{}"))]

    class ReadOnly:
        def __class_getitem__(cls, hint: Any) -> Any:
            (pointer,) = Pointer[hint].__metadata__
            return Annotated[int, address(f"const {pointer.declaration}")]


class Structure(ctypes.Structure):
    """The base class of declared structures. Fields that are pointers can be set to NumPy arrays.
    If `_anonymous_` names nested structures, Python finds their fields in this one."""

    c_name: str

    def __init__(self, *fields: Any, **named: Any) -> None:
        super().__init__(*fields)
        for name, value in named.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, np.ndarray):
            self.__dict__[f"array of {name}"] = value
            value = value.ctypes.data
        super().__setattr__(name, value)

    @property
    def address(self) -> int:
        return ctypes.addressof(self)


S = TypeVar("S", bound=type[Structure])


def structure(c_name: str) -> Callable[[S], S]:
    """Returns the decorator for a class that declares `struct c_name` by its annotations."""

    def declare(cls: S) -> S:
        cls.c_name = c_name
        cls._fields_ = [(name, one.ctype) for name, one in _fields(cls)]
        return cls

    return declare


def c_structs(*declared: type[Structure]) -> str:
    """Returns the C declarations of these structures, in this order."""
    return "\n".join(
        f"struct {cls.c_name} {{\n"
        + "".join(f"\t{one.declaration.format(name)};\n" for name, one in _fields(cls))
        + "};\n"
        for cls in declared
    )


def dtype_of(declared: type[Structure]) -> np.dtype:
    """Returns the dtype of an array of these structures. Fields of nested structures are fields of
    their own. The structure must not have gaps: a copy of an array would not copy them."""
    fields = list(_flat(declared))
    assert sum(size for _, _, size in fields) == ctypes.sizeof(declared), "declare spare fields"
    return np.dtype([(name, kind) for name, kind, _ in fields])


def _flat(declared: type[Structure]) -> Iterator[tuple[str, Any, int]]:
    for name, one in _fields(declared):
        if issubclass(one.ctype, Structure):
            yield from _flat(one.ctype)
        else:
            yield name, np.dtype(one.ctype), ctypes.sizeof(one.ctype)


def _fields(declared: type[Structure]) -> list[tuple[str, CType]]:
    hints = get_type_hints(declared, include_extras=True)
    return [(name, _c_type(hints[name])) for name in declared.__annotations__]


def _c_type(hint: Any) -> CType:
    if isinstance(hint, type) and issubclass(hint, Structure):
        return CType(hint, f"struct {hint.c_name} {{}}")
    (found,) = hint.__metadata__
    assert isinstance(found, CType)
    return found
