"""Wireshark's dissector of a program shows what the switch's parser extracts, field for field."""

from __future__ import annotations

import re
from pathlib import Path

import need
import pytest
from captured import parsed_by_switch, shown, write_pcap

from p4native.compiler.command import main as compile_p4
from p4native.switch.program import Program
from p4native.switch.wireshark import dissector
from p4native.switch.wireshark.expressions import quoted

needs_tshark = need.mark(need.program("tshark"))
PACKETS = Path(__file__).resolve().parents[2] / "packets"
TYPICAL = (
    *("ipv4_router", "packet_io", "parser_lookahead_struct", "parser_subparser", "short_packets"),
    *("signed_fields", "stack_parse", "unaligned", "union", "varbit", "varbit_long", "wide_lanes"),
)
OTHERS = sorted({path.stem for path in PACKETS.glob("*.p4")} - {*TYPICAL})
NAME = "program"


def frames_of(script: Path) -> list[tuple[int, bytes]]:
    """The frames that a packet test sends, each with its port."""
    sent = re.findall(r"^packet\s+(\d+)\s+([0-9a-fA-F ]+?)\s*(?:#.*)?$", script.read_text(), re.M)
    pairs = ((int(port), digits.replace(" ", "")) for port, digits in sent)
    return [(port, bytes.fromhex(digits)) for port, digits in pairs if len(digits) % 2 == 0]


def compiled(source: Path, folder: Path) -> Path:
    json = folder / f"{source.stem}.json"
    assert compile_p4([str(source), "-o", str(json)]) == 0
    return json


def written(json: Path) -> Path:
    script = json.with_suffix(".lua")
    script.write_text(dissector(Program.read(json), NAME))
    return script


def check(name: str, folder: Path) -> int:
    """Compares all frames of a packet test, port by port. Returns how many headers were equal."""
    json = compiled(PACKETS / f"{name}.p4", folder)
    script, program = written(json), Program.read(json)
    frames = [(port, frame) for port, frame in frames_of(PACKETS / f"{name}.stf") if frame]
    equal = 0
    for port in {port for port, _ in frames}:
        here = [pair for pair in frames if pair[0] == port]
        capture = write_pcap(folder / "x.pcap", [frame for _, frame in here])
        option = ("-o", f"{NAME}.ingress_port:{port}")
        for seen, right in zip(
            shown(script, capture, NAME, program, *option),
            parsed_by_switch(json, here),
            strict=True,
        ):
            ours = [header for header in right if not header[0].endswith(".p4")]
            assert seen.is_answer or list(seen.headers) == ours
            equal += len(seen.headers)
    return equal


@needs_tshark
@pytest.mark.long(but=["stack_parse", "unaligned", "union", "varbit"])
@pytest.mark.parametrize("name", TYPICAL)
def test_tshark_shows_what_the_parser_extracts(name: str, tmp_path: Path) -> None:
    assert check(name, tmp_path)


@needs_tshark
@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_tshark_shows_what_the_other_parsers_extract(name: str, tmp_path: Path) -> None:
    assert check(name, tmp_path)


HOSTILE = ('"', "\\", "]]", "\n", "\0", "é", "--", "$(x)", "\u2028")


def test_a_name_of_the_program_is_text_in_the_script() -> None:
    for text in HOSTILE:
        literal = quoted(f"a{text}b")
        assert literal.isascii() and literal.isprintable()
        inner = re.sub(r"\\\d{3}", "", literal[1:-1])
        assert '"' not in inner and "\\" not in inner
        read = re.sub(rb"\\(\d{3})", lambda m: bytes([int(m[1])]), literal[1:-1].encode())
        assert read.decode() == f"a{text}b"


REPLY = """
#include <core.p4>
#include <v1model.p4>
header pair_t { bit<16> src_port; bit<16> dst_port; }
header body_t { bit<7> flags; bit<65> wide; bit<16> rest; }
struct headers { pair_t pair; body_t body; }
struct metadata { }
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start {
        p.extract(h.pair);
        transition select(h.pair.dst_port) { 7: body; default: accept; }
    }
    state body { p.extract(h.body); transition accept; }
}
control C(inout headers h, inout metadata m) { apply { } }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), I(), C(), D()) main;
"""


@pytest.fixture
def reply(tmp_path: Path) -> Path:
    source = tmp_path / "reply.p4"
    source.write_text(REPLY)
    return compiled(source, tmp_path)


@needs_tshark
def test_an_answer_is_parsed_with_sender_and_receiver_swapped(reply: Path, tmp_path: Path) -> None:
    body = bytes([0b1010101_1, *range(1, 9), 0xAB, 0xCD])
    frames = [bytes([0, 9, 0, 7]) + body, bytes([0, 7, 0, 9]) + body, bytes([0, 9, 0, 9]) + body]
    capture = write_pcap(tmp_path / "x.pcap", frames)
    asked, answered, other = shown(written(reply), capture, NAME, Program.read(reply))
    assert (asked.is_answer, answered.is_answer, other.is_answer) == (False, True, False)
    wide = f"{int.from_bytes(body[:9], 'big') & (1 << 65) - 1:x}"
    body_shown = ("body", {"flags": "55", "wide": wide, "rest": "abcd"})
    assert asked.headers == (("pair", {"src_port": "9", "dst_port": "7"}), body_shown)
    assert answered.headers == (("pair", {"src_port": "7", "dst_port": "9"}), body_shown)
    assert len(other.headers) == 1


@needs_tshark
def test_a_short_frame_is_an_error_and_a_short_capture_is_none(reply: Path, tmp_path: Path) -> None:
    frame = bytes([0, 9, 0, 7]) + bytes(11)
    for sent, longest, remark in ((frame[:9], 99, "PacketTooShort"), (frame, 9, "capture")):
        capture = write_pcap(tmp_path / "x.pcap", [sent], longest)
        (seen,) = shown(written(reply), capture, NAME, Program.read(reply))
        assert len(seen.headers) == 1
        assert len(seen.remarks) == 1 and remark in seen.remarks[0]
