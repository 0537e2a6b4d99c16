"""Packets by the names of their fields: the bytes that formats make, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from p4native.common.exit_codes import FAILED, INVALID, PASSED
from p4native.stf import Expect, Packet, StfError, main, parse, parse_formats

CONTRIBUTION = (
    "format contribution = 02000000fffe 0200000000{port:8} 0800"
    " ipv4(10.0.0.{port}, 10.0.255.254, 17) udp(48864, 48864)"
    " 01 {port:8} {slot:16} {tag:32} {values:32...}\n"
)


def frame(text: str) -> bytes:
    (packet,) = parse(CONTRIBUTION + text)
    assert isinstance(packet, Packet)
    return packet.data


@given(
    st.integers(1, 254),
    st.integers(0, 0xFFFF),
    st.lists(st.integers(-(1 << 31), (1 << 32) - 1), min_size=1, max_size=9),
)
def test_lengths_and_checksums_are_those_of_scapy(port: int, slot: int, values: list[int]) -> None:
    numbers = ",".join(map(str, values))
    made = frame(f"contribution port={port} slot={slot} tag=7 values={numbers}")
    payload = bytes([1, port]) + slot.to_bytes(2, "big") + (7).to_bytes(4, "big")
    payload += b"".join((value % (1 << 32)).to_bytes(4, "big") for value in values)
    expected = (
        Ether(dst="02:00:00:00:ff:fe", src=f"02:00:00:00:00:{port:02x}", type=0x800)
        / IP(id=0, src=f"10.0.0.{port}", dst="10.0.255.254")
        / UDP(sport=48864, dport=48864)
        / Raw(payload)
    )
    assert made == bytes(expected)


def test_a_packet_is_sent_to_its_port_or_to_one_that_is_named() -> None:
    line = "contribution port=3 slot=0x10 tag=0 values=1"
    both = parse(f"{CONTRIBUTION}{line}\npacket 5 {line}\nPACKET 5 Contribution {line[13:]}\n")
    assert [command.port for command in both if isinstance(command, Packet)] == [3, 5, 5]
    assert len({command.data for command in both if isinstance(command, Packet)}) == 1


def expected(text: str) -> str:
    (expect,) = parse(CONTRIBUTION + text)
    assert isinstance(expect, Expect)
    return expect.nibbles or ""


def test_what_is_not_given_may_be_anything() -> None:
    """And so may the lengths and checksums that depend on it."""
    whole = expected("expect 1 contribution port=1 slot=2 tag=3 values=4,5")
    assert "*" not in whole
    any_slot = expected("expect 1 contribution port=1 slot=* tag=3 values=4,5")
    open_digits = [n for n, digit in enumerate(any_slot) if digit == "*"]
    assert open_digits == [*range(80, 84), *range(88, 92)]  # UDP's checksum, and the slot
    any_values = expected("expect 1 contribution port=1 slot=2 tag=3")
    assert len(any_values) == len(whole) - 16
    assert any_values[32:36] == any_values[76:80] == "****"
    (loose,) = parse(f"{CONTRIBUTION}expect 1 contribution slot=2")
    assert isinstance(loose, Expect)
    for values in ("1", "1,2,3"):
        assert loose.matches(frame(f"contribution port=9 slot=2 tag=8 values={values}"))
    assert not loose.matches(frame("contribution port=9 slot=3 tag=8 values=1"))


def test_digits_of_a_format_may_be_any_of_an_expected_packet() -> None:
    form = "format any = 0* {x:8}\n"
    assert parse(f"{form}expect 1 any x=1\n") == [Expect(2, 1, "0*01")]
    with pytest.raises(StfError, match="`\\*` is not a hexadecimal digit"):
        parse(f"{form}packet 1 any x=1\n")


def test_a_packet_without_the_format_is_as_before() -> None:
    assert parse("packet 1 fa de\n") == [Packet(1, 1, b"\xfa\xde")]
    assert parse("expect 1 f* $\n") == [Expect(1, 1, "f*", True)]
    assert parse("expect 1 $\n") == [Expect(1, 1, "", True)]
    assert parse("expect 1\n") == [Expect(1, 1, None)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("contribution slot=1", "needs the port to which it is sent, as in port=1"),
        ("contribution port=1 slot=0 tag=1", "needs a value for `values`"),
        ("contribution port=1 slot=0 tag=1 values=1 x=2", "no field `x`; it has port, slot, tag"),
        ("contribution port=1 slot=65536 tag=1 values=1", "65536 does not fit the 16 bits"),
        ("contribution port=1 slot=-32769 tag=1 values=1", "-32769 does not fit"),
        ("contribution port=1 slot=0 tag=1 values=1,,2", "`` is no number for `values`"),
        ("contribution port=1 slot=0 slot=1", "`slot` is given twice"),
        ("contribution port=1 slot", "`slot` is not FIELD=VALUE"),
        ("contribution port=300 slot=0 tag=1 values=1", "300 does not fit the 8 bits of `port`"),
        ("format x = ipv4(1.2.3.{y}, 1.1.1.1, 17) {y:16}\npacket 1 x y=300", "no IPv4 address"),
        ("packet 1 contribution port=* slot=0 tag=1 values=1", "is not a hexadecimal digit"),
        ("expect 1 contribution slot=0 $", "needs values for `values`, since `$` ends the packet"),
        ("unheard port=1", "unknown command `unheard`"),
        ("format contribution = 00", "`contribution` is taken"),
        ("format packet = 00", "`packet` is taken"),
        ("format fade = 00", "`fade` is a hexadecimal number"),
        ("format x 00", "a format is written"),
        ("format x = 0g", "`0g` is no part of a format"),
        ("format x = {y:0}", "`y` cannot have 0 bits"),
        ("format x = ipv4(1.2.3.4)", "write ipv4(SOURCE, DESTINATION, PROTOCOL)"),
        ("format x = 000\npacket 1 x", "12 bits: not whole bytes"),
        ("format x = udp(1, 70000)\npacket 1 x", "`70000` is no port of UDP"),
        ("format x = {y:8...} 00\nexpect 1 x", "a list that does not end it"),
        ("format x = ipv4(1.2.3.4, 5.6.7.8, 17) {y:524288}\npacket 1 x y=0", "too long"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(StfError) as raised:
        parse(CONTRIBUTION + text)
    assert problem in str(raised.value)
    assert raised.value.line == 1 + len(text.splitlines())


def test_formats_come_from_a_file_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = str(Path(__file__).with_name("slice_read.p4"))
    formats, script = tmp_path / "packets.formats", tmp_path / "test.stf"
    formats.write_text("# one byte\nformat byte = {value:8}\n")
    script.write_text("packet 0 byte value=1\nno_packet\n")
    command = [program, str(script), "--formats", str(formats)]
    assert main(command) in (PASSED, FAILED)
    assert main(command[:2]) == INVALID
    formats.write_text("packet 0 00\n")
    assert main(command) == INVALID
    assert f"{formats}:1: expected `format NAME = PART ...`" in capsys.readouterr().err
    assert main([*command[:3], str(tmp_path)]) == INVALID


def test_a_file_of_formats_has_nothing_else() -> None:
    assert set(parse_formats(CONTRIBUTION + "\n# comment\n")) == {"contribution"}
    with pytest.raises(StfError, match="found `wait`"):
        parse_formats("wait\n")
