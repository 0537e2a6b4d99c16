"""Checksums over bytes whose sum the packet loop knows already: it is believed for one frame, and
only where it says what the program asks."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable

import pytest
from aggregation_model import INT32, Contribution
from frames import contribution

from p4native.switch import Pipeline

LANES = 256
PAYLOAD_AT, VALUES_AT = 42, 54
KNOW = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)


@pytest.fixture
def pipeline(programmed: Callable[[int], Pipeline]) -> Pipeline:
    return programmed(LANES)


def folded(data: bytes) -> int:
    """csum_words: the sum of 16-bit words in the machine's order."""
    data += bytes(len(data) % 2)
    order = "<" if sys.byteorder == "little" else ">"
    total = sum(struct.unpack(f"{order}{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def know(pipeline: Pipeline, frame: bytes, begin: int, total: int) -> None:
    """Says that the frame's bytes from `begin` on sum to `total`."""
    address = ctypes.cast(frame, ctypes.c_void_p).value
    assert address
    function = KNOW(pipeline.function_address("pl_know_sum"))
    function(pipeline.handle, address + begin, len(frame) - begin, total)


def frame_of(values: tuple[int, ...], tag: int = 1) -> bytes:
    return contribution(1, Contribution(1, 0, tag, INT32, 0, values))


def accepted(pipeline: Pipeline, frame: bytes) -> bool:
    """Whether the frame is a contribution, new or repeated, and not one with a wrong checksum."""
    kinds = [f"SwitchmlIngress.aggregation.contribution_{kind}" for kind in ("new", "duplicate")]
    before = sum(pipeline.counters.read(kind, 0)[0] for kind in kinds)
    pipeline.process(1, frame)
    return sum(pipeline.counters.read(kind, 0)[0] for kind in kinds) == before + 1


COUNTING = tuple(range(2, LANES + 2))  # with another sum if bytes are swapped
ZEROS = (0,) * LANES
LAST_ALONE = (*ZEROS[1:], 0x00FF0000)


@pytest.mark.parametrize("values", [COUNTING, ZEROS, LAST_ALONE, (0xFFFFFFFF,) * LANES])
@pytest.mark.parametrize("begin", [0, 14, 34, PAYLOAD_AT, 43, 52, VALUES_AT, 55, 56, 900])
def test_a_right_sum_of_any_last_bytes_changes_nothing(
    pipeline: Pipeline, values: tuple[int, ...], begin: int
) -> None:
    frame = frame_of(values)
    know(pipeline, frame, begin, folded(frame[begin:]))
    assert accepted(pipeline, frame)
    damaged = bytearray(frame)
    damaged[41] ^= 1
    wrong = bytes(damaged)
    know(pipeline, wrong, begin, folded(wrong[begin:]))
    assert not accepted(pipeline, wrong)


@pytest.mark.parametrize(("begin", "read"), [(PAYLOAD_AT, False), (VALUES_AT, False), (56, True)])
def test_a_sum_is_believed_where_the_program_sums_to_the_end(
    pipeline: Pipeline, begin: int, read: bool
) -> None:
    """A sum of fewer bytes than the program asks for is of no use."""
    frame = frame_of(COUNTING)
    know(pipeline, frame, begin, folded(frame[begin:]) ^ 1)
    assert accepted(pipeline, frame) == read


def test_a_sum_is_of_one_frame(pipeline: Pipeline) -> None:
    frame = frame_of(COUNTING)
    know(pipeline, frame, PAYLOAD_AT, 1)
    assert not accepted(pipeline, frame)
    assert accepted(pipeline, frame)
    know(pipeline, frame, PAYLOAD_AT, 1)
    pipeline.process(1, bytes(14))  # another frame
    assert accepted(pipeline, frame)
