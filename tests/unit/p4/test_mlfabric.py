"""p4/mlfabric.p4 against docs/systems/mlfabric.md: rules by name. Random pushes against a model of
one cell's rules are in rules/mlfabric.py."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from frames import udp_checksum, worker_address
from rules.mlfabric import (
    CELLS,
    FIRST_CELL,
    HEAD,
    INDEX,
    JOB,
    LANES,
    PUSH,
    RULES,
    SERVER,
    Push,
    frame,
    job_at_server,
)
from rules.mlfabric import COUNTERS as COUNTER_NAMES
from tables import write_entries

from p4native.switch import Pipeline

PATH, FORWARD = "MlfabricIngress.aggregation.", "MlfabricIngress.forwarding."
COUNTERS = {name: PATH + counter for name, counter in COUNTER_NAMES.items()}


def read(data: bytes) -> tuple[int, int, int, tuple[int, ...]]:
    """Group, members, present, values; asserts that UDP's checksum is right."""
    datagram, addresses = data[34:], (data[26:30], data[30:34])
    assert udp_checksum(*addresses, datagram) in (0, 0xFFFF)
    group, members, present, _, _ = struct.unpack_from(HEAD, datagram, 28)
    return group, members, present, struct.unpack_from(f"!{LANES}I", datagram, 44)


@pytest.fixture(scope="session")
def mlfabric(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return RULES.compiled(tmp_path_factory.mktemp("mlfabric"))


@pytest.fixture
def pipeline(mlfabric: Path) -> Pipeline:
    made = Pipeline.load(mlfabric)
    write_entries(made, job_at_server())
    return made


def counted(pipeline: Pipeline) -> dict[str, int]:
    return {name: pipeline.counters.read(at, INDEX)[0] for name, at in COUNTERS.items()}


def sent(pipeline: Pipeline, push: Push, port: int | None = None) -> list[tuple[int, bytes]]:
    return pipeline.process(port or push.port, frame(push), 0)


ONES, TWOS = (1,) * LANES, (2,) * LANES


def test_a_group_leaves_as_one_packet_with_the_sum(pipeline: Pipeline) -> None:
    assert sent(pipeline, Push(1, 9, 0b101, ONES)) == []
    ((port, data),) = sent(pipeline, Push(3, 9, 0b101, (2**32 - 1, 5, 6, 7, 8)))
    assert (port, read(data)) == (SERVER, (9, 0b101, 0b101, (0, 6, 7, 8, 9)))
    assert data[26:30] == worker_address(3)
    assert counted(pipeline) == {"new": 2, "duplicate": 0, "stale": 0, "refused": 0, "complete": 1}


def test_what_comes_twice_counts_once(pipeline: Pipeline) -> None:
    assert sent(pipeline, Push(1, 9, 0b11, ONES)) == sent(pipeline, Push(1, 9, 0b11, ONES)) == []
    ((_, data),) = sent(pipeline, Push(2, 9, 0b11, TWOS))
    assert read(data)[3] == (3,) * LANES
    assert sent(pipeline, Push(1, 9, 0b11, ONES)) == []
    assert counted(pipeline)["duplicate"] == 2


def test_a_later_group_takes_the_cell_and_an_older_one_does_not(pipeline: Pipeline) -> None:
    assert sent(pipeline, Push(1, 9, 0b11, ONES)) == []
    assert sent(pipeline, Push(2, 10, 0b11, TWOS)) == []
    assert sent(pipeline, Push(2, 9, 0b11, TWOS)) == []  # stale
    ((_, data),) = sent(pipeline, Push(1, 10, 0b11, ONES))
    assert read(data) == (10, 0b11, 0b11, (3,) * LANES)
    assert counted(pipeline)["stale"] == 1


def test_another_chunk_of_the_group_takes_the_cell(pipeline: Pipeline) -> None:
    assert sent(pipeline, Push(1, 9, 0b11, ONES, chunk=0)) == []
    assert sent(pipeline, Push(2, 9, 0b11, TWOS, chunk=3)) == []
    ((_, data),) = sent(pipeline, Push(1, 9, 0b11, ONES, chunk=3))
    assert read(data)[3] == (3,) * LANES


@pytest.mark.parametrize(
    "wrong",
    [
        Push(1, 9, 0b110, ONES),
        Push(1, 9, 0b011, ONES, present=0b10),
        Push(1, 9, 0b011, ONES, present=0b11),
        Push(1, 9, 0b011, ONES, cell=FIRST_CELL - 1),
        Push(1, 9, 0b011, ONES, cell=FIRST_CELL + CELLS),
        Push(1, 9, 0b011, ONES, version=2),
    ],
)
def test_what_no_member_sends_is_refused(pipeline: Pipeline, wrong: Push) -> None:
    assert sent(pipeline, wrong) == []
    assert counted(pipeline) == {"new": 0, "duplicate": 0, "stale": 0, "refused": 1, "complete": 0}


def test_other_members_for_one_chunk_are_refused(pipeline: Pipeline) -> None:
    assert sent(pipeline, Push(1, 9, 0b011, ONES)) == []
    assert sent(pipeline, Push(2, 9, 0b111, ONES)) == []
    assert counted(pipeline)["refused"] == 1
    ((_, data),) = sent(pipeline, Push(2, 9, 0b011, TWOS))  # nor do they change the cell's
    assert read(data)[1:] == (0b011, 0b011, (3,) * LANES)


def test_a_wrong_checksum_is_refused(pipeline: Pipeline) -> None:
    data = bytearray(frame(Push(1, 9, 0b11, ONES)))
    data[-1] ^= 1
    assert pipeline.process(1, bytes(data), 0) == []
    assert counted(pipeline)["refused"] == 1


def test_no_checksum_is_right_too(pipeline: Pipeline) -> None:
    assert pipeline.process(1, frame(Push(1, 9, 0b11, ONES), checked=False), 0) == []
    assert counted(pipeline)["new"] == 1


def test_who_comes_by_another_port_is_no_member(pipeline: Pipeline) -> None:
    """It is forged, as its port is another's."""
    assert sent(pipeline, Push(1, 9, 0b11, ONES), port=2) == []
    assert counted(pipeline)["new"] == 0
    assert pipeline.counters.read(FORWARD + "forged", 0)[0] == 1


@pytest.mark.parametrize(
    "other", [Push(1, 9, 1, ONES, kind=PUSH), Push(1, 9, 0b11, ONES, job=JOB + 1)]
)
def test_what_is_not_to_be_summed_here_is_forwarded(pipeline: Pipeline, other: Push) -> None:
    assert sent(pipeline, other) == [(SERVER, frame(other))]
    assert sum(counted(pipeline).values()) == 0


def test_a_longer_packet_is_forwarded_unread(pipeline: Pipeline) -> None:
    data = frame(Push(1, 9, 0b11, ONES), padding=b"\0\0")
    assert pipeline.process(1, data, 0) == [(SERVER, data)]
