"""The functions and objects of v1model, and the methods of `packet_in` and `packet_out`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from p4native.compiler import ast, types
from p4native.compiler.typed import CallInfo, CallKind, Instance
from p4native.verification.interpreter import hashes
from p4native.verification.interpreter.context import Context
from p4native.verification.interpreter.expressions import Expressions
from p4native.verification.interpreter.packet import DROP_PORT, NO_FIELDS, Copy, Packet
from p4native.verification.interpreter.parser import Parsers
from p4native.verification.interpreter.values import (
    Header,
    Record,
    Stack,
    Union,
    UnknownConstruct,
    to_bits,
    wrap,
)

Arguments = dict[str, ast.Expression]
MASK64 = (1 << 64) - 1


class Externs:
    """Executes calls of v1model's functions and objects. registers, counters: cells by the object's
    full name. A counter's cell is [packets, bytes]."""

    packet: Packet

    def __init__(self, context: Context, expressions: Expressions, parsers: Parsers) -> None:
        self.context = context
        self.expressions = expressions
        self.parsers = parsers
        self.program = context.program
        self.registers: dict[str, list[int]] = {}
        self.counters: dict[str, list[list[int]]] = {}
        context.calls[CallKind.EXTERN_FUNCTION] = self._function
        context.calls[CallKind.EXTERN_METHOD] = self._method
        self._functions: dict[str, Callable[[Arguments], Any]] = {
            "mark_to_drop": self._mark_to_drop,
            "hash": self._hash,
            "truncate": self._truncate,
            "log_msg": lambda given: None,
            "clone": self._clone,
            "clone_preserving_field_list": self._clone,
            "resubmit_preserving_field_list": lambda given: self._again("resubmit", given),
            "recirculate_preserving_field_list": lambda given: self._again("recirculate", given),
            "verify_checksum": lambda given: self._verify(given, b""),
            "update_checksum": lambda given: self._update(given, b""),
            "verify_checksum_with_payload": lambda g: self._verify(g, self._payload()),
            "update_checksum_with_payload": lambda g: self._update(g, self._payload()),
        }

    def _function(self, call: ast.Call, info: CallInfo) -> Any:
        if info.method == "verify":
            return self.parsers.verify(info)
        handler = self._functions.get(info.method)
        if handler is None:
            raise UnknownConstruct(f"{call.position}: calls of {info.method}")
        return handler(_arguments(info))

    def _method(self, call: ast.Call, info: CallInfo) -> Any:
        assert info.receiver is not None
        kind = self.program.type_of[info.receiver]
        name = kind.name if isinstance(kind, types.Extern) else str(kind)
        if name == "packet_in":
            return self.parsers.extern(call, info)
        if name == "packet_out" and info.method == "emit":
            (given,) = _arguments(info).values()
            return self._emit(self.expressions.value(given))
        handler = getattr(self, f"_{name}_{info.method}", None)
        if handler is None:
            raise UnknownConstruct(f"{call.position}: calls of {name}.{info.method}")
        return handler(self.context.object(info.receiver), _arguments(info))

    # ---- functions

    def _mark_to_drop(self, given: Arguments) -> None:
        self.packet.standard.fields["egress_spec"] = DROP_PORT
        self.packet.standard.fields["mcast_grp"] = 0

    def _truncate(self, given: Arguments) -> None:
        length, known = self.expressions.number(given["length"]), self.packet.truncate_bytes
        self.packet.truncate_bytes = length if known is None else min(known, length)

    def _clone(self, given: Arguments) -> None:
        session = self.expressions.number(given["session"])
        fields = self.expressions.number(given["index"]) if "index" in given else NO_FIELDS
        self.packet.clone = Copy(session, fields)

    def _again(self, how: str, given: Arguments) -> None:
        setattr(self.packet, how, Copy(0, self.expressions.number(given["index"])))

    def _hash(self, given: Arguments) -> None:
        place = self.expressions.place(given["result"])
        digest = self._digest(given)
        base, most = self.expressions.number(given["base"]), self.expressions.number(given["max"])
        kind = self.expressions.type(given["result"])
        assert isinstance(kind, types.Bits)
        place.write(wrap((base + digest % max(most, 1)) & MASK64, kind))

    def _digest(self, given: Arguments, behind: bytes = b"") -> int:
        data = self.expressions.value(given["data"])
        return self._hashed(given, [to_bits(data, self.program.type_of[given["data"]])], behind)

    def _hashed(self, given: Arguments, parts: Iterable[tuple[int, int]], behind: bytes) -> int:
        """Returns the digest of values, each with its number of bits, and of the bytes behind
        them."""
        bits = value = 0
        for more, below in parts:
            bits, value = bits + more, value << more | below
        padded = (value << -bits % 8).to_bytes((bits + 7) // 8, "big")
        algorithm = self.expressions.value(given["algo"])
        return hashes.ALGORITHMS[algorithm.name](padded + behind)

    # ---- checksums

    def _payload(self) -> bytes:
        return self.packet.payload[: self.packet.truncate_bytes]

    def _header_of(self, target: ast.Expression) -> Header:
        assert isinstance(target, ast.Member)
        header = self.expressions.place(target.base).read()
        assert isinstance(header, Header)
        return header

    def _checksum(self, given: Arguments, payload: bytes) -> int:
        """Returns the checksum of a list of fields and of the payload. As in BMv2, a field of an
        invalid header adds nothing."""
        data = given["data"]
        if not isinstance(data, ast.ListExpression):
            return self._digest(given, payload)
        parts = [
            to_bits(self.expressions.value(each), self.program.type_of[each])
            for each in data.elements
            if not self._is_of_invalid_header(each)
        ]
        return self._hashed(given, parts, payload)

    def _is_of_invalid_header(self, element: ast.Expression) -> bool:
        if not isinstance(element, ast.Member):
            return False
        base = self.program.type_of.get(element.base)
        return isinstance(base, types.Header) and not self._header_of(element).valid

    def _verify(self, given: Arguments, payload: bytes) -> None:
        """Verifies a checksum. As in BMv2, a checksum in an invalid header is not checked."""
        target = given["checksum"]
        if not self._header_of(target).valid or not self.expressions.value(given["condition"]):
            return
        if self.expressions.number(target) != self._checksum(given, payload):
            self.packet.standard.fields["checksum_error"] = 1

    def _update(self, given: Arguments, payload: bytes) -> None:
        if self.expressions.value(given["condition"]):
            kind = self.expressions.type(given["checksum"])
            assert isinstance(kind, types.Bits)
            digest = self._checksum(given, payload)
            self.expressions.place(given["checksum"]).write(wrap(digest, kind))

    # ---- objects

    def _cells(self, register: Instance) -> list[int]:
        size = register.arguments["size"]
        assert isinstance(size, int)
        return self.registers.setdefault(register.name, [0] * size)

    def _register_read(self, register: Instance, given: Arguments) -> None:
        """Reads a cell of a register. If the index is out of range, the result variable keeps its
        value."""
        place = self.expressions.place(given["result"])
        cells, index = self._cells(register), self.expressions.number(given["index"])
        if index < len(cells):
            place.write(cells[index])

    def _register_write(self, register: Instance, given: Arguments) -> None:
        cells, index = self._cells(register), self.expressions.number(given["index"])
        value = self.expressions.number(given["value"])
        if index < len(cells):
            cells[index] = value

    def _counter_count(self, counter: Instance, given: Arguments) -> None:
        size, index = counter.arguments["size"], self.expressions.number(given["index"])
        assert isinstance(size, int)
        cells = self.counters.setdefault(counter.name, [[0, 0] for _ in range(size)])
        if index < len(cells):
            cells[index][0] += 1
            cells[index][1] += self.packet.length_bytes

    def _meter_execute_meter(self, meter: Instance, given: Arguments) -> None:
        """Stores the color green as the meter's result. The interpreter's meters have no rates, so
        every packet is green."""
        self.expressions.number(given["index"])
        self.expressions.place(given["result"]).write(0)

    # ---- packet_out

    def _emit(self, value: Any) -> None:
        """Appends the valid headers to the packet, in their order (P4_16 section 15.1)."""
        if isinstance(value, Header):
            if value.valid:
                self.packet.emit(*to_bits(value, value.type))
            return
        if isinstance(value, Record):
            parts = list(value.fields.values())
        elif isinstance(value, Union):
            parts = list(value.members.values())
        else:
            assert isinstance(value, Stack)
            parts = value.elements
        for each in parts:
            self._emit(each)


def _arguments(info: CallInfo) -> Arguments:
    return {each.parameter.name: each.value for each in info.arguments if each.value is not None}
