"""Recognizes expressions that have a fast form: lane-wise addition, and masks that change
nothing."""

from __future__ import annotations

from dataclasses import dataclass

from p4native.switch.expression import (
    Arithmetic,
    Complement,
    Const,
    Data,
    FieldOf,
    HeaderRef,
    Local,
    RegisterCell,
)

LANE_BITS = (8, 16, 32, 64)


@dataclass(frozen=True)
class LaneAdd:
    """The sum of `left` and `right` in lanes of `lane_bits` bits, without a carry between lanes."""

    lane_bits: int
    left: Data
    right: Data


def strip_masks(data: Data, bits: int) -> Data:
    """Returns an expression that is equal modulo 2^bits, without `& ones` around it."""
    full = (1 << bits) - 1
    while isinstance(data, Arithmetic) and data.op == "&":
        for mask, inner in ((data.left, data.right), (data.right, data.left)):
            if isinstance(mask, Const) and mask.value & full == full:
                data = inner
                break
        else:
            return data
    return data


def lane_add(data: Data, bits: int) -> LaneAdd | None:
    """Returns a LaneAdd if `data` is `((a & L) + (b & L)) ^ ((a ^ b) & H)`, otherwise None. H has
    the top bit of every lane, and L has the other bits."""
    data = strip_masks(data, bits)
    if not (isinstance(data, Arithmetic) and data.op == "^"):
        return None
    for low, top in ((data.left, data.right), (data.right, data.left)):
        found = match_halves(strip_masks(low, bits), strip_masks(top, bits), bits)
        if found:
            return found
    return None


def match_halves(low: Data, top: Data, bits: int) -> LaneAdd | None:
    if not (isinstance(low, Arithmetic) and low.op == "+"):
        return None
    left, left_mask = split_mask(low.left, bits)
    right, right_mask = split_mask(low.right, bits)
    either, top_mask = split_mask(top, bits)
    either = strip_masks(either, bits)
    if left_mask is None or left_mask != right_mask or top_mask is None:
        return None
    if not (isinstance(either, Arithmetic) and either.op == "^"):
        return None
    pair = strip_masks(either.left, bits), strip_masks(either.right, bits)
    straight = same(left, pair[0]) and same(right, pair[1])
    crossed = same(left, pair[1]) and same(right, pair[0])
    if not (straight or crossed):
        return None
    for lane_bits in LANE_BITS:
        if bits % lane_bits == 0 and masks(bits, lane_bits) == (left_mask, top_mask):
            return LaneAdd(lane_bits, left, right)
    return None


def masks(bits: int, lane_bits: int) -> tuple[int, int]:
    """Returns (L, H) for `bits` bits: L has every bit of a lane except its top one, and H every
    lane's top bit."""
    ones = ((1 << bits) - 1) // ((1 << lane_bits) - 1)
    return ones * ((1 << lane_bits - 1) - 1), ones << lane_bits - 1


def split_mask(data: Data, bits: int) -> tuple[Data, int | None]:
    """Returns (x, m) if `data` is `x & m` with a constant m, which is taken modulo 2^bits.
    Otherwise returns (data, None)."""
    if isinstance(data, Arithmetic) and data.op == "&":
        for mask, inner in ((data.left, data.right), (data.right, data.left)):
            if isinstance(mask, Const):
                return strip_masks(inner, bits), mask.value % (1 << bits)
    return data, None


def same(left: Data, right: Data) -> bool:
    """Whether two expressions are the same computation with the same operands."""
    if isinstance(left, Const) and isinstance(right, Const):
        return left.value == right.value
    if isinstance(left, Local) and isinstance(right, Local):
        return left.index == right.index
    if isinstance(left, FieldOf) and isinstance(right, FieldOf):
        headers = left.header, right.header
        if not all(isinstance(h, HeaderRef) for h in headers):
            return False
        return headers[0].header is headers[1].header and left.field == right.field  # type: ignore
    if isinstance(left, RegisterCell) and isinstance(right, RegisterCell):
        return left.register is right.register and same(left.index, right.index)
    if isinstance(left, Complement) and isinstance(right, Complement):
        return same(left.value, right.value)
    if isinstance(left, Arithmetic) and isinstance(right, Arithmetic):
        operands = same(left.left, right.left) and same(left.right, right.right)
        return left.op == right.op and operands
    return False
