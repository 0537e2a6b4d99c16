"""All captures of a run in one pcapng file, with comments where links lost frames."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from pathlib import Path

import needs
from scapy.utils import RawPcapNgReader, RawPcapReader

from agglab.testbed.base.traffic_counters import DirectionStatistics
from agglab.testbed.cli.main import main
from agglab.testbed.results.captures import merged
from agglab.testbed.results.captures.losses import interfaces
from agglab.testbed.results.captures.merged import INBOUND, OUTBOUND, Interface
from agglab.testbed.scenario import load

RUN = """
name: captured
seed: 3
backend: virtual
topology: {kind: two_tier, racks: 2, workers: 1}
links: {loss: 4%, rate: 200mbit}
switch: {pcap: true, lanes: 64, slots: 4}
workload: {elements: 3000, rounds: 1, dtype: int32}
"""
REORDERED = """
faults: [{kind: reorder, link: "h1->s1", probability: 10%, delay: 1ms}]
"""


def run(folder: Path, text: str) -> Path:
    (folder / "captured.yaml").write_text(text)
    assert main(["run", str(folder / "captured.yaml"), "--results", str(folder)]) == 0
    return folder / "captured/latest"


def read(capture: Path) -> list[tuple[str, int, bytes]]:
    """Every frame as scapy reads it: interface, time in ns, bytes."""
    with RawPcapNgReader(str(capture)) as reader:
        return [(m.ifname.decode(), (m.tshigh << 32) + m.tslow, frame) for frame, m in reader]


def shown(capture: Path) -> list[tuple[str, ...]]:
    """Of every frame, as tshark reads it: interface, direction, comment."""
    fields = ("interface_name", "packet_flags_direction", "comment")
    command = ["tshark", "-r", str(capture), "-Tfields", *(f"-eframe.{name}" for name in fields)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def test_it_holds_every_frame_of_every_port_in_order(tmp_path: Path) -> None:
    pcaps = run(tmp_path, RUN) / "pcap"
    frames = read(pcaps / merged.NAME)
    times = [time for _, time, _ in frames]
    assert times == sorted(times)
    single = {path.stem.rpartition("_")[0] for path in pcaps.glob("*.pcap")}
    assert single == {name for name, *_ in frames} and len(single) == 6
    for name in single:
        right = []
        for way in ("in", "out"):
            with RawPcapReader(str(pcaps / f"{name}_{way}.pcap")) as reader:
                right += [(m.sec * 10**9 + m.usec, frame) for frame, m in reader]
        assert sorted((time, f) for port, time, f in frames if port == name) == sorted(right)


def lost_by_comments(folder: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for _, _, comment in shown(folder / "pcap" / merged.NAME):
        if comment:
            (way,) = re.findall(r"\w+->\w+", comment)
            found.setdefault(way, []).extend(
                map(int, re.findall(r"\d+", comment.split("number")[1]))
            )
    return found


def lost(folder: Path) -> dict[str, list[int]]:
    drops = json.loads((folder / "drops.json").read_text())
    return {way: each["numbers"] for way, each in drops.items() if each["numbers"]}


@needs.mark("tshark")
def test_comments_tell_every_loss_that_a_switch_can_see(tmp_path: Path) -> None:
    folder = run(tmp_path, RUN)
    wanted, told = lost(folder), lost_by_comments(folder)
    between_switches = {way for way in wanted if way.count("s") + way.count("t") > 1}
    for way, numbers in wanted.items():
        # The sender and the receiver of a link between switches both tell.
        times = 2 if way in between_switches else 1
        assert sorted(told[way]) == sorted(numbers * times), way
    assert len(wanted) > 3 and set(told) == set(wanted)


@needs.mark("tshark")
def test_a_link_that_reorders_has_no_comments_where_frames_arrive(tmp_path: Path) -> None:
    folder = run(tmp_path, RUN + REORDERED)
    assert "h1->s1" in lost(folder) and "h1->s1" not in lost_by_comments(folder)


def test_a_comment_stands_at_the_right_frame(tmp_path: Path) -> None:
    """Frames carry their numbers on the link, of which 1, 2 and 5 of seven are lost."""
    (tmp_path / "s.yaml").write_text("topology: {workers: 1}\nswitch: {pcap: true}\n")
    (point,) = load(tmp_path / "s.yaml").points
    lost, kept = (1, 2, 5), (0, 3, 4, 6)
    pcap(tmp_path / "s1-eth1_in.pcap", 0xA1B2C3D4, [(n, 0, bytes([n])) for n in kept])
    pcap(tmp_path / "s1-eth1_out.pcap", 0xA1B2C3D4, [(n, 0, bytes([n])) for n in range(7)])
    ways = [
        DirectionStatistics("h1-s1", way, 7, 7, 7, len(lost), 0, lost)
        for way in ("h1->s1", "s1->h1")
    ]
    (port,) = interfaces(point.resolved, ways, tmp_path)
    assert {key: text.rpartition("number")[2] for key, text in port.comments.items()} == {
        (INBOUND, kept.index(3)): "s 1, 2",
        (INBOUND, kept.index(6)): " 5",
        **{(OUTBOUND, number): f" {number}" for number in lost},
    }


def pcap(path: Path, magic: int, frames: list[tuple[int, int, bytes]]) -> None:
    records = (struct.pack("<IIII", s, part, len(f), len(f)) + f for s, part, f in frames)
    path.write_bytes(struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 65535, 1) + b"".join(records))


def test_microseconds_nanoseconds_and_a_cut_file(tmp_path: Path) -> None:
    pcap(tmp_path / "a-eth1_in.pcap", 0xA1B2C3D4, [(1, 5, b"micro"), (3, 0, b"late")])
    pcap(tmp_path / "a-eth1_out.pcap", 0xA1B23C4D, [(1, 4999, b"nano"), (2, 0, b"cut")])
    cut = tmp_path / "a-eth1_out.pcap"
    cut.write_bytes(cut.read_bytes()[:-1])
    merged.merge(tmp_path, [Interface("a-eth1", "h1", None), Interface("b", "h2", 7)])
    assert read(tmp_path / merged.NAME) == [
        ("a-eth1", 1_000_004_999, b"nano"),
        ("a-eth1", 1_000_005_000, b"micro"),
        ("a-eth1", 3_000_000_000, b"late"),
    ]


@needs.mark("tshark")
def test_wireshark_reads_names_directions_and_comments(tmp_path: Path) -> None:
    pcap(tmp_path / "a-eth1_in.pcap", 0xA1B2C3D4, [(1, 0, bytes(14)), (3, 0, bytes(15))])
    pcap(tmp_path / "a-eth1_out.pcap", 0xA1B2C3D4, [(2, 0, bytes(14))])
    comments = {(OUTBOUND, 0): "lost", (INBOUND, 1): "é"}
    merged.merge(tmp_path, [Interface("a-eth1", "h1", 10**9, comments)])
    ways = ["0x00000001", "0x00000002", "0x00000001"]
    assert shown(tmp_path / merged.NAME) == list(
        zip(["a-eth1"] * 3, ways, ["", "lost", "é"], strict=True)
    )


def test_a_run_without_captures_has_no_frames(tmp_path: Path) -> None:
    merged.merge(tmp_path, [Interface("é" * 9, "h1", None)])
    assert read(tmp_path / merged.NAME) == []
