"""Encodes the fields of a sample as P4Data, for the types that a digest may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from p4.config.v1 import p4types_pb2
from p4.v1 import p4data_pb2

from p4native.switch.p4runtime.bytestring import encode, encode_signed
from p4native.switch.p4runtime.p4info import entries
from p4native.switch.p4runtime.status import invalid, unsupported

Encoder = Callable[[Iterator[int]], p4data_pb2.P4Data]
"""A function that takes as many fields as the type has, in order."""


def encoder(where: str, spec: p4types_pb2.P4DataTypeSpec, types: p4types_pb2.P4TypeInfo) -> Encoder:
    """Returns the encoder of a type. Raises UNIMPLEMENTED for a type that cannot be encoded. where:
    the digest, which the error names."""
    kind = spec.WhichOneof("type_spec") or "nothing"
    if kind == "bitstring":
        return _bitstring(where, spec.bitstring)
    if kind == "bool":
        return lambda fields: p4data_pb2.P4Data(bool=bool(next(fields)))
    if kind == "serializable_enum":
        return lambda fields: p4data_pb2.P4Data(enum_value=encode(next(fields)))
    if kind == "tuple":
        parts = [encoder(where, member, types) for member in spec.tuple.members]
        return lambda fields: _members("tuple", [part(fields) for part in parts])
    if kind == "struct":
        struct = _named(where, types.structs, spec.struct.name)
        parts = [encoder(where, member.type_spec, types) for member in struct.members]
        return lambda fields: _members("struct", [part(fields) for part in parts])
    if kind == "new_type":
        new_type = _named(where, types.new_types, spec.new_type.name)
        if new_type.WhichOneof("representation") == "original_type":
            return encoder(where, new_type.original_type, types)
        kind = "translated type"
    raise unsupported(f"{where}: a value of type {kind}")


def _bitstring(where: str, spec: p4types_pb2.P4BitstringLikeTypeSpec) -> Encoder:
    kind = spec.WhichOneof("type_spec")
    if kind == "bit":
        return lambda fields: p4data_pb2.P4Data(bitstring=encode(next(fields)))
    if kind == "int":
        bits = spec.int.bitwidth
        return lambda fields: p4data_pb2.P4Data(bitstring=encode_signed(next(fields), bits))
    raise unsupported(f"{where}: a value of type {kind}")


def _members(kind: str, members: list[p4data_pb2.P4Data]) -> p4data_pb2.P4Data:
    data = p4data_pb2.P4Data()
    getattr(data, kind).members.extend(members)
    return data


def _named(where: str, known: Any, name: str) -> Any:
    for key, value in entries(known):
        if key == name:
            return value
    raise invalid(f"{where}: P4Info: no type is called {name!r}")
