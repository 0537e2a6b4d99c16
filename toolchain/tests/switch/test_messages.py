"""What programs say: log_msg, asserts, and a packet's way in a trace; the C that --show prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from switch_p4 import program_json

from p4native.switch import Detail, Exact, Pipeline, Program
from p4native.switch.cli import main
from p4native.switch.messages import MessageLog
from p4native.switch.options import EXIT_PROGRAM
from p4native.switch.translate import translate

PROGRAM = {
    "fields": "bit<8> a; bit<8> b; bit<16> c; bit<96> wide; int<8> less;",
    "following": "select(hdr.h.a) { 5: special; default: accept; }",
    "states": "state special { m.x = 7; transition accept; }",
    "ingress": """
    register<bit<24>>(4) r;
    action set(bit<8> v, bit<9> port) {
        hdr.h.b = v;
        s.egress_spec = port;
    }
    table t {
        key = { hdr.h.a : exact; m.x : exact; }
        actions = { set; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (hdr.h.a < 200) {
            t.apply();
        }
        r.write((bit<32>)hdr.h.b, 24w0xabcdef);
        if (hdr.h.c == 0x1234) {
            mark_to_drop(s);
        }
        log_msg("50% of {}: {}, {}", {hdr.h.b, hdr.h.less, hdr.h.wide});
        assert(hdr.h.a != 9);
        assume(hdr.h.a != 8);
    }
    """,
}
REST = bytes(range(1, 13)) + b"\xfe"
WIDE = REST[:12].hex()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("messages")
    (folder / "test.json").write_text(program_json(**PROGRAM))
    return folder


def said(folder: Path, detail: Detail, *starts: bytes) -> list[str]:
    with Pipeline.load(folder / "test.json", detail=detail, quick=True) as p:
        p.tables.add("I.t", [Exact(5), Exact(7)], "I.set", [2, 300])
        for start in starts:
            p.process(3, start + REST)
        return p.take_messages()


def line_of(text: str) -> str:
    """The number of the line of the whole program that holds `text`."""
    fragment = re.escape(text)
    found = re.search(
        rf'"line": (\d+),[^}}]*"source_fragment": "{fragment}', program_json(**PROGRAM)
    )
    assert found, text
    return found[1]


def test_a_log_has_log_msg_and_failed_asserts_only(folder: Path) -> None:
    lines = said(folder, Detail.LOG, b"\x05\0\0\0", b"\x09\x07\0\0", b"\x08\x07\0\0")
    wanted = [f"log: 50% of {n}: -2, 0x{WIDE}" for n in (2, 7, 7)]
    where = [f"test.p4:{line_of(f'{w}(hdr.h.a')} {w}(hdr.h.a" for w in ("assert", "assume")]
    assert lines[:2] == wanted[:2]
    assert lines[2].startswith(f"assert failed: {where[0]} != 9")
    assert lines[3] == wanted[2]
    assert lines[4].startswith(f"assume failed: {where[1]} != 8")
    assert len(lines) == 5


def test_nothing_is_said_unless_asked_for(folder: Path) -> None:
    assert said(folder, Detail.NOTHING, b"\x09\0\0\0") == []


def test_a_trace_tells_a_packets_way(folder: Path) -> None:
    lines = said(folder, Detail.TRACE, b"\x05\0\0\0")
    header = f"a=0x05 b=0x00 c=0x0000 wide=0x{WIDE} less=0xfe"
    table = line_of("table t {")
    wanted = [
        "packet in: port 3, 17 bytes",
        "parser: 17 bytes",
        f"    h: {header}",
        "    select 0x5",
        f"  state special (test.p4:{line_of('state special')} state special {{ m.x = 7;",
        "  parser ends after 17 bytes: NoError",
        "ingress",
        f"  table I.t (test.p4:{table} table t {{): hdr.h.a=0x05 m.x=0x07: hit, entry 0,"
        " I.set(v=0x02, port=0x012c)",
        f"    test.p4:{line_of('hdr.h.b = v;')} hdr.h.b = v;",
        "      h.b = 0x02",
        "      register I.r[2]",
        "      written: 0xabcdef",
        f"log: 50% of 2: -2, 0x{WIDE}",
        "egress",
        "deparser",
        f"  h: {header.replace('b=0x00', 'b=0x02')}",
        "packet out: port 300, 17 bytes",
    ]
    found = iter(lines)
    for text in wanted:
        assert any(line.startswith(text) for line in found), (text, lines)


def test_a_trace_tells_of_misses_errors_and_drops(folder: Path) -> None:
    lines = said(folder, Detail.TRACE, b"\x01\0\x12\x34")
    assert any(line.endswith("m.x=0x00: miss, NoAction()") for line in lines)
    condition = f"  test.p4:{line_of('if (hdr.h.a')} if (hdr.h.a < 200) {{: true"
    assert condition in lines
    assert lines[-1] == "dropped by ingress"
    with Pipeline.load(folder / "test.json", detail=Detail.TRACE, quick=True) as p:
        p.process(0, b"short")
        assert "  parser ends after 0 bytes: PacketTooShort" in p.take_messages()


def test_messages_that_nobody_takes_are_lost_in_the_end(folder: Path) -> None:
    with Pipeline.load(folder / "test.json", detail=Detail.LOG, quick=True) as p:
        for _ in range(30_000):
            p.process(0, bytes(4) + REST)
        lines = p.take_messages()
        # As many as 1 MiB holds, and all of them whole but for the last.
        assert 20_000 < len(lines) < 30_000
        assert set(lines[:-1]) == {f"log: 50% of 0: -2, 0x{WIDE}"}
        p.process(0, bytes(4) + REST)
        assert len(p.take_messages()) == 1


def test_a_pipeline_that_is_replaced_says_its_last_words(folder: Path) -> None:
    written: list[str] = []
    installed: list[Pipeline | None] = []
    log = MessageLog(installed.append, written.append).start()
    first, second = (
        Pipeline.load(folder / "test.json", detail=Detail.LOG, quick=True) for _ in range(2)
    )
    log.set_pipeline(first)
    first.process(0, b"\0\x01\0\0" + REST)
    log.set_pipeline(second)
    first.close()
    second.process(0, b"\0\x02\0\0" + REST)
    log.stop()
    second.close()
    assert [line[:13] for line in written] == ["log: 50% of 1", "log: 50% of 2"]
    assert installed == [first, second]


def test_show_c_prints_the_program_with_its_p4_lines(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--show", "c", str(folder / "test.json")]) == 0
    text = capsys.readouterr().out
    assert f"/* test.p4:{line_of('hdr.h.b = v;')} hdr.h.b = v; */" in text
    assert "void pl_process" not in text, "the runtime is included, not printed"
    program = Program.read(folder / "test.json")
    assert "hdr.h.b = v;" not in translate(program), "comments would be part of the cache's key"


def test_show_c_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    assert main(["--show", "c", str(bad)]) == EXIT_PROGRAM
    assert capsys.readouterr().err.startswith(f"switch: {bad}: is not JSON")


def test_source_text_cannot_end_a_comment_or_a_string(folder: Path) -> None:
    text = (folder / "test.json").read_text()
    evil = '*/ int x; /* \\" ??/ %s'
    program = Program.parse(
        text.replace("hdr.h.b = v;", evil.replace("\\", "\\\\").replace('"', '\\"'))
    )
    with Pipeline.of(program, detail=Detail.TRACE, quick=True) as p:
        p.tables.add("I.t", [Exact(5), Exact(7)], "I.set", [2, 3])
        p.process(0, b"\x05\0\0\0" + REST)
        assert any("*/ int x;" in line and line.endswith("%s") for line in p.take_messages())
    assert "*/ int x" not in translate(program, sources=True)
