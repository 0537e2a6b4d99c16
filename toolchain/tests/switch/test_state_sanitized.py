"""Profiles, meters, digests, value sets and traces under sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

from switch_p4 import program_json

from p4native.switch import Detail, Program
from p4native.switch.build import build_program
from p4native.switch.translate import translate

DRIVER = Path(__file__).with_name("state_driver.c")
PROGRAM = {
    "values": "value_set<bit<8>>(4) one;",
    "following": "select(hdr.h.a) { one: in_one; default: accept; }",
    "states": "state in_one { m.x = 1; transition accept; }",
    "prelude": "struct learn_t { bit<8> a; bit<16> c; }",
    "ingress": """
    action set(bit<8> v, bit<9> port) { hdr.h.b = v; s.egress_spec = port; }
    action_selector(HashAlgorithm.crc16, 64, 16) sel;
    meter(4, MeterType.bytes) cells;
    table t {
        key = { hdr.h.a : exact; hdr.h.c : selector; }
        actions = { set; NoAction; }
        implementation = sel;
    }
    apply {
        bit<32> colour;
        cells.execute_meter((bit<32>)hdr.h.b, colour);
        t.apply();
        digest<learn_t>(1, { hdr.h.a, hdr.h.c });
        log_msg("colour {} {}", {colour, m.x});
    }
    """,
}


def test_nothing_is_read_or_written_out_of_bounds() -> None:
    text = translate(Program.parse(program_json(**PROGRAM)), Detail.TRACE)
    program = build_program(text + DRIVER.read_text())
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
