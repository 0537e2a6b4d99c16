"""Frames that leave as one buffer: cut again they are the frames they were, bit for bit; whatever
would not be stays single. Under the sanitizers."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

HERE = Path(__file__).parent
IO = HERE.parents[2] / "p4native/switch/io"
FRAME_MAX = 9014
ETHER = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")
MOST = 64


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("buffers") / "driver"
    flags = "-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -g -fsanitize=address,undefined"
    sources = [str(HERE / "buffers_driver.c"), str(IO / "buffers.c"), str(IO / "offload.c")]
    flags += f" -I{IO.parent / 'runtime'}"
    command = ["cc", *flags.split(), "-fno-sanitize-recover=all", "-o", str(target), *sources]
    subprocess.run(command, check=True)
    return target


def cut(driver: Path, frames: Sequence[bytes], frame_max: int = FRAME_MAX) -> list[list[bytes]]:
    """The packets of each buffer that the frames leave as; checks what the buffer counts for."""
    text = b"%d\n" % frame_max + b"".join(b"%d\n" % len(frame) + frame for frame in frames)
    done = subprocess.run([driver], input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found: list[list[bytes]] = []
    for part in done.stdout.decode().split("buffer ")[1:]:
        size, *packets = part.split()
        found.append([bytes.fromhex(packet) for packet in packets])
        assert sum(map(len, found[-1])) == int(size)
    return found


def datagram(number: int, payload: bytes, first_id: int = 65530, **changed: object) -> bytes:
    """Frame `number` of a flow, whose identifications wrap."""
    fields = {"src": "10.0.0.1", "dst": "10.0.0.2", "tos": 2, "flags": "DF", **changed}
    fields.setdefault("id", (first_id + number) % 65536)
    return bytes(ETHER / IP(**fields) / UDP(sport=7, dport=9) / Raw(payload))


def run(count: int, size: int, seed: int = 1) -> list[bytes]:
    chance = random.Random(seed)
    return [datagram(n, chance.randbytes(size)) for n in range(count)]


FILLING = 5039
"""A size of which 13 payloads with their headers make the longest IPv4 packet, 65535 bytes."""


@pytest.mark.parametrize("size", [1, 2, 63, 1024, 1471, FILLING, 8972])
@pytest.mark.parametrize("count", [1, 2, 7, 64, 200])
def test_equal_datagrams_of_a_flow_leave_together(driver: Path, count: int, size: int) -> None:
    frames = run(count, size)
    buffers = cut(driver, frames)
    assert [packet for buffer in buffers for packet in buffer] == frames
    fit = min(MOST, (65535 - 28) // size)
    assert [len(buffer) for buffer in buffers] == [
        min(fit, count - first) for first in range(0, count, fit)
    ]


def test_a_buffer_may_fill_the_longest_ipv4_packet(driver: Path) -> None:
    assert 20 + 8 + 13 * FILLING == 65535
    assert [len(buffer) for buffer in cut(driver, run(14, FILLING))] == [13, 1]


def test_a_shorter_datagram_is_the_last_of_its_buffer(driver: Path) -> None:
    sizes = [100, 100, 99, 100, 100, 101, 101, 1]
    frames = [datagram(n, bytes(range(size))) for n, size in enumerate(sizes)]
    buffers = cut(driver, frames)
    assert [packet for buffer in buffers for packet in buffer] == frames
    assert [len(buffer) for buffer in buffers] == [3, 2, 3]


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda frame: frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :]


def without_checksum(frame: bytes) -> bytes:
    return frame[:40] + bytes(2) + frame[42:]


def without_checksum_where_it_would_be_zero(frame: bytes) -> bytes:
    """Its words add up to what they are to add up to, though it says that nobody added them."""
    said, word = (int.from_bytes(frame[at : at + 2]) for at in (40, 42))
    added = said + word
    return frame[:40] + bytes(2) + ((added & 0xFFFF) + (added >> 16)).to_bytes(2) + frame[44:]


def rebuilt(**fields: object) -> Callable[[bytes], bytes]:
    """Another value in the IPv4 header, whose checksum is right."""

    def change(frame: bytes) -> bytes:
        packet = Ether(frame)
        for name, value in fields.items():
            setattr(packet[IP], name, value)
        del packet[IP].chksum, packet[UDP].chksum
        return bytes(packet)

    return change


def with_udp(**fields: object) -> Callable[[bytes], bytes]:
    def change(frame: bytes) -> bytes:
        packet = Ether(frame)
        for name, value in fields.items():
            setattr(packet[UDP], name, value)
        del packet[UDP].chksum
        return bytes(packet)

    return change


DIFFERENT = {
    "destination MAC": flipped(5),
    "UDP checksum": flipped(41),
    "payload, so that its checksum is wrong": flipped(60),
    "IPv4 checksum": flipped(25),
    "no UDP checksum": without_checksum,
    "no UDP checksum, which would be 0": without_checksum_where_it_would_be_zero,
    "identification": rebuilt(id=7),
    "time to live": rebuilt(ttl=3),
    "type of service": rebuilt(tos=3),
    "may be fragmented": rebuilt(flags=0),
    "a fragment": rebuilt(flags="MF"),
    "another fragment": rebuilt(frag=1),
    "source address": rebuilt(src="10.0.0.3"),
    "options": rebuilt(options=[IPOption_NOP()] * 4, ihl=None, len=None),
    "protocol": rebuilt(proto=6),
    "source port": with_udp(sport=8),
    "destination port": with_udp(dport=8),
    "padding": lambda frame: frame + b"\0",
    "cut off": lambda frame: frame[:41],
    "nearly nothing": lambda frame: frame[:14],
}


@pytest.mark.parametrize("change", DIFFERENT.values(), ids=DIFFERENT)
def test_a_frame_that_differs_stays_single(driver: Path, change: Callable[[bytes], bytes]) -> None:
    frames = run(9, 200)
    frames[4] = change(frames[4])
    assert frames[4] != run(9, 200)[4]
    buffers = cut(driver, frames)
    assert [packet for buffer in buffers for packet in buffer] == frames
    assert [len(buffer) for buffer in buffers] == [4, 1, 4]


@pytest.mark.parametrize(
    "layers",
    [ETHER / Dot1Q(vlan=3) / IP(dst="10.0.0.2"), ETHER / IPv6(dst="fd00::2")],
    ids=["vlan", "v6"],
)
def test_other_networks_stay_single(driver: Path, layers: Packet) -> None:
    frames = [bytes(layers / UDP(sport=7, dport=9) / Raw(bytes(100)))] * 3
    assert cut(driver, frames) == [[frame] for frame in frames]


def test_frames_too_long_for_the_way_out_stay_single(driver: Path) -> None:
    frames = run(5, 1473)
    assert cut(driver, frames, 1514) == [[frame] for frame in frames]
    assert cut(driver, frames, 1515) == [frames]
    assert cut(driver, frames, 0) == [[frame] for frame in frames]


@pytest.mark.long
def test_garbage_leaves_as_it_came(driver: Path) -> None:
    chance = random.Random(5)
    for seed in range(60):
        frames = run(40, chance.choice([3, 100, 700]), seed)
        for n in range(len(frames)):
            if chance.random() < 0.3:
                broken = bytearray(frames[n][: chance.randrange(1, len(frames[n]) + 1)])
                for _ in range(chance.randrange(3)):
                    broken[chance.randrange(len(broken))] = chance.randrange(256)
                frames[n] = bytes(broken)
        assert [packet for buffer in cut(driver, frames) for packet in buffer] == frames
