"""Sums of floats of 16 bits by p4/switchml_float16.p4 and p4/switchml_bfloat16.p4, and what they
have to be by whole numbers alone.

python tests/unit/p4/halves.py bfloat16 random 10_000_000    # pairs of halves, of any bits
python tests/unit/p4/halves.py float16 every 0 65536         # every second half with these firsts
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from frames import AGGREGATOR, AGGREGATOR_MAC, ipv4, worker_address, worker_mac
from numpy.typing import NDArray
from schedules import SLOTS, two_jobs
from tables import Slots, summing, write_entries

from agglab.hosts.bfloat16 import BFLOAT16, narrowed, widened
from p4native.switch import Pipeline

ROOT = Path(__file__).resolve().parents[3]
LANES = 6
VALUES = 2 * LANES
RESULT = 0x80
MOST = Slots(9, 6, range(1, 65), SLOTS - 1, 1, group=20)
"""A job of as many workers as a switch can have, beside those of schedules.JOBS."""
PORTS = {2: (7, (2, 3)), 3: (1, (1, 2, 3)), 64: (MOST.job, MOST.children)}
"""By the number of workers: a job, and the ports of its workers."""
HEADERS = 14 + 20 + 8 + 12
SIGN = 0x8000
Halves = NDArray[np.uint16]


@dataclass(frozen=True)
class Format:
    """A type of 16 bits. kind: of its packets. fraction_bits: of a value. nan: the only one that
    switches send. add: adds pairs as IEEE 754 does."""

    name: str
    kind: int
    fraction_bits: int
    nan: int
    add: Callable[[Halves, Halves], Halves]

    @property
    def fields(self) -> int:
        """How many exponent fields there are."""
        return 1 << (15 - self.fraction_bits)

    @property
    def infinity(self) -> int:
        return (self.fields - 1) << self.fraction_bits

    def units(self, half: int) -> int:
        """A finite half as a number of smallest subnormals."""
        field = half >> self.fraction_bits & (self.fields - 1)
        fraction = half & ((1 << self.fraction_bits) - 1)
        one = 1 << self.fraction_bits
        magnitude = fraction if field == 0 else (fraction + one) * 2 ** (field - 1)
        return -magnitude if half & SIGN else magnitude

    def ieee_sum(self, a: Halves, b: Halves) -> Halves:
        with np.errstate(invalid="ignore", over="ignore"):
            bits = self.add(a, b)
        bits[(bits & ~np.uint16(SIGN)) > self.infinity] = self.nan
        return bits

    def exact_sum(self, halves: Sequence[int]) -> int:
        """The half nearest to the sum of any number of halves, by whole numbers of units."""
        magnitudes = [half & 0x7FFF for half in halves]
        infinite = {half & SIGN for half in halves if half & 0x7FFF == self.infinity}
        if any(magnitude > self.infinity for magnitude in magnitudes) or len(infinite) == 2:
            return self.nan
        if infinite:
            return infinite.pop() | self.infinity
        if all(half == SIGN for half in halves):
            return SIGN
        total = sum(self.units(half) for half in halves)
        return (SIGN if total < 0 else 0) | self._nearest(abs(total))

    def _nearest(self, units: int) -> int:
        """Positive halves in order are the numbers 0, 1, ...: the one that is nearest, ties to
        even."""
        low, high = 0, self.infinity
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.units(middle) <= units else (low, middle)
        below, above = self.units(low), self.units(high)  # as if the numbers went on at Inf
        if units - below == above - units:
            return low + low % 2
        return low if units - below < above - units else high


def _add_float16(a: Halves, b: Halves) -> Halves:
    return (a.view(np.float16) + b.view(np.float16)).view(np.uint16)


def _add_bfloat16(a: Halves, b: Halves) -> Halves:
    """By float32, whose 24 bits are more than twice 8: rounding twice changes nothing."""
    return narrowed(widened(a.view(BFLOAT16)) + widened(b.view(BFLOAT16))).view(np.uint16)


FORMATS = {
    "float16": Format("float16", 3, 10, 0x7E00, _add_float16),
    "bfloat16": Format("bfloat16", 7, 7, 0x7FC0, _add_bfloat16),
}


@dataclass(frozen=True)
class Switch:
    """A program that sums halves of one format."""

    format: Format
    pipeline: Pipeline


def compiled(folder: Path, name: str) -> Path:
    json = folder / f"{name}.json"
    program = f"p4/switchml_{name}.p4"
    command = [sys.executable, "-m", "p4native.compiler", program, "-o", str(json)]
    sizes = [f"-DLANES={LANES}", f"-DSLOTS={SLOTS}"]
    subprocess.run([*command, *sizes], cwd=ROOT, check=True)
    return json


def programmed(folder: Path, name: str) -> Switch:
    pipeline = Pipeline.load(compiled(folder, name))
    write_entries(pipeline, two_jobs() + summing(MOST))
    return Switch(FORMATS[name], pipeline)


def frame(port: int, job: int, tag: int, halves: Halves, kind: int) -> bytes:
    """Without a UDP checksum (0: none was computed)."""
    header = struct.pack("!BBHHBBI", 1, kind, job, 0, 0, 0, tag)
    body = header + halves.astype(">u2").tobytes()
    udp = struct.pack("!HHHH", 48865 + job, 48864, 8 + len(body), 0)
    ethernet = AGGREGATOR_MAC + worker_mac(port) + b"\x08\x00"
    return ethernet + ipv4(udp + body, worker_address(port), AGGREGATOR)


def sums(switch: Switch, inputs: Sequence[Halves], first_tag: int = 1) -> Iterator[Halves]:
    """What all workers get for each packet of VALUES halves; inputs: one array a worker."""
    job, ports = PORTS[len(inputs)]
    for number in range(inputs[0].size // VALUES):
        part = slice(number * VALUES, (number + 1) * VALUES)
        for port, values in zip(ports, inputs, strict=True):
            sent = frame(port, job, first_tag + number, values[part], switch.format.kind)
            out = switch.pipeline.process(port, sent)
        assert [port for port, _ in out] == list(ports)
        got = {answer[HEADERS:] for _, answer in out}
        assert len(got) == 1
        yield np.frombuffer(got.pop(), ">u2").astype(np.uint16)


def check(switch: Switch, a: Halves, b: Halves, first_tag: int = 1) -> int:
    """Returns the first tag that no packet had. The first pairs fill the last packet, too. Raises
    AssertionError, naming the first pair that the switch does not add as IEEE 754."""
    size = -(-a.size // VALUES) * VALUES
    a, b = np.resize(a, size), np.resize(b, size)
    got = np.concatenate(list(sums(switch, (a, b), first_tag)))
    wrong = np.flatnonzero(got != switch.format.ieee_sum(a, b))
    if wrong.size:
        at = wrong[0]
        raise AssertionError(f"{a[at]:#06x} + {b[at]:#06x} is not {got[at]:#06x}")
    return (first_tag + size // VALUES) % 2**32


def run(name: str, what: str, *numbers: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        switch = programmed(Path(folder), name)
    tag, every = 1, np.arange(65536, dtype=np.uint16)
    if what == "every":
        for first in range(*(int(number, 0) for number in numbers)):
            tag = check(switch, np.full(65536, first, np.uint16), every, tag)
        return
    chance = np.random.default_rng(1)
    for _ in range(-(-int(numbers[0]) // 65536)):
        a, b = chance.integers(0, 65536, (2, 65536), np.uint16)
        tag = check(switch, a, b, tag)


if __name__ == "__main__":
    run(*sys.argv[1:])
