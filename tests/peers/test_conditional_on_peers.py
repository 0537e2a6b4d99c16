"""Where our compiler warns of a chain of ?:, p4c refuses it or groups it otherwise; only there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pairs import COMPILERS, need

pytestmark = pytest.mark.peers
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; bit<8> n; }}
struct headers {{ h_t h; }}
struct none {{}}
parser P(packet_in p, out headers h, inout none m, inout standard_metadata_t s) {{
    state start {{ p.extract(h.h); transition accept; }}
}}
control C(inout headers h, inout none m) {{ apply {{}} }}
control I(inout headers h, inout none m, inout standard_metadata_t s) {{
    apply {{
        bool a = h.h.a > 1;
        bool b = h.h.b > 1;
        bool r = false;
        {statement}
        if (r) {{ h.h.n = 7; }}
        s.egress_spec = 1;
    }}
}}
control E(inout headers h, inout none m, inout standard_metadata_t s) {{ apply {{}} }}
control D(packet_out p, in headers h) {{ apply {{ p.emit(h.h); }} }}
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
# (statement, whether p4c takes it, whether we warn)
STATEMENTS = [
    ("h.h.n = a ? 8w1 : b ? 8w2 : 8w3;", False, True),
    ("h.h.n = a ? 8w1 : (b ? 8w2 : 8w3);", True, False),
    ("h.h.n = (a ? b : a) ? 8w2 : 8w3;", True, False),
    ("h.h.n = a ? b ? 8w1 : 8w2 : 8w3;", True, False),
    ("h.h.n = a ? 8w1 : h.h.a + (b ? 8w2 : 8w3);", True, False),
    ("r = a ? b : b ? a : b;", True, True),
    ("r = a ? b : (b ? a : b);", True, False),
]


@pytest.mark.parametrize("statement, taken, warned", STATEMENTS)
def test_a_chain_of_conditionals(statement: str, taken: bool, warned: bool, tmp_path: Path) -> None:
    need("p4c-bm2-ss")
    source, product = tmp_path / "chain.p4", tmp_path / "chain.json"
    source.write_text(PROGRAM.format(statement=statement))
    said = {}
    for name, command in COMPILERS.items():
        words = [*command, str(source), "-o", str(product)]
        said[name] = subprocess.run(words, capture_output=True, text=True)
    assert (said["p4c"].returncode == 0) == taken, said["p4c"].stderr
    assert said["agglab"].returncode == 0
    assert ("[--Wdisable=ordering]" in said["agglab"].stderr) == warned, said["agglab"].stderr
