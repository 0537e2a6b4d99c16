"""labs/course/packets.formats: the packets of the exercises, by the names of their fields."""

from __future__ import annotations

from pathlib import Path

from p4native.stf import Expect, Packet, parse, parse_formats

LABS = Path(__file__).resolve().parents[3] / "labs"
FORMATS = parse_formats((LABS / "course/packets.formats").read_text())
UDP_CHECKSUM = slice(40, 42)
"""The exercises' packets have none, and those of formats have one."""


def without_checksum(frame: bytes) -> bytes:
    return frame[: UDP_CHECKSUM.start] + bytes(2) + frame[UDP_CHECKSUM.stop :]


def test_every_packet_of_an_exercise_can_be_written_by_its_fields() -> None:
    commands = parse((LABS / "03-bitmap/packets/two-workers.stf").read_text())
    written = parse(
        "contribution port=1 worker=0 slot=0 tag=0 values=1,2,3,4\n"
        "contribution port=2 worker=1 slot=0 tag=0 values=10,20,30,40\n"
        "expect 1 result slot=0 tag=0 values=11,22,33,44 $\n"
        "expect 2 result slot=0 tag=0 values=11,22,33,44 $\n",
        FORMATS,
    )
    sent = [c.data for c in commands if isinstance(c, Packet)]
    assert sent == [without_checksum(c.data) for c in written if isinstance(c, Packet)]
    awaited = [(c.port, c.nibbles, c.exact) for c in commands if isinstance(c, Expect)]
    assert awaited == [(c.port, c.nibbles, c.exact) for c in written if isinstance(c, Expect)]
