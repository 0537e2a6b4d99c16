"""The wire format: known bytes, round trips, and that nothing malformed is taken or raises."""

import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agglab.hosts import wire
from agglab.hosts.wire import Batch, Chunk, Kind, Shape

KNOWN = bytes.fromhex("01 81 0102 0304 05 00 06070809 00000001 ffffffff 7fffffff")
KNOWN_CHUNK = Chunk(Kind.SCALED, 0x102, 0x304, 0x6070809, 5, (1, -1, 2**31 - 1), result=True)

chunks = st.builds(
    Chunk,
    kind=st.sampled_from([Kind.INT32, Kind.SCALED]),
    job=st.integers(0, 65535),
    slot=st.integers(0, 65535),
    tag=st.integers(0, 2**32 - 1),
    exponent=st.integers(0, 255),
    values=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=3, max_size=3).map(tuple),
    result=st.booleans(),
)


def test_parse_reads_the_documented_layout():
    assert Chunk.parse(KNOWN, 3) == KNOWN_CHUNK


def test_emit_writes_the_documented_layout():
    assert KNOWN_CHUNK.emit() == KNOWN


def test_ports_and_addresses_are_those_of_the_protocol():
    assert (wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_MAC) == ("10.0.255.254", "02:00:00:00:ff:fe")
    assert (wire.AGGREGATOR_PORT, wire.WORKER_PORT_BASE) == (48864, 48865)


def test_str_is_one_line_that_says_it_all():
    assert str(KNOWN_CHUNK) == "result SCALED job 258 slot 772 tag 101124105 exponent 5, 3 values"
    plain = Chunk(Kind.OPENING, 1, 2, 3, 4)
    assert str(plain) == "contribution OPENING job 1 slot 2 tag 3 exponent 4, 0 values"


@given(chunks)
def test_what_is_emitted_parses_to_the_same(chunk):
    assert Chunk.parse(chunk.emit(), 3) == chunk


shapes = st.builds(
    Shape,
    elements=st.integers(0, 2**48 - 1),
    workers=st.integers(0, 2**32 - 1),
    lanes=st.integers(0, 65535),
    window=st.integers(0, 65535),
    dtype=st.integers(0, 15),
    round=st.integers(0, 255),
    operation=st.integers(0, 15),
    tensors=st.integers(0, 65535),
)


@given(shapes, shapes, st.integers(0, 65535), st.integers(0, 255))
def test_an_opening_has_two_shapes_and_no_values(smallest, largest, slot, exponent):
    chunk = Chunk(Kind.OPENING, 1, slot, 2, exponent, shapes=(smallest, largest))
    assert len(chunk.emit()) == 12 + 2 * 18
    assert Chunk.parse(chunk.emit(), 3) == chunk
    for wrong in (chunk.emit()[:12], chunk.emit()[:30], chunk.emit() + bytes(12)):
        assert Chunk.parse(wrong, 3) is None


def test_a_shape_has_the_documented_layout():
    shape = Shape(elements=24, workers=2, lanes=5, window=16, dtype=Kind.SCALED, round=3)
    assert shape.emit().hex(" ", -2) == "0000 0000 0000 0018 0000 0002 0005 0010 0103"


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        KNOWN[:1],
        KNOWN[:11],
        KNOWN[:12],
        KNOWN[:-1],
        KNOWN + b"\0",
        KNOWN + bytes(4),
        KNOWN * 100,
        b"\0" + KNOWN[1:],
        b"\2" + KNOWN[1:],
        KNOWN[:1] + b"\4" + KNOWN[2:],
        KNOWN[:1] + b"\x84" + KNOWN[2:],
        KNOWN[:1] + b"\xff" + KNOWN[2:],
    ],
)
def test_malformed_is_none(datagram):
    assert Chunk.parse(datagram, 3) is None


@given(st.binary(max_size=200), st.integers(1, 20))
def test_noise_never_raises_and_what_parses_emits_the_same_bytes(datagram, lanes):
    chunk = Chunk.parse(datagram, lanes)
    assert chunk is None or chunk.emit() == datagram


def test_a_batch_shows_all_rows_as_columns():
    datagrams = [
        Chunk(Kind.INT32, 9, slot, 2**32 - 1 - slot, slot, (slot, -slot)).emit()
        for slot in range(5)
    ]
    batch = Batch.of([*datagrams, b"short"], 2)
    assert batch.well_formed().tolist() == [True] * 5 + [False]
    assert batch.headers["slot"][:5].tolist() == list(range(5))
    assert batch.headers["tag"][:5].tolist() == [2**32 - 1 - slot for slot in range(5)]
    assert batch.values[:5].tolist() == [[slot, -slot] for slot in range(5)]
    assert [batch.datagram(index) for index in range(6)] == [*datagrams, b"short"]


def test_a_refilled_batch_does_not_show_what_was_there():
    batch = Batch.of([KNOWN, KNOWN], 3)
    batch.fill([b"\1"])
    assert batch.well_formed().tolist() == [False]
    batch.fill([])
    assert batch.well_formed().size == 0


@pytest.mark.parametrize("lanes", [1, 12, 13, 256, 365, 2240, wire.MAX_LANES])
def test_rows_have_room_to_notice_a_payload_that_is_too_long(lanes):
    for kind, length in ((Kind.INT32, 12 + 4 * lanes), (Kind.OPENING, 48)):
        batch = Batch.of([bytes([1, kind]) + bytes(length - 2 + more) for more in (0, 1)], lanes)
        assert batch.well_formed().tolist() == [True, False]


def test_lengths_are_those_of_the_protocol():
    assert wire.HEADER_BYTES == 12
    assert wire.frame_bytes(256) == 54 + 4 * 256
    assert wire.frame_bytes(365) - 14 <= 1500 < wire.frame_bytes(366) - 14
    assert wire.frame_bytes(2240) - 14 <= 9000
    assert 28 + wire.datagram_bytes(wire.MAX_LANES) <= 65535
    assert wire.field_bits() == {
        "version": 8,
        "kind": 8,
        "job": 16,
        "slot": 16,
        "exponent": 8,
        "attempt": 8,
        "tag": 32,
    }
    assert wire.field_bits(wire.SHAPE) == {
        "elements": 64,
        "workers": 32,
        "lanes": 16,
        "window": 16,
        "dtype": 8,
        "round": 8,
    }
    assert wire.opening_frame_bytes() == 90


def test_the_c_header_has_every_field_with_its_width():
    found = re.findall(r"uint(\d+)_t (\w+);", wire.c_header())
    assert {name: int(bits) for bits, name in found} == wire.field_bits()


def test_the_batch_check_and_the_native_worker_agree_on_noise():
    """What `well_formed` lets through is what the worker does not count as malformed, but for job,
    slot and tag."""
    from agglab.systems.switchml.worker import Job, Worker

    chance = random.Random(3)
    worker = Worker(Job(0, 1, 2, 4, 4))
    worker.begin(0, np.zeros(8, np.int32), np.empty(8, np.int32))
    worker.poll(0)
    for _ in range(3000):
        slot = chance.randrange(1, 4)
        data = bytearray(Chunk(Kind.INT32, 0, slot, 1, 0, (0, 0), result=True).emit())
        data[chance.choice((0, 1, 7))] = chance.randrange(256)
        data = bytes(data[: chance.choice((len(data), chance.randrange(21)))])
        batch = Batch.of([data], 2)
        before = worker.counters["malformed"]
        worker.on_datagrams(0, batch)
        legal = batch.well_formed()[0] and data[1] == 0x80
        assert worker.counters["malformed"] - before == (not legal)
