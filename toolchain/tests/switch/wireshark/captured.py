"""What tshark shows of frames with our dissector, and what the switch says of the same frames."""

from __future__ import annotations

import re
import struct
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from p4native.switch import Detail, Pipeline
from p4native.switch.program import Program

Header = tuple[str, dict[str, str]]
"""A header's name without the number of an element, and its fields' values in hexadecimal digits
without leading zeros."""
DIGITS_MAX = 32
"""The switch's trace cuts long values: so many of their first digits are compared."""


@dataclass(frozen=True)
class Shown:
    """What tshark shows of a frame. remarks: notes and errors of the parser. is_answer: whether the
    frame is shown with sender and receiver swapped."""

    headers: tuple[Header, ...]
    remarks: tuple[str, ...]
    is_answer: bool


def write_pcap(path: Path, frames: Sequence[bytes], longest: int = 65535) -> Path:
    """Writes Ethernet frames, of which only the first `longest` bytes are captured."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for second, frame in enumerate(frames):
            kept = frame[:longest]
            file.write(struct.pack("<IIII", second, 0, len(kept), len(frame)) + kept)
    return path


def shown(script: Path, capture: Path, name: str, program: Program, *options: str) -> list[Shown]:
    """Returns what tshark shows of each frame of a capture under the protocol `name`."""
    command = ["tshark", *options, "-X", f"lua_script:{script}", "-r", str(capture), "-T", "pdml"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert "Lua Error" not in done.stdout, done.stdout[-2000:]
    widths = {
        (plain(header.name), re.sub(r"\W", "_", field.name)): 0 if field.variable else field.bits
        for header in program.headers.values()
        for field in header.type.fields
    }
    return [_frame(each, name, widths) for each in ET.fromstring(done.stdout).iter("packet")]


def _frame(packet: ET.Element, name: str, widths: dict[tuple[str, str], int]) -> Shown:
    (protocol,) = (each for each in packet.findall("proto") if each.get("name") == name)
    headers: list[Header] = []
    remarks = []
    for each in protocol.findall("field"):
        if each.get("name", "").startswith("_ws.expert"):
            remarks.append(each.get("showname", ""))
        elif each.get("name") != f"{name}.payload":
            title = plain(each.get("show") or each.get("showname") or "")
            fields = {}
            for field in each.findall("field"):
                member = field.get("name", "").rpartition(".")[2]
                fields[member] = _digits(field, widths[title, member])
            headers.append((title, fields))
    return Shown(tuple(headers), tuple(remarks), "answer" in protocol.get("showname", ""))


def _digits(field: ET.Element, bits: int) -> str:
    text = field.get("show", "")
    if text.startswith("0x"):  # more than 64 bits that do not begin at a byte
        return short(text[2:])
    is_number = 0 < bits <= 64 and text.isdecimal()
    return short(f"{int(text):x}" if is_number else field.get("value", ""))


def short(digits: str) -> str:
    return digits[:DIGITS_MAX].lstrip("0")


def plain(header: str) -> str:
    """Returns a header's name without what says which element of a stack it is."""
    return re.sub(r"\.next|\[\d+\]", "", header)


def parsed_by_switch(json: Path, frames: Sequence[tuple[int, bytes]]) -> list[list[Header]]:
    """Returns the headers that the switch's parser extracts from each frame: (port, bytes)."""
    with Pipeline.load(json, detail=Detail.TRACE) as pipeline:
        return [list(_parsed(pipeline, port, frame)) for port, frame in frames]


def _parsed(pipeline: Pipeline, port: int, frame: bytes) -> Iterator[Header]:
    pipeline.process(port, frame)
    lines = iter(pipeline.take_messages())
    next(line for line in lines if line.startswith("parser: "))
    for line in lines:
        if line.startswith("  parser ends"):
            return
        if found := re.fullmatch(r"    ([^: ]+):(.*)", line):
            fields = (word.partition("=") for word in found[2].split())
            values = {
                re.sub(r"\W", "_", name): short(value[2:].rstrip("."))
                for name, equals, value in fields
                if equals and value != "0x"
            }
            yield plain(found[1]), values
