"""Wide registers read where their variable is used: when, and that it changes nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from back_program import json_of, named

from p4native.switch import Pipeline

FIELDS = "bit<8> at; bit<8> other; bit<80> value;"
ONES = (1 << 80) - 1


def document_of(body: str) -> dict[str, Any]:
    return json_of(
        fields=FIELDS,
        locals=f"register<bit<80>>(4) r; action a() {{ bit<80> x; {body} }}",
        apply="a(); std.egress_spec = 2;",
    )


def copies(document: dict[str, Any]) -> int:
    """Fields of metadata that hold a register's value."""
    scalars = named(document["header_types"], "scalars_0")["fields"]
    return sum(width == 80 for _, width, _ in scalars)


IN_PLACE = {
    "sum": "r.read(x, (bit<32>)hdr.h.at); r.write((bit<32>)hdr.h.at, x + hdr.h.value);",
    "twice": "r.read(x, 1); r.write(1, (x & 0xff) ^ (x << 3)); hdr.h.other = 7;",
    "copied": "r.read(x, (bit<32>)hdr.h.at); hdr.h.value = x; r.write(0, hdr.h.value + 1);",
    "unrelated": "r.read(x, 2); hdr.h.at = 3; r.write(2, x + 5);",
    "branch": """if (hdr.h.at > 1) { r.read(x, 3); r.write(3, x + 1); hdr.h.value = 1; }
                 else { hdr.h.other = 9; r.write(0, 77); }""",
    "condition": "r.read(x, 1); if (x < 40) { r.write(1, 50); } else { r.write(1, 3); }",
}
COPIED = {
    "written between": "r.read(x, 1); r.write(1, hdr.h.value); hdr.h.value = x;",
    "index changed": """r.read(x, (bit<32>)hdr.h.at); hdr.h.at = hdr.h.at + 1;
                        r.write((bit<32>)hdr.h.at, x + 1);""",
    "changed": "r.read(x, 0); x = x + hdr.h.value; hdr.h.value = x; r.write(0, x + x);",
    "one of two ways": "x = 4; if (hdr.h.at > 1) { r.read(x, 1); } r.write(1, x + 1);",
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_no_copy_is_made(name: str) -> None:
    document = document_of(IN_PLACE[name])
    assert copies(document) == 0
    assert "register_read" not in json.dumps(document)


@pytest.mark.parametrize("name", COPIED)
def test_a_copy_is_needed(name: str) -> None:
    assert copies(document_of(COPIED[name])) == 1


@pytest.mark.parametrize("width", [8, 64])
def test_narrow_registers_are_copied(width: int) -> None:
    document = json_of(
        locals=f"register<bit<{width}>>(4) r; action a() {{ bit<{width}> x; r.read(x, 1);"
        " r.write(2, x + 1); }",
        apply="a();",
    )
    assert "register_read" in json.dumps(document)


class Model:
    """What the bodies above mean."""

    def __init__(self) -> None:
        self.r = [0] * 4

    def run(self, name: str, at: int, other: int, value: int) -> tuple[int, int, int]:
        r = self.r
        if name == "sum":
            r[at] = r[at] + value & ONES
        elif name == "twice":
            r[1] = (r[1] & 0xFF) ^ (r[1] << 3 & ONES)
            other = 7
        elif name == "copied":
            value = r[at]
            r[0] = value + 1 & ONES
        elif name == "unrelated":
            at, r[2] = 3, r[2] + 5 & ONES
        elif name == "branch" and at > 1:
            r[3], value = r[3] + 1 & ONES, 1
        elif name == "branch":
            other, r[0] = 9, 77
        elif name == "condition":
            r[1] = 50 if r[1] < 40 else 3
        elif name == "written between":
            r[1], value = value, r[1]
        elif name == "index changed":
            old = r[at]
            at += 1
            r[at % 4] = old + 1 & ONES
        elif name == "changed":
            value = r[0] + value & ONES
            r[0] = value + value & ONES
        else:
            r[1] = (r[1] if at > 1 else 4) + 1 & ONES
        return at, other, value


@pytest.mark.parametrize("name", [*IN_PLACE, *COPIED])
def test_packets_and_registers_are_what_the_program_says(name: str, tmp_path: Path) -> None:
    path = tmp_path / "prog.json"
    path.write_text(json.dumps(document_of({**IN_PLACE, **COPIED}[name])))
    pipeline, model, source = Pipeline.load(path, quick=True), Model(), random.Random(name)
    model.r = [source.getrandbits(80) for _ in range(4)]
    for index, value in enumerate(model.r):
        pipeline.registers.write("I.r", index, value)
    for _ in range(40):
        packet = source.randrange(3), source.randrange(256), source.getrandbits(80)
        ((_, out),) = pipeline.process(1, bytes(packet[:2]) + packet[2].to_bytes(10, "big"), 0)
        at, other, value = model.run(name, *packet)
        assert out == bytes((at, other)) + value.to_bytes(10, "big")
        assert [pipeline.registers.read("I.r", index) for index in range(4)] == model.r
