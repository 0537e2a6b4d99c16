"""P4 programs for tests: their own part only, one header `h` in, out as it is then."""

from __future__ import annotations

import contextlib
import io
import tempfile
from functools import cache
from pathlib import Path

from p4native.compiler.command import main as compile_p4
from p4native.switch import Pipeline

FRAME = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ {fields} }}
struct H {{ h_t h; }}
struct M {{ {metadata} }}
{prelude}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t s) {{
    {values}
    state start {{ p.extract(hdr.h); transition {following} }}
    {states}
}}
control V(inout H hdr, inout M m) {{ apply {{ }} }}
control C(inout H hdr, inout M m) {{ apply {{ }} }}
control I(inout H hdr, inout M m, inout standard_metadata_t s) {{ {ingress} }}
control E(inout H hdr, inout M m, inout standard_metadata_t s) {{ {egress} }}
control D(packet_out p, in H hdr) {{ apply {{ p.emit(hdr.h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
DEFAULTS = {
    "fields": "bit<8> a; bit<8> b; bit<16> c;",
    "prelude": "",
    "metadata": "bit<8> x;",
    "values": "",
    "following": "accept;",
    "states": "",
    "egress": "apply { }",
}


@cache
def program_json(**parts: str) -> str:
    """What our compiler makes of FRAME with these parts."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
        source, target = Path(folder) / "test.p4", Path(folder) / "test.json"
        source.write_text(FRAME.format(**{**DEFAULTS, **parts}))
        assert compile_p4([str(source), "-o", str(target)]) == 0, said.getvalue()
        return target.read_text()


def instance(tmp_path: Path, **parts: str) -> Pipeline:
    """An instance of the program."""
    path = tmp_path / "test.json"
    path.write_text(program_json(**parts))
    return Pipeline.load(path, quick=True)
