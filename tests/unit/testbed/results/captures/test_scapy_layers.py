"""Scapy layers of compiled programs: they read what the programs' parsers read."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agglab.testbed.cli.main import main
from agglab.testbed.results.captures.scapy_layers import class_name, layers
from agglab.testbed.run.programs.prepare import compile_points
from agglab.testbed.run.programs.program import compile_program
from agglab.testbed.scenario import load
from p4native.stf import Binder
from p4native.stf.described import described

from .pcap_frames import frames_of

HEADER = re.compile(r"([\w.\[\]]+)\(([^()]+)\)")
ROOT = Path(__file__).resolve().parents[5]
SYSTEMS = ("switchml", "atp", "esa", "omnireduce", "netrpc")
RUN = """
name: captured
backend: virtual
system: {system}
topology: {{workers: 2}}
switch: {{pcap: true}}
workload: {{elements: 3000, rounds: 1, dtype: int32}}
"""


def module_of(description: dict[str, Any]) -> ModuleType:
    made = ModuleType("made")
    exec(compile(layers(description, "made"), "made.py", "exec"), made.__dict__)
    return made


def decoded(module: ModuleType, frame: bytes) -> list[tuple[str, int]]:
    """(field, value) of each layer of a frame, in their order."""
    layer, fields = module.decode(frame), []
    while isinstance(layer, module.Header):
        fields += [
            (f"{layer.origin}.{each.name}", layer.getfieldval(each.name))
            for each in layer.fields_desc
        ]
        layer = layer.payload
    return fields


def in_words(binder: Binder, frame: bytes) -> list[tuple[str, int]]:
    """The fields of the protocol's own headers, as packet tests show them."""
    fields = []
    for header, items in HEADER.findall(described(binder, frame)):
        for item in items.split(", "):
            name, value = item.split()
            fields.append((f"{header.partition('[')[0]}.{name}", int(value, 0)))
    return fields


@pytest.mark.long(but=["switchml"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_packets_of_a_system_are_read_field_for_field(system: str, tmp_path: Path) -> None:
    scenario = tmp_path / "captured.yaml"
    scenario.write_text(RUN.format(system=system))
    assert main(["run", str(scenario), "--results", str(tmp_path)]) == 0
    (prepared,) = compile_points(load(scenario).points)
    description = next(iter(prepared.programs.values())).description
    module, binder = module_of(description), Binder(description)
    frames = frames_of(tmp_path / "captured/latest/pcap/s1-eth1_in.pcap")
    assert len(frames) > 2
    for frame in frames:
        shown = in_words(binder, frame)
        assert len(shown) > 4
        assert [each for each in decoded(module, frame) if each in shown] == shown
        assert bytes(module.decode(frame)) == frame


PARTS = """
#include <core.p4>
#include <v1model.p4>
header first_t { bit<8> kind; bit<8> size; }
header name_t { varbit<64> text; }
header item_t { bit<7> value; bit<1> more; }
header end_t { bit<16> end; }
struct headers_t { first_t first; name_t name; item_t[3] items; end_t end; }
struct metadata_t { bit<8> kind; }
parser P(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.first);
        m.kind = h.first.kind;
        p.extract(h.name, (bit<32>)h.first.size << 3);
        transition select(m.kind) { 1: item; 2 &&& 0xfe: last; default: accept; }
    }
    state item {
        p.extract(h.items.next);
        transition select(h.items.last.more) { 1: item; default: look; }
    }
    state look { transition select(p.lookahead<bit<8>>()) { 0xee: last; default: accept; } }
    state last { p.extract(h.end); transition accept; }
}
control V(inout headers_t h, inout metadata_t m) { apply { } }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("parts") / "parts.p4"
    path.write_text(PARTS)
    return module_of(compile_program(path, "agglab", {}).description)


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        ("0100 02", ["first", "name", "items"]),
        ("0102 6162 03 05 02 ee01 ff", ["first", "name", "items", "items", "items", "end"]),
        ("0300 0007", ["first", "name", "end"]),
        ("0401 61 0007", ["first", "name"]),
    ],
)
def test_stacks_varbits_metadata_masks_and_lookahead_are_followed(
    parts: ModuleType, frame: str, shown: list[str]
) -> None:
    layer, names = parts.decode(bytes.fromhex(frame)), []
    while isinstance(layer, parts.Header):
        names.append(layer.origin)
        if layer.origin == "name":
            assert layer.text == bytes.fromhex(frame)[2 : 2 + layer.underlayer.size]
        layer = layer.payload
    assert names == shown


def test_layers_put_together_lead_to_each_other() -> None:
    program = compile_program(ROOT / "labs/02-sum/solution.p4", "agglab", {})
    made = module_of(program.description)
    packet = made.ethernet() / made.ipv4() / made.udp() / made.course(kind=1, v3=7)
    read = made.decode(bytes(packet))
    assert (read.type, read[made.udp].dst_port, read[made.course].v3) == (0x800, 48864, 7)


def test_a_module_is_for_one_program(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--set", "sweep={switch.lanes: [64, 128]}", "--set", "expect={}"]
    assert main(["dissector", "quickstart", "--scapy", *settings]) == 2
    assert "has 2 programs, and a module of scapy layers is for one" in capsys.readouterr().err


def test_a_header_may_have_a_name_of_pythons() -> None:
    names = ("class", "a.b", "course", "9; import os", "x\ny")
    made = [class_name(name) for name in names]
    assert made == ["class_", "a_b", "course", "_9__import_os", "x_y"]
