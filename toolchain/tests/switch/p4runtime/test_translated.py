"""Types that controllers see wider than the program has them (`@p4runtime_translation`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
import grpc
from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity

from p4native.compiler.command import main as compile_p4
from p4native.switch.p4runtime.text import read_p4info

assert p4native.switch.p4runtime

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
@p4runtime_translation("", 32) type bit<9> port_t;
%s header in_t { %s port; bit<7> rest; }
header h_t { bit<8> a; }
struct H { in_t i; h_t h; }
struct M { port_t from; }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); m.from = (port_t)s.ingress_port; transition accept; }
}
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t s) {
    action go(port_t port) { s.egress_spec = (bit<9>)port; }
    table t { key = { m.from : exact; } actions = { go; } }
    apply { t.apply(); }
}
control E(inout H hdr, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def config(folder: Path, annotation: str, port: str) -> Any:
    source, json, p4info = folder / "t.p4", folder / "t.json", folder / "t.txtpb"
    source.write_text(PROGRAM % (annotation, port))
    assert compile_p4([str(source), "-o", str(json), "--p4runtime-files", str(p4info)]) == 0
    return p4runtime_pb2.ForwardingPipelineConfig(
        p4info=read_p4info(p4info.read_bytes()), p4_device_config=json.read_bytes()
    )


def entry(info: Any, key: bytes, port: bytes) -> Entity:
    entity = Entity()
    entity.table_entry.table_id = info.tables[0].preamble.id
    entity.table_entry.match.add(field_id=1).exact.value = key
    go = next(action for action in info.actions if action.preamble.alias == "go")
    entity.table_entry.action.action.action_id = go.preamble.id
    entity.table_entry.action.action.params.add(param_id=1, value=port)
    return entity


def test_values_are_the_programs_own(switch_server: Any, tmp_path: Path) -> None:
    made = config(tmp_path, "", "bit<9>")
    assert made.p4info.tables[0].match_fields[0].bitwidth == 32
    client = switch_server.client()
    client.arbitrate(1)
    client.configure("VERIFY_AND_COMMIT", made)
    written = entry(made.p4info, b"\x05", b"\x01\x23")
    client.write(("INSERT", written))
    assert switch_server.pipeline.process(5, b"!") == [(0x123, b"!")]
    assert client.read(Entity(table_entry={})) == [written]
    for wrong in (entry(made.p4info, b"\x02\0", b"\1"), entry(made.p4info, b"\1", b"\x02\0")):
        assert client.refused(("INSERT", wrong))[0][0] == "INVALID_ARGUMENT"


def test_packet_metadata_of_such_a_type_is_refused(switch_server: Any, tmp_path: Path) -> None:
    made = config(tmp_path, '@controller_header("packet_in")', "port_t")
    client = switch_server.client()
    client.arbitrate(1)
    with pytest.raises(grpc.RpcError) as caught:
        client.configure("VERIFY", made)
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "port of a translated type" in caught.value.details()
