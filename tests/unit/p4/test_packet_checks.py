"""What a packet must look like, with no checksum to help: RFC 768 lets a sender leave it out."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from aggregation_model import INT32, SCALED, Contribution
from frames import checksum, contribution

from p4native.switch import Exact, Pipeline

LANES, SLOTS = 5, 8
VALUELESS = 2
AGGREGATION = "SwitchmlIngress.aggregation."
SENDER = "SwitchmlIngress.sender."
MORE_FRAGMENTS, LAST_FRAGMENT = 0x2000, 0x0001
TAGS = {INT32: 1, SCALED: 2, VALUELESS: 3}


@pytest.fixture
def pipeline(programmed: Callable[[int], Pipeline]) -> Pipeline:
    return programmed(LANES)


def accepted(pipeline: Pipeline, job: int = 0) -> int:
    kinds = ("contribution_new", "contribution_duplicate")
    return sum(pipeline.counters.read(AGGREGATION + kind, job)[0] for kind in kinds)


def refused(pipeline: Pipeline, job: int = 0) -> int:
    return pipeline.counters.read(AGGREGATION + "contribution_refused", job)[0]


def rewritten(frame: bytes, extra: int = 0, udp_extra: int = 0, fragment: int = 0) -> bytes:
    """With so many bytes more, said by both lengths; a UDP length that says more than that; a
    fragment's field. The IPv4 header's checksum is right, and UDP has none."""
    changed = bytearray(frame + bytes(extra))
    total, udp = len(changed) - 14, len(changed) - 34 + udp_extra
    changed[16:18], changed[38:40] = struct.pack("!H", total), struct.pack("!H", udp)
    changed[20:22] = struct.pack("!H", fragment)
    changed[24:26] = changed[40:42] = bytes(2)
    changed[24:26] = struct.pack("!H", checksum(bytes(changed[14:34])))
    return bytes(changed)


def bare(kind: int) -> bytes:
    """Headers alone, of a kind."""
    return contribution(1, Contribution(1, 0, TAGS.get(kind, 1), kind))


@pytest.mark.parametrize("kind", TAGS)
def test_every_kind_has_one_length(pipeline: Pipeline, kind: int) -> None:
    lengths = range(4 * LANES + 60)
    for extra in lengths:
        assert pipeline.process(1, rewritten(bare(kind), extra)) == []
    assert accepted(pipeline) == 1
    assert refused(pipeline) == len(lengths) - 1


def test_a_kind_that_does_not_exist_has_no_length(pipeline: Pipeline) -> None:
    for kind in (3, 4, 0x7F):
        for extra in range(4 * LANES + 60):
            packet = contribution(1, Contribution(1, 0, 1, kind))
            assert pipeline.process(1, rewritten(packet, extra)) == []
    assert accepted(pipeline) == 0


def test_no_length_is_right_for_a_kind_that_does_not_exist(pipeline: Pipeline) -> None:
    """Not even 0, with a UDP length that agrees with it modulo 2^16."""
    frame = bytearray(rewritten(bare(4), 4 * LANES))
    frame[16:18], frame[38:40] = bytes(2), struct.pack("!H", 2**16 - 20)
    frame[24:26] = bytes(2)
    frame[24:26] = struct.pack("!H", checksum(bytes(frame[14:34])))
    assert pipeline.process(1, bytes(frame)) == []
    assert (accepted(pipeline), refused(pipeline)) == (0, 1)


@pytest.mark.parametrize("udp_extra", [-8, -4, -1, 1, 4, 256])
def test_the_udp_length_is_that_of_the_packet(pipeline: Pipeline, udp_extra: int) -> None:
    frame = rewritten(bare(INT32), 4 * LANES, udp_extra)
    assert pipeline.process(1, frame) == []
    assert (accepted(pipeline), refused(pipeline)) == (0, 1)


@pytest.mark.parametrize("fragment", [MORE_FRAGMENTS, LAST_FRAGMENT, MORE_FRAGMENTS | 3])
def test_fragments_are_not_summed(pipeline: Pipeline, fragment: int) -> None:
    pipeline.process(1, rewritten(bare(INT32), 4 * LANES, fragment=fragment))
    assert accepted(pipeline) == 0
    pipeline.process(1, rewritten(bare(INT32), 4 * LANES))
    assert accepted(pipeline) == 1


def test_a_cell_that_does_not_exist_is_refused(pipeline: Pipeline) -> None:
    """Entries promise a job four slots from the last one on."""
    pipeline.tables.add(
        SENDER + "members", [Exact(9), Exact(5)], SENDER + "contribute",
        [3, 1, 1, SLOTS - 1, 4, 10, 511],
    )  # fmt: skip
    for slot in range(4):
        packet = Contribution(5, slot, 1, INT32, 0, (1,) * LANES)
        pipeline.process(9, contribution(9, packet))
    assert (accepted(pipeline, 3), refused(pipeline, 3)) == (1, 3)
