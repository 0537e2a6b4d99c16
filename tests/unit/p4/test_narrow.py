"""p4/switchml_narrow.p4 takes contributions of few bits and sums them in twice as many:
docs/numbers.md, "Fewer bits on the wire"."""

from __future__ import annotations

import itertools
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from frames import AGGREGATOR, AGGREGATOR_MAC, ipv4, worker_address, worker_mac
from schedules import SLOTS, two_jobs
from tables import write_entries

from p4native.switch import Pipeline

sys.path.append(str(Path(__file__).parents[1] / "hosts"))

import narrow_model

ROOT = Path(__file__).resolve().parents[3]
COMPILE = [sys.executable, "-m", "p4native.compiler", "p4/switchml_narrow.p4"]
INT32, SCALED, OPENING, HALF, RESULT = 0, 1, 2, 3, 0x80
KINDS = {16: 4, 8: 5, 4: 6}
PORTS = {2: (7, (2, 3)), 3: (1, (1, 2, 3))}
"""By the number of workers: a job of schedules.JOBS, and the ports of its workers."""
HEADERS = 14 + 20 + 8 + 12
LANES = (2, 34, 66, 128)

Program = Callable[[int, int], Pipeline]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """program(bits, lanes) is the program with the entries of two jobs."""
    folder = tmp_path_factory.mktemp("narrow")

    def make(bits: int, lanes: int) -> Pipeline:
        json = folder / f"{bits}-{lanes}.json"
        if not json.exists():
            sizes = [f"-DLANES={lanes}", f"-DSLOTS={SLOTS}", f"-DWIRE_BITS={bits}"]
            subprocess.run([*COMPILE, "-o", str(json), *sizes], cwd=ROOT, check=True)
        pipeline = Pipeline.load(json)
        write_entries(pipeline, two_jobs())
        return pipeline

    return make


def checksum(data: bytes) -> int:
    words = struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def udp_sum(source: bytes, target: bytes, udp: bytes) -> int:
    pseudo = source + target + struct.pack("!BBH", 0, 17, len(udp))
    return checksum(pseudo + udp) or 0xFFFF


def frame(
    port: int, kind: int, body: bytes, tag: int = 1, job: int = 1, exponent: int = 9
) -> bytes:
    """With a UDP checksum."""
    payload = struct.pack("!BBHHBBI", 1, kind, job, 0, exponent, 0, tag) + body
    udp = struct.pack("!HHHH", 48865 + job, 48864, 8 + len(payload), 0) + payload
    source = worker_address(port)
    udp = udp[:6] + struct.pack("!H", udp_sum(source, AGGREGATOR, udp)) + udp[8:]
    return AGGREGATOR_MAC + worker_mac(port) + b"\x08\x00" + ipv4(udp, source, AGGREGATOR)


def drawn(chance: Random, lanes: int, bits: int, workers: int) -> list[bytes]:
    """What each worker sends: any values, or only the largest."""
    most = 2 ** (bits - 1) - 1
    size = narrow_model.values_of(lanes, bits)
    if chance.random() < 0.3:
        return [narrow_model.contribution([most] * size, lanes, bits)] * workers
    return [
        narrow_model.contribution(
            [chance.randint(-most, most) for _ in range(chance.randint(1, size))], lanes, bits
        )
        for _ in range(workers)
    ]


def answered(pipeline: Pipeline, kind: int, bodies: Sequence[bytes], tag: int) -> bytes:
    """The body that all workers of the job get, in a packet that is right in all else."""
    job, ports = PORTS[len(bodies)]
    for number, (port, body) in enumerate(zip(ports, bodies, strict=True)):
        out = pipeline.process(port, frame(port, kind, body, tag, job, exponent=9 + number))
        assert bool(out) == (number == len(ports) - 1)
    assert [port for port, _ in out] == list(ports)
    for port, answer in out:
        assert len(answer) == HEADERS + 2 * len(bodies[0])
        header, udp = answer[14:34], answer[34:]
        assert struct.unpack("!H", header[2:4])[0] == len(answer) - 14
        assert struct.unpack("!H", udp[4:6])[0] == len(udp)
        assert checksum(header) == 0
        assert udp_sum(header[12:16], header[16:20], udp) in (0, 0xFFFF)
        version, got, _, _, exponent, _, number = struct.unpack_from("!BBHHBBI", udp, 8)
        assert (version, got, number) == (1, SCALED | RESULT, tag)
        assert exponent == 8 + len(ports) and header[16:20] == worker_address(port)
    got_bodies = {answer[HEADERS:] for _, answer in out}
    assert len(got_bodies) == 1
    return got_bodies.pop()


@pytest.mark.long(but=["16-2"])
@pytest.mark.parametrize(("bits", "lanes"), list(itertools.product(KINDS, LANES)))
def test_sums(program: Program, bits: int, lanes: int) -> None:
    pipeline, chance = program(bits, lanes), Random(f"{bits} {lanes}")
    for tag in range(1, 41):
        bodies = drawn(chance, lanes, bits, chance.choice((2, 3)))
        wanted = narrow_model.summed(bodies, lanes, bits)
        assert answered(pipeline, KINDS[bits], bodies, tag) == wanted


@pytest.mark.parametrize("bits", KINDS)
def test_a_contribution_that_is_sent_again_gets_the_whole_sum(program: Program, bits: int) -> None:
    pipeline, lanes = program(bits, 34), 34
    bodies = drawn(Random(bits), lanes, bits, 3)
    wanted = answered(pipeline, KINDS[bits], bodies, 5)
    for port, body in zip((1, 2, 3), bodies, strict=True):
        [(back, answer)] = pipeline.process(port, frame(port, KINDS[bits], body, 5))
        assert back == port and answer[HEADERS:] == wanted


@pytest.mark.parametrize("bits", KINDS)
def test_full_and_narrow_contributions_have_one_sum(program: Program, bits: int) -> None:
    """A child that is a switch sends its partial sum in full width."""
    pipeline, lanes = program(bits, 34), 34
    one, two, three = drawn(Random(bits + 1), lanes, bits, 3)
    below = narrow_model.summed([one, two], lanes, bits)
    assert not pipeline.process(1, frame(1, KINDS[bits], three))
    assert not pipeline.process(2, frame(2, SCALED, below))
    nothing = bytes(4 * lanes)
    out = pipeline.process(3, frame(3, SCALED, nothing))
    wanted = narrow_model.summed([one, two, three], lanes, bits)
    assert {answer[HEADERS:] for _, answer in out} == {wanted}


@pytest.mark.long(but=["16"])
@pytest.mark.parametrize("bits", KINDS)
def test_what_no_worker_sends_is_refused(program: Program, bits: int) -> None:
    pipeline, lanes = program(bits, 4), 4
    good = bytes([1] * 2 * lanes)
    others = [kind for kind in (*KINDS.values(), HALF) if kind != KINDS[bits]]
    wrong = [
        *(frame(1, kind, body) for kind in others for body in (good, good * 2)),
        *(frame(1, KINDS[bits], body) for body in (good[:-1], good + b"\0", good * 2, b"")),
        frame(1, KINDS[bits] | RESULT, good),
        frame(1, 7, good),
        frame(1, 127, good * 2),
        frame(1, SCALED, good),
        frame(1, INT32, good),
    ]
    for each in wrong:
        assert not pipeline.process(1, each)
    refused = pipeline.counters.read("SwitchmlIngress.aggregation.contribution_refused", 0)
    assert refused[0] == len(wrong), refused
    wanted = narrow_model.summed([good] * 3, lanes, bits)
    assert answered(pipeline, KINDS[bits], [good] * 3, 1) == wanted


def test_a_wrong_checksum_is_seen(program: Program) -> None:
    pipeline, body = program(8, 34), bytes(range(68))
    sent = frame(1, KINDS[8], body)
    for at in (len(sent) - 1, HEADERS, HEADERS + 33):
        bad = bytearray(sent)
        bad[at] ^= 4
        assert not pipeline.process(1, bytes(bad))
    assert pipeline.counters.read("SwitchmlIngress.aggregation.contribution_refused", 0)[0] == 3


@pytest.mark.parametrize(("bits", "lanes"), [(8, 3), (5, 4), (32, 4)])
def test_programs_that_cannot_be(tmp_path: Path, bits: int, lanes: int) -> None:
    sizes = [f"-DLANES={lanes}", f"-DSLOTS={SLOTS}", f"-DWIRE_BITS={bits}"]
    command = [*COMPILE, "-o", str(tmp_path / "x.json"), *sizes]
    done = subprocess.run(command, cwd=ROOT, capture_output=True)
    assert done.returncode == 1 and b"must be" in done.stderr
