"""p4/mlfabric.p4 against docs/systems/mlfabric.md: rules by name, and random pushes against a model
of one cell's rules."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from frames import ETHERNET, UDP, ipv4, udp_checksum, worker_address, worker_mac

from agglab.switch import Exact, Pipeline

ROOT = Path(__file__).resolve().parents[3]
LANES, SLOTS, JOB, INDEX = 5, 6, 3, 2
FIRST_CELL, CELLS = 2, 3
WORKERS, SERVER, SERVER_PORT = (1, 2, 3, 4), 7, 0xB000 + 4 * JOB
SUMMED, PUSH = 0x55, 0x54
MESSAGE, HEAD = "!BBHIHBBII", "!IIIHH"
PATH, FORWARD = "MlfabricIngress.aggregation.", "MlfabricIngress.forwarding."
COUNTERS = {
    name: PATH + counter
    for name, counter in {
        "new": "push_new",
        "duplicate": "push_duplicate",
        "stale": "push_stale",
        "refused": "push_refused",
        "complete": "chunk_complete",
    }.items()
}


@dataclass(frozen=True)
class Push:
    port: int
    group: int
    members: int
    values: tuple[int, ...]
    chunk: int = 0
    cell: int = FIRST_CELL
    present: int | None = None
    kind: int = SUMMED
    version: int = 1
    job: int = JOB

    @property
    def bit(self) -> int:
        return 1 << WORKERS.index(self.port)


def frame(push: Push, checked: bool = True, padding: bytes = b"") -> bytes:
    present = push.bit if push.present is None else push.present
    body = struct.pack(MESSAGE, push.version, push.kind, push.job, 1, 1, 0, 0, 77, 0)
    body += struct.pack(HEAD, push.group, push.members, present, push.cell, push.chunk)
    body += struct.pack(f"!{LANES}I", *push.values) + padding
    source, to = worker_address(push.port), worker_address(SERVER)
    head = [48865 + JOB, SERVER_PORT, 8 + len(body)]
    check = udp_checksum(source, to, struct.pack(UDP, *head, 0) + body) if checked else 0
    ethernet = struct.pack(ETHERNET, worker_mac(SERVER), worker_mac(push.port), 0x0800)
    return ethernet + ipv4(struct.pack(UDP, *head, check) + body, source, to)


def read(data: bytes) -> tuple[int, int, int, tuple[int, ...]]:
    """Group, members, present, values; asserts that UDP's checksum is right."""
    datagram, addresses = data[34:], (data[26:30], data[30:34])
    assert udp_checksum(*addresses, datagram) in (0, 0xFFFF)
    group, members, present, _, _ = struct.unpack_from(HEAD, datagram, 28)
    return group, members, present, struct.unpack_from(f"!{LANES}I", datagram, 44)


@pytest.fixture(scope="session")
def mlfabric(tmp_path_factory: pytest.TempPathFactory) -> Path:
    json = tmp_path_factory.mktemp("mlfabric") / "mlfabric.json"
    command = [sys.executable, "-m", "agglab.compiler", "p4/mlfabric.p4", "-o", str(json)]
    subprocess.run([*command, f"-DLANES={LANES}", f"-DSLOTS={SLOTS}"], cwd=ROOT, check=True)
    return json


@pytest.fixture
def pipeline(mlfabric: Path) -> Pipeline:
    made = Pipeline.load(mlfabric)
    for rank, port in enumerate(WORKERS):
        addresses = (worker_address(port), worker_address(SERVER))
        key = [Exact(port), *(Exact(int.from_bytes(each, "big")) for each in addresses)]
        key += [Exact(SERVER_PORT), Exact(JOB)]
        made.table_add(
            PATH + "members", key, PATH + "contribute", [INDEX, 1 << rank, FIRST_CELL, CELLS]
        )
        owner = [int.from_bytes(worker_address(port), "big")]
        made.table_add(FORWARD + "sources", [Exact(port)], FORWARD + "belong_to", owner)
    to_server = [Exact(int.from_bytes(worker_mac(SERVER), "big"))]
    made.table_add(FORWARD + "macs", to_server, FORWARD + "forward", [SERVER])
    return made


def counted(pipeline: Pipeline) -> dict[str, int]:
    return {name: pipeline.counter_read(at, INDEX)[0] for name, at in COUNTERS.items()}


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
    assert pipeline.counter_read(FORWARD + "forged", 0)[0] == 1


@pytest.mark.parametrize(
    "other", [Push(1, 9, 1, ONES, kind=PUSH), Push(1, 9, 0b11, ONES, job=JOB + 1)]
)
def test_what_is_not_to_be_summed_here_is_forwarded(pipeline: Pipeline, other: Push) -> None:
    assert sent(pipeline, other) == [(SERVER, frame(other))]
    assert sum(counted(pipeline).values()) == 0


def test_a_longer_packet_is_forwarded_unread(pipeline: Pipeline) -> None:
    data = frame(Push(1, 9, 0b11, ONES), padding=b"\0\0")
    assert pipeline.process(1, data, 0) == [(SERVER, data)]


@dataclass
class Cell:
    """What the program's registers hold, by the rules of the page."""

    group: int = 0
    chunk: int = 0
    members: int = 0
    values: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def take(self, push: Push) -> tuple[str, tuple[int, ...] | None]:
        """What is counted, and the sum if one leaves."""
        ahead = (push.group - self.group) % 2**32
        if self.values and ahead >= 2**31:
            return "stale", None
        if not self.values or ahead or push.chunk != self.chunk:
            self.group, self.chunk, self.members = push.group, push.chunk, push.members
            self.values = {}
        elif push.members != self.members:
            return "refused", None
        if push.bit in self.values:
            return "duplicate", None
        self.values[push.bit] = push.values
        if sum(self.values) != self.members:
            return "new", None
        columns = zip(*self.values.values(), strict=True)
        return "complete", tuple(sum(column) % 2**32 for column in columns)


@pytest.mark.parametrize("seed", range(8))
def test_random_pushes(pipeline: Pipeline, seed: int) -> None:
    chance = random.Random(seed)
    cells = {cell: Cell() for cell in range(FIRST_CELL, FIRST_CELL + CELLS)}
    base = chance.choice((1, 2**31 - 2, 2**32 - 2))
    for _ in range(300):
        push = Push(
            chance.choice(WORKERS),
            (base + chance.randrange(4)) % 2**32,
            chance.randrange(1, 16),
            tuple(chance.randrange(2**32) for _ in range(LANES)),
            chunk=chance.randrange(2),
            cell=chance.choice(list(cells)),
        )
        push = replace(push, members=push.members | push.bit)
        before = counted(pipeline)
        what, total = cells[push.cell].take(push)
        answers = sent(pipeline, push)
        after = counted(pipeline)
        changed = {name for name in after if after[name] != before[name]}
        assert changed == ({"new", "complete"} if what == "complete" else {what})
        if total is None:
            assert answers == []
        else:
            ((port, data),) = answers
            assert port == SERVER
            assert read(data) == (push.group, push.members, push.members, total)
