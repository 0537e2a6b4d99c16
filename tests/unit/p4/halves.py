"""Sums of halves by p4/switchml.p4, and what they have to be by whole numbers alone.

python tests/unit/p4/halves.py random 10_000_000    # pairs of halves, of any bits
python tests/unit/p4/halves.py every 0 65536        # every second half with these first ones
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from frames import AGGREGATOR, AGGREGATOR_MAC, ipv4, worker_address, worker_mac
from numpy.typing import NDArray
from schedules import SLOTS, two_jobs
from tables import write_entries

from agglab.switch import Pipeline

ROOT = Path(__file__).resolve().parents[3]
LANES = 8
VALUES = 2 * LANES
HALF, RESULT = 3, 0x80
PORTS = {2: (7, (2, 3)), 3: (1, (1, 2, 3))}
"""By the number of workers: a job of schedules.JOBS, and the ports of its workers."""
HEADERS = 14 + 20 + 8 + 12
NAN, INFINITY, SIGN = 0x7E00, 0x7C00, 0x8000
Halves = NDArray[np.uint16]


def compiled(folder: Path) -> Path:
    json = folder / "half.json"
    command = [sys.executable, "-m", "agglab.compiler", "p4/switchml.p4", "-o", str(json)]
    sizes = [f"-DLANES={LANES}", f"-DSLOTS={SLOTS}", "-DFLOAT16=1"]
    subprocess.run([*command, *sizes], cwd=ROOT, check=True)
    return json


def programmed(json: Path) -> Pipeline:
    pipeline = Pipeline.load(json)
    write_entries(pipeline, two_jobs())
    return pipeline


def frame(port: int, job: int, tag: int, halves: Halves, kind: int = HALF) -> bytes:
    """Without a UDP checksum (0: none was computed)."""
    header = struct.pack("!BBHHBBI", 1, kind, job, 0, 0, 0, tag)
    body = header + halves.astype(">u2").tobytes()
    udp = struct.pack("!HHHH", 48865 + job, 48864, 8 + len(body), 0)
    ethernet = AGGREGATOR_MAC + worker_mac(port) + b"\x08\x00"
    return ethernet + ipv4(udp + body, worker_address(port), AGGREGATOR)


def sums(pipeline: Pipeline, inputs: Sequence[Halves], first_tag: int = 1) -> Iterator[Halves]:
    """What all workers get for each packet of VALUES halves; inputs: one array a worker."""
    job, ports = PORTS[len(inputs)]
    for number in range(inputs[0].size // VALUES):
        part = slice(number * VALUES, (number + 1) * VALUES)
        for port, values in zip(ports, inputs, strict=True):
            out = pipeline.process(port, frame(port, job, first_tag + number, values[part]))
        assert [port for port, _ in out] == list(ports)
        got = {answer[HEADERS:] for _, answer in out}
        assert len(got) == 1
        yield np.frombuffer(got.pop(), ">u2").astype(np.uint16)


def ieee_sum(a: Halves, b: Halves) -> Halves:
    """NumPy's addition of float16, its NaN made the one that switches send."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = a.view(np.float16) + b.view(np.float16)
    bits: Halves = total.view(np.uint16).copy()
    bits[np.isnan(total)] = NAN
    return bits


def exact_sum(halves: Sequence[int]) -> int:
    """The half nearest to the sum of any number of halves, by whole numbers of 2^-24."""
    magnitudes = [half & 0x7FFF for half in halves]
    infinite = {half & SIGN for half in halves if half & 0x7FFF == INFINITY}
    if any(magnitude > INFINITY for magnitude in magnitudes) or len(infinite) == 2:
        return NAN
    if infinite:
        return infinite.pop() | INFINITY
    if all(half == SIGN for half in halves):
        return SIGN
    total = sum(_units(half) for half in halves)
    return (SIGN if total < 0 else 0) | _nearest(abs(total))


def _units(half: int) -> int:
    field, fraction = half >> 10 & 31, half & 1023
    magnitude = fraction if field == 0 else (fraction + 1024) * 2 ** (field - 1)
    return -magnitude if half & SIGN else magnitude


def _nearest(units: int) -> int:
    """Positive halves in order are the numbers 0, 1, ...: the one that is nearest, ties to even."""
    low, high = 0, INFINITY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _units(middle) <= units else (low, middle)
    above = 65536 << 24 if high == INFINITY else _units(high)  # where Inf would go on
    below = _units(low)
    if units - below == above - units:
        return low + low % 2
    return low if units - below < above - units else high


def check(pipeline: Pipeline, a: Halves, b: Halves, first_tag: int = 1) -> None:
    """Raises AssertionError, naming the first pair that the switch does not add as IEEE 754."""
    got = np.concatenate(list(sums(pipeline, (a, b), first_tag)))
    wrong = np.flatnonzero(got != ieee_sum(a, b))
    if wrong.size:
        at = wrong[0]
        raise AssertionError(f"{a[at]:#06x} + {b[at]:#06x} is not {got[at]:#06x}")


def _main(what: str, *numbers: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pipeline = programmed(compiled(Path(folder)))
    tag, every = 1, np.arange(65536, dtype=np.uint16)
    if what == "every":
        for first in range(*map(int, numbers)):
            check(pipeline, np.full(65536, first, np.uint16), every, tag)
            tag = (tag + 65536 // VALUES) % 2**32
        return
    chance = np.random.default_rng(1)
    for _ in range(-(-int(numbers[0]) // 65536)):
        a, b = chance.integers(0, 65536, (2, 65536), np.uint16)
        check(pipeline, a, b, tag)
        tag += 65536 // VALUES


if __name__ == "__main__":
    _main(*sys.argv[1:])
