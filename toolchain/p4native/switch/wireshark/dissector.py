"""Writes the Wireshark dissector of a program: Lua for its headers and its parser's states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from p4native.switch.expression import Const, Data, FieldOf, HeaderExpression, HeaderRef
from p4native.switch.model import ParserOp, State, Transition
from p4native.switch.program import Program
from p4native.switch.storage import Field, Header, HeaderType, Stack, UnionStack
from p4native.switch.wireshark.expressions import (
    boolean,
    data,
    header,
    literal,
    member_stack,
    quoted,
)

RUNTIME = Path(__file__).parent / "runtime.lua"
ADDRESS = re.compile(r"(?i)(addr|mac|^(src|dst|source|destination|sender|target)$)")
ADDRESS_KINDS = {48: "ether", 32: "ipv4", 128: "ipv6"}
DIRECTIONS = (("src", "dst"), ("source", "destination"), ("Src", "Dst"), ("sender", "target"))
"""Parts of the names of fields that say who sends and who receives."""
NUMBER_MAX_BITS = 64
UNKNOWN = (
    *("ingress_port", "instance_type", "ingress_global_timestamp", "egress_global_timestamp"),
    *("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth", "packet_length"),
)
"""The fields of `standard_metadata` whose values a capture does not hold. In a parser, its other
fields are 0, and so is the program's own metadata."""


def dissector(program: Program, name: str) -> str:
    """Returns a Lua script for Wireshark or tshark that shows what the program's parser extracts
    from each Ethernet frame, beside what Wireshark itself shows. Fields can be used in filters as
    `name.header.field`. It runs with Lua 5.2 to 5.4.

    name: the name of the protocol: lower-case letters, digits and `_`, which begins with a letter.
    """
    headers = "\n".join([*_headers(program), *_stacks(program)])
    states = "\n".join(_state(state, program) for state in program.parser.states.values())
    first = program.parser.first
    return f"""-- Made by p4native from the parser of {_comment(name)}.
local PROGRAM = {quoted(name)}
{RUNTIME.read_text(encoding="utf-8")}
-- The program ------------------------------------------------------------------------------------

{headers}

{states}

protocol.fields = all_fields()
protocol.experts = {{ note, fault }}
protocol.dissector = dissect({quoted(first) if first else "nil"}, {{ {_unknown(program)} }})
register_postdissector(protocol)
"""


def _comment(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _headers(program: Program) -> Iterator[str]:
    for each in program.headers.values():
        if not each.metadata:
            yield f"header({quoted(each.name)}, {quoted(_filter_name(each))}, {_fields(each.type)})"


def _filter_name(each: Header) -> str:
    """Returns the header's name in filters, which all elements of a stack share."""
    if each.stack:
        return _plain(each.stack.name)
    if each.union and each.union.stack:
        stack = each.union.stack
        return _plain(f"{stack.name}.{each.union.member_names[each.member]}")
    return _plain(each.name)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]", "_", name)


def _fields(kind: HeaderType) -> str:
    rows, offset = [], 0
    for each in kind.fields:
        bits = 0 if each.variable else each.bits
        row = [quoted(each.name), str(bits), quoted(_kind(each, offset)), quoted(_plain(each.name))]
        if opposite := _opposite(each.name, kind):
            row.append(quoted(opposite))
        rows.append(f"{{ {', '.join(row)} }}")
        offset += bits
    return f"{{ {', '.join(rows)} }}"


def _opposite(name: str, kind: HeaderType) -> str | None:
    """Returns the field that is the sender where this one is the receiver, or the reverse."""
    for pair in DIRECTIONS:
        for here, there in (pair, pair[::-1]):
            other = name.replace(here, there)
            if other != name and kind.field(other):
                return other
    return None


def _kind(each: Field, offset_bits: int) -> str:
    """Returns how the field is shown, a key of KINDS in runtime.lua."""
    is_aligned = offset_bits % 8 == 0
    if each.variable:
        return "bytes"
    if is_aligned and each.bits in ADDRESS_KINDS and ADDRESS.search(each.name):
        return ADDRESS_KINDS[each.bits]
    if each.bits <= NUMBER_MAX_BITS:
        return "number"
    return "bytes" if is_aligned and each.bits % 8 == 0 else "digits"


def _stacks(program: Program) -> Iterator[str]:
    for stack in program.stacks.values():
        yield _stack(stack.name, stack.headers)
    for unions in program.union_stacks.values():
        yield _stack(unions.name, (union.headers[0] for union in unions.unions))
        for member in range(len(unions.unions[0].headers)):
            members = (union.headers[member] for union in unions.unions)
            yield _stack(member_stack(unions.name, member), members)


def _stack(name: str, headers: Iterable[Header]) -> str:
    return f"stack({quoted(name)}, {{ {', '.join(quoted(each.name) for each in headers)} }})"


def _unknown(program: Program) -> str:
    """Returns the keys of all fields whose values a capture does not hold, as a Lua table."""
    found = (program.standard_field(f"standard_metadata.{name}") for name in UNKNOWN)
    return ", ".join(f"{{ {quoted(h.name)}, {quoted(f.name)} }}" for h, f in filter(None, found))


def _state(state: State, program: Program) -> str:
    lines = [f"state({quoted(state.name)}, function(d)"]
    for op in state.ops:
        lines += [f"  {line}" for line in _operation(op, program)]
    if state.transitions:
        keys = ", ".join(f"{{ value = {data(k)}, text = {quoted(_text(k))} }}" for k in state.key)
        lines.append(f"  local key = {{ {keys} }}")
    for transition in state.transitions:
        lines += [f"  {line}" for line in _transition(transition, state)]
    return "\n".join([*lines, f"  return {_next(state.default)}", "end)"])


def _next(name: str | None) -> str:
    return "nil" if name is None else quoted(name)


def _text(key: Data) -> str:
    """Returns a key's name for a reader."""
    if isinstance(key, FieldOf) and isinstance(key.header, HeaderRef):
        return f"{key.header.header.name}.{key.field.name if key.field else '$valid$'}"
    return "a value that the parser branches on"


def _operation(op: ParserOp, program: Program) -> Iterator[str]:
    if op.op == "extract":
        yield from _extraction(op)
    elif op.op == "advance" and op.value:
        yield f"advance(d, {data(op.value)})"
    elif op.op == "verify" and op.condition and op.value:
        yield f"verify(d, {boolean(op.condition)}, {quoted(_error(op.value, program))})"
    elif op.op == "set" and op.value and isinstance(op.destination, FieldOf):
        target = op.destination
        if target.field and not target.field.variable:
            value = f"low_bits({data(op.value)}, {target.field.bits})"
            yield f"set(d, {header(target.header)}, {quoted(target.field.name)}, {value})"
    else:
        yield _primitive(op)


def _primitive(op: ParserOp) -> str:
    """Returns Lua for a primitive of actions that a parser executes."""
    primitive = op.primitive
    assert primitive
    names = [header(each) for each in primitive.args if isinstance(each, HeaderExpression)]
    written = {
        "add_header": "make_valid(d, {0})",
        "remove_header": "make_invalid(d, {{ {0} }})",
        "assign_header": "copy_header(d, {0}, {1})",
    }
    if primitive.op in written and len(names) == len(primitive.args):
        return written[primitive.op].format(*names)
    return f"unfollowed(d, {quoted(primitive.op)})"


def _error(code: Data, program: Program) -> str:
    value = code.value if isinstance(code, Const) else None
    return next((name for name, number in program.errors.items() if number == value), "an error")


def _extraction(op: ParserOp) -> Iterator[str]:
    target = op.target
    if isinstance(target, Header):
        others = (
            [each for each in target.union.headers if each is not target] if target.union else []
        )
        if others:
            yield f"make_invalid(d, {{ {', '.join(quoted(each.name) for each in others)} }})"
        name = quoted(target.name)
    elif isinstance(target, Stack):
        name = f"next_of(d, {quoted(target.name)})"
    else:
        assert target
        unions, member = target
        assert isinstance(unions, UnionStack)
        yield f"next_of(d, {quoted(unions.name)})"
        place = f"[count_of(d, {quoted(unions.name)})]"
        name = f"stacks[{quoted(member_stack(unions.name, member))}]{place}"
    if op.length is None:
        yield f"extract(d, {name})"
    else:
        longest = _extracted_type(op).max_bytes
        yield f"extract_variable(d, {name}, {data(op.length)}, {longest})"


def _extracted_type(op: ParserOp) -> HeaderType:
    if isinstance(op.target, Header | Stack):
        return op.target.type
    assert op.target
    unions, member = op.target
    return unions.unions[0].headers[member].type


def _transition(transition: Transition, state: State) -> Iterator[str]:
    if transition.value is None:
        assert transition.value_set
        yield f"without_entries(d, {quoted(transition.value_set.name)})"
        return
    wanted, at = [], 0
    for bits in state.key_bits:
        size = (bits + 7) // 8
        value = int.from_bytes(transition.value[at : at + size], "big")
        at, all_ones = at + size, (1 << bits) - 1
        mask = all_ones
        if transition.mask:
            mask = int.from_bytes(transition.mask[at - size : at], "big") & all_ones
        parts = [literal(value & mask), *([literal(mask)] if mask != all_ones else [])]
        wanted.append(f"{{ {', '.join(parts)} }}")
    condition = f"matches(d, key, {{ {', '.join(wanted)} }})"
    yield f"if {condition} then return {_next(transition.next)} end"
