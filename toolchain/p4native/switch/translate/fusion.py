"""Finds pairs of primitives that are translated together, because together they read their operands
once: a field gets a sum of lanes, and a register gets the field."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from p4native.switch.expression import Const, Data, FieldOf, HeaderRef
from p4native.switch.model import Primitive
from p4native.switch.storage import Field, Register
from p4native.switch.translate.patterns import LaneAdd, lane_add


@dataclass(frozen=True)
class SumAndWrite:
    """`target` of the header `header` becomes the sum `lanes`, and so does the cell `index` of
    `register`, if the register has such a cell."""

    header: HeaderRef
    target: Field
    lanes: LaneAdd
    register: Register
    index: Data


def sum_and_write(
    primitives: tuple[Primitive, ...], at: int, jumped_to: Set[int]
) -> SumAndWrite | None:
    """Returns what the primitives `at` and `at` + 1 of an action do together, or None if they have
    to be translated one by one. jumped_to: the primitives to which other primitives jump."""
    pair = primitives[at : at + 2]
    if [p.op for p in pair] != ["assign", "register_write"] or at + 1 in jumped_to:
        return None
    target, value = pair[0].args
    register, index, written = pair[1].args
    assert isinstance(value, Data)
    assert isinstance(register, Register)
    assert isinstance(index, Data)
    field = plain_field(target)
    if field is None or not field.wide or field is not plain_field(written):
        return None
    assert isinstance(target, FieldOf)
    assert isinstance(target.header, HeaderRef)
    if target.header.header is not written.header.header or register.bits != field.bits:  # type: ignore[union-attr]
        return None
    lanes = None if field.saturating else lane_add(value, field.bits)
    if lanes is None or not keeps_its_value(index):
        return None
    return SumAndWrite(target.header, field, lanes, register, index)


def plain_field(data: object) -> Field | None:
    """Returns the field if `data` is one of a header that is known before the packet comes."""
    return data.field if isinstance(data, FieldOf) and isinstance(data.header, HeaderRef) else None


def keeps_its_value(index: Data) -> bool:
    """Whether an index is the same before and after a wide field has changed."""
    field = plain_field(index)
    return isinstance(index, Const) or (field is not None and not field.wide)
