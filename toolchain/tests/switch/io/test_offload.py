"""Checksums and segments made in software, compared with Scapy's; garbage under the sanitizers."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
from scapy.layers.l2 import GRE, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

HERE = Path(__file__).parent
IO = HERE.parents[2] / "p4native/switch/io"
NEEDS_CSUM, TCPV4, UDP_FRAGMENTS, TCPV6, UDP_L4, ECN = 1, 1, 3, 4, 5, 0x80


@dataclass(frozen=True)
class Job:
    """What struct frame says besides the bytes."""

    frame: bytes
    csum_start: int = 0
    csum_offset: int = 0
    gso_size: int = 0
    flags: int = 0
    gso_type: int = 0


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("offload") / "driver"
    flags = "-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -g -fsanitize=address,undefined"
    sources = [str(HERE / "offload_driver.c"), str(IO / "offload.c")]
    flags += f" -I{IO.parent / 'runtime'}"
    command = ["cc", *flags.split(), "-fno-sanitize-recover=all", "-o", str(target), *sources]
    subprocess.run(command, check=True)
    return target


def run(driver: Path, jobs: list[Job]) -> list[list[bytes] | None]:
    """The packets of each job, None where it was refused."""
    text = b""
    for j in jobs:
        numbers = (j.csum_start, j.csum_offset, j.gso_size, j.flags, j.gso_type, len(j.frame))
        text += " ".join(map(str, numbers)).encode() + b"\n" + j.frame
    done = subprocess.run([driver], input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    results: list[list[bytes] | None] = []
    for part in done.stdout.decode().split(".\n")[:-1]:
        lines = part.split()
        results.append(None if lines == ["refused"] else [bytes.fromhex(line) for line in lines])
    assert len(results) == len(jobs)
    return results


def big(layers: Packet, payload: bytes) -> tuple[bytes, int]:
    """An unsegmented frame with no checksum yet, and where its transport header starts."""
    frame = layers / Raw(payload)
    transport = frame[TCP] if TCP in frame else frame[UDP]
    transport.chksum = 0
    raw = bytes(frame)
    return raw, raw.index(bytes(transport))


def rebuilt(frame: bytes) -> bytes:
    """The same packet with lengths and checksums computed by Scapy."""
    packet = Ether(frame)
    for layer, names in ((IP, ("len", "chksum")), (TCP, ("chksum",)), (UDP, ("len", "chksum"))):
        if layer in packet:
            for name in names:
                delattr(packet[layer], name)
    if IPv6 in packet:
        del packet[IPv6].plen
    return bytes(packet)


def all_rebuilt(frame: bytes) -> bytes:
    """Every layer's lengths and checksums computed by Scapy, but UDP checksums that are absent."""
    packet = Ether(frame)
    layer = packet
    while layer:
        for name in ("len", "plen", "chksum"):
            if name in layer.fields and not (
                name == "chksum" and UDP is type(layer) and not layer.chksum
            ):
                delattr(layer, name)
        layer = layer.payload
    return bytes(packet)


ETHER = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")
V4 = IP(src="10.0.0.1", dst="10.0.0.2", id=65534, tos=3)
V6 = IPv6(src="fd00::1", dst="fd00::2", tc=7)
FLAGS_TCP = TCP(sport=1000, dport=2000, seq=0xFFFFFF00, ack=5, flags="FPAC", options=[("MSS", 9)])
PAYLOAD = bytes(random.Random(4).randbytes(3001))


@pytest.mark.parametrize(
    "layers",
    [ETHER / V4, ETHER / Dot1Q(vlan=100) / V4, ETHER / V6, ETHER / V6 / IPv6ExtHdrDestOpt()],
    ids=["v4", "vlan", "v6", "v6-options"],
)
def test_tcp_segments(driver: Path, layers: Packet) -> None:
    frame, start = big(layers / FLAGS_TCP, PAYLOAD)
    kind = TCPV6 if IPv6 in layers else TCPV4
    job = Job(frame, start, 16, 1000, NEEDS_CSUM, kind | ECN)
    [packets] = run(driver, [job])
    assert packets is not None and len(packets) == 4
    assert [rebuilt(packet) for packet in packets] == packets
    parsed = [Ether(packet) for packet in packets]
    assert b"".join(bytes(p[TCP].payload) for p in parsed) == PAYLOAD
    assert [len(p[TCP].payload) for p in parsed] == [1000, 1000, 1000, 1]
    first = FLAGS_TCP.seq
    assert [p[TCP].seq for p in parsed] == [(first + 1000 * i) % 2**32 for i in range(4)]
    assert [str(p[TCP].flags) for p in parsed] == ["AC", "A", "A", "FPA"]
    if IP in parsed[0]:
        assert [p[IP].id for p in parsed] == [65534, 65535, 0, 1]


OUTER_V4 = ETHER / IP(src="10.9.0.1", dst="10.9.0.2", id=65535, flags="DF")
OUTER_V6 = ETHER / IPv6(src="fd09::1", dst="fd09::2")
INNER = Ether(dst="02:00:00:00:01:02", src="02:00:00:00:01:01")
VXLAN_UDP = UDP(sport=40000, dport=4789, chksum=0) / VXLAN(vni=7) / INNER
VXLAN_SUM = UDP(sport=40000, dport=4789, chksum=0x1234) / VXLAN(vni=7) / INNER
OPTIONS = IP(src="10.0.0.1", dst="10.0.0.2", id=9, options=[IPOption_NOP()] * 4)
TUNNELS = {
    "vxlan": OUTER_V4 / VXLAN_UDP / V4,
    "vxlan-checksum": OUTER_V4 / VXLAN_SUM / V4,
    "vxlan-v6-checksum": OUTER_V6 / VXLAN_SUM / V4,
    "vxlan-v6-inside": OUTER_V4 / VXLAN_UDP / V6,
    "vxlan-options": OUTER_V4 / VXLAN_SUM / OPTIONS,
    "gre": OUTER_V4 / GRE(key_present=1, key=5) / V4,
    "gre-ethernet": OUTER_V6 / GRE(proto=0x6558) / INNER / V6,
    "ip-in-ip": OUTER_V4 / V4,
    "v6-in-ip": OUTER_V4 / V6,
    "ip-in-v6": OUTER_V6 / V4,
}


def in_tunnel(layers: Packet, payload: bytes) -> Job:
    """A frame as the kernel hands it over: the inner TCP has no checksum yet."""
    inner = TCP(sport=1000, dport=2000, seq=7, flags="PA")
    frame = bytearray(bytes(layers / inner / Raw(payload)))
    start = len(frame) - len(payload) - 20
    frame[start + 16 : start + 18] = bytes(2)
    return Job(bytes(frame), start, 16, 1000, NEEDS_CSUM, TCPV4 if IP in layers else TCPV6)


@pytest.mark.parametrize("layers", TUNNELS.values(), ids=TUNNELS)
def test_tcp_in_a_tunnel_is_cut_with_all_its_headers(driver: Path, layers: Packet) -> None:
    [packets] = run(driver, [in_tunnel(layers, PAYLOAD)])
    assert packets is not None and len(packets) == 4
    parsed = [Ether(packet) for packet in packets]
    assert [all_rebuilt(packet) for packet in packets] == packets
    assert b"".join(bytes(p[TCP].payload) for p in parsed) == PAYLOAD
    assert [p[TCP].seq for p in parsed] == [7, 1007, 2007, 3007]
    assert [str(p[TCP].flags) for p in parsed] == ["A", "A", "A", "PA"]
    if layers.haslayer(UDP) and not layers[UDP].chksum:
        assert [p[UDP].chksum for p in parsed] == [0] * 4
    if parsed[0].payload.name == "IP":
        assert [p[IP].id for p in parsed] == [65535, 0, 1, 2]


@pytest.mark.parametrize(
    "layers",
    [
        OUTER_V4 / GRE(seqnum_present=1, sequence_number=3) / V4,
        OUTER_V4 / GRE(chksum_present=1) / V4,
        ETHER / IP(proto=50) / VXLAN_UDP / V4,
    ],
    ids=["gre-sequence", "gre-checksum", "unknown-protocol"],
)
def test_what_cannot_be_cut_in_a_tunnel_is_refused(driver: Path, layers: Packet) -> None:
    assert run(driver, [in_tunnel(layers, PAYLOAD)]) == [None]


@pytest.mark.parametrize("layers", [ETHER / V4, ETHER / V6], ids=["v4", "v6"])
def test_udp_segments(driver: Path, layers: Packet) -> None:
    frame, start = big(layers / UDP(sport=7, dport=9), PAYLOAD)
    [packets] = run(driver, [Job(frame, start, 6, 1400, NEEDS_CSUM, UDP_L4)])
    assert packets is not None
    assert [rebuilt(packet) for packet in packets] == packets
    assert [len(Ether(packet)[UDP].payload) for packet in packets] == [1400, 1400, 201]


@pytest.mark.parametrize("length", [0, 1, 2, 999, 1000])
@pytest.mark.parametrize("layers", [ETHER / V4 / UDP(dport=9), ETHER / V6 / TCP(flags="A")])
def test_a_checksum_is_completed(driver: Path, layers: Packet, length: int) -> None:
    expected = bytes(layers / Raw(PAYLOAD[:length]))
    tcp = TCP in layers
    offset = 16 if tcp else 6
    start = len(expected) - length - (20 if tcp else 8)
    # The sender leaves the sum of the pseudo header in the field.
    at = 26 if IP in layers else 22
    pseudo = expected[at : at + (8 if IP in layers else 32)]
    words = pseudo + bytes([0, 6 if tcp else 17]) + (len(expected) - start).to_bytes(2, "big")
    total = sum(int.from_bytes(words[i : i + 2], "big") for i in range(0, len(words), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    frame = bytearray(expected)
    frame[start + offset : start + offset + 2] = total.to_bytes(2, "big")
    [packets] = run(driver, [Job(bytes(frame), start, offset, 0, NEEDS_CSUM)])
    assert packets == [expected]


@pytest.mark.parametrize(
    ("transport", "sent"),
    [(UDP(dport=9), b"\xff\xff"), (TCP(dport=9, flags="A"), b"\0\0")],
    ids=["udp", "tcp"],
)
def test_a_checksum_of_zero_is_sent_as_ones_only_of_udp(
    driver: Path, transport: Packet, sent: bytes
) -> None:
    """In UDP a checksum of zero would mean that there is none (RFC 768)."""
    layers = ETHER / V4 / transport
    header, protocol, offset = (8, 17, 6) if UDP in layers else (20, 6, 16)
    at = 34 + offset
    filler = bytes(layers / Raw(bytes(2)))[at : at + 2]  # makes the sum all ones
    expected = bytearray(bytes(layers / Raw(filler)))
    expected[at : at + 2] = sent
    frame = bytearray(expected)
    # Addresses, protocol and length: what the sender leaves for the hardware to add to.
    words = frame[26:34] + bytes([0, protocol, 0, header + 2])
    total = sum(int.from_bytes(words[i : i + 2], "big") for i in range(0, len(words), 2))
    frame[at : at + 2] = ((total & 0xFFFF) + (total >> 16)).to_bytes(2, "big")
    assert run(driver, [Job(bytes(frame), 34, offset, 0, NEEDS_CSUM)]) == [[bytes(expected)]]


@pytest.mark.parametrize(
    ("transport", "kind", "sent"),
    [(UDP(dport=9), UDP_L4, b"\xff\xff"), (TCP(dport=9, flags="A"), TCPV4, b"\0\0")],
    ids=["udp", "tcp"],
)
def test_a_segments_checksum_of_zero_is_sent_as_ones_only_of_udp(
    driver: Path, transport: Packet, kind: int, sent: bytes
) -> None:
    layers = ETHER / V4 / transport
    offset = 6 if UDP in layers else 16
    filler = bytes(layers / Raw(bytes(2)))[34 + offset : 36 + offset]  # makes the sum all ones
    frame, start = big(layers, 3 * filler)
    [packets] = run(driver, [Job(frame, start, offset, 2, NEEDS_CSUM, kind)])
    assert packets is not None and len(packets) == 3
    assert packets[0][34 + offset : 36 + offset] == sent


def test_a_tunnels_checksum_of_zero_is_sent_as_ones(driver: Path) -> None:
    job = in_tunnel(TUNNELS["vxlan-checksum"], PAYLOAD)
    port, checksum = slice(34, 36), slice(40, 42)
    [packets] = run(driver, [job])
    assert packets is not None and packets[0][checksum] != b"\xff\xff"
    total = sum(int.from_bytes(packets[0][at], "big") for at in (port, checksum))
    changed = bytearray(job.frame)
    changed[port] = ((total & 0xFFFF) + (total >> 16)).to_bytes(2, "big")  # the sum is all ones
    [packets] = run(driver, [replace(job, frame=bytes(changed))])
    assert packets is not None and packets[0][checksum] == b"\xff\xff"


@pytest.mark.parametrize(("payload_bytes", "packets"), [(3 * 1024, 1024), (3 * 1024 + 1, None)])
def test_a_buffer_is_cut_into_at_most_1024_packets(
    driver: Path, payload_bytes: int, packets: int | None
) -> None:
    frame, start = big(ETHER / V4 / FLAGS_TCP, bytes(payload_bytes))
    [cut] = run(driver, [Job(frame, start, 16, 3, NEEDS_CSUM, TCPV4)])
    assert (cut and len(cut)) == packets


def test_what_cannot_be_done_is_refused(driver: Path) -> None:
    frame, start = big(ETHER / V4 / FLAGS_TCP, PAYLOAD)
    good = Job(frame, start, 16, 1000, NEEDS_CSUM, TCPV4)
    longer, start6 = big(ETHER / V6 / FLAGS_TCP, PAYLOAD)
    assert run(driver, [Job(longer, start6, 16, 1000, NEEDS_CSUM, TCPV6)]) != [None]
    no_length = longer[:18] + bytes(2) + longer[20:]
    jobs = [
        Job(frame, start, 16, 0, NEEDS_CSUM, TCPV4),
        Job(frame, start, 16, 1000, 0, TCPV4),
        Job(frame, start, 16, 1000, NEEDS_CSUM, UDP_FRAGMENTS),
        Job(frame, 20, 16, 1000, NEEDS_CSUM, TCPV4),
        Job(frame, len(frame) - 10, 16, 1000, NEEDS_CSUM, TCPV4),
        Job(frame[: start + 24], start, 16, 1000, NEEDS_CSUM, TCPV4),
        Job(frame[:13], start, 16, 1000, NEEDS_CSUM, TCPV4),
        Job(frame, len(frame) - 1, 0, 0, NEEDS_CSUM),
        Job(frame, start, 6, 1000, NEEDS_CSUM, TCPV4),
        Job(frame, start, 16, 1000, NEEDS_CSUM, UDP_L4),
        Job(frame + b"x", start, 16, 1000, NEEDS_CSUM, TCPV4),
        Job(frame[:-1], start, 16, 1000, NEEDS_CSUM, TCPV4),
        Job(frame[:23] + b"\x11" + frame[24:], start, 16, 1000, NEEDS_CSUM, TCPV4),
        Job(frame[:14] + b"\x46" + frame[15:], start, 16, 1000, NEEDS_CSUM, TCPV4),
        Job(frame, start, 16, 2, NEEDS_CSUM, TCPV4),
        Job(no_length, start6, 16, 1000, NEEDS_CSUM, TCPV6),
    ]
    results = run(driver, [good, *jobs])
    assert results[0] is not None
    assert results[1:] == [None] * len(jobs)


def test_garbage_is_never_read_beyond_its_end(driver: Path) -> None:
    chance = random.Random(11)
    valid, start = big(ETHER / V4 / FLAGS_TCP, PAYLOAD[:500])
    jobs = []
    for _ in range(3000):
        frame = bytearray(valid[: chance.randrange(len(valid) + 1)])
        for _ in range(chance.randrange(6)):
            if frame:
                frame[chance.randrange(len(frame))] = chance.randrange(256)
        jobs.append(
            Job(
                bytes(frame),
                chance.choice([start, chance.randrange(65536), chance.randrange(60)]),
                chance.choice([6, 16, chance.randrange(65536)]),
                chance.choice([0, 1, 7, 300, 65535]),
                chance.choice([NEEDS_CSUM, 0]),
                chance.choice([0, TCPV4, TCPV6, UDP_L4, chance.randrange(256)]),
            )
        )
    run(driver, jobs)
