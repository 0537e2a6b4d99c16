"""A host in virtual time hears what a kernel's socket hears, frame by frame."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from reception_frames import AGGREGATOR, HOST, MARKER, Case, cases, random_cases

from agglab.testbed.virtual.reception import Datagram, NetworkError, Reception, WrongSum

LISTENER = Path(__file__).with_name("listener.py")
Heard = tuple[list[str], int, int]
"""The datagrams, the errors, and how many datagrams were dropped at the socket."""
AT_RANDOM = 2000  # times NUMBERS fits the 16 bits of a packet's number


def kernel(asked: list[Case]) -> list[Heard]:
    """What the kernel's socket hears, case by case."""
    text = "".join("".join(one.hex() + "\n" for one in case) + "\n" for case in asked)
    command = ["unshare", "--net", sys.executable, str(LISTENER), MARKER.hex()]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def virtual(asked: list[Case]) -> list[Heard]:
    """What a virtual host's socket hears."""
    host = Reception("02:00:00:00:00:01", "10.0.0.1")
    return [_heard([host.receive(frame, 0) for frame in case]) for case in asked]


def _heard(came: list[Datagram | WrongSum | NetworkError | None]) -> Heard:
    datagrams = [
        one.payload.hex()
        for one in came
        if isinstance(one, Datagram)
        and (one.source, one.ports) == (AGGREGATOR.ip, (AGGREGATOR.port, HOST.port))
    ]
    errors = sum(
        isinstance(one, NetworkError)
        and (one.target, one.ports) == (AGGREGATOR.ip, (HOST.port, AGGREGATOR.port))
        for one in came
    )
    drops = sum(
        isinstance(one, WrongSum)
        and (one.source, one.ports) == (AGGREGATOR.ip, (AGGREGATOR.port, HOST.port))
        for one in came
    )
    return datagrams, errors, drops


@pytest.mark.root
def test_each_kind_of_frame_is_heard_as_by_the_kernel() -> None:
    named = cases()
    real, ours = kernel(list(named.values())), virtual(list(named.values()))
    assert dict(zip(named, ours, strict=True)) == dict(zip(named, real, strict=True))
    heard = dict(zip(named, real, strict=True))
    for name in ("plain", "VLAN", "4 tags", "NOP", "fragments", "broadcast MAC"):
        assert len(heard[name][0]) == 1, name
    assert heard["ICMP 3/4"] == ([], 1, 0)
    counted = {name: drops for name, (_, _, drops) in heard.items() if drops}
    assert set(counted) == {f"wrong UDP checksum of {size} bytes" for size in (77, 1400)}


@pytest.mark.long
@pytest.mark.root
def test_frames_at_random_are_heard_as_by_the_kernel() -> None:
    asked = list(random_cases(3, AT_RANDOM))
    real, ours = kernel(asked), virtual(asked)
    for case, expected, got in zip(asked, real, ours, strict=True):
        assert got == expected, [one.hex() for one in case]
    assert sum(len(datagrams) for datagrams, _, _ in real) > AT_RANDOM // 8
