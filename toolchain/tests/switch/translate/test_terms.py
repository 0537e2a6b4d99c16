"""The trace says of every condition what each of its terms was, with the values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from p4native.compiler.command import main as compile_p4
from p4native.switch import Detail, Pipeline

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; int<8> s; bit<72> wide; }
header o_t { bit<8> x; }
struct headers { h_t h; o_t o; }
struct metadata { }
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start {
        p.extract(h.h);
        transition select(h.h.a) { 255: more; default: accept; }
    }
    state more { p.extract(h.o); transition accept; }
}
control C(inout headers h, inout metadata m) { apply { } }
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    action nothing() { }
    %s
    apply {
        %s
    }
}
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
TABLE = "table t%s { key = { h.h.a: exact; } actions = { nothing; } default_action = nothing; }"


def conditional(conditions: list[str], is_before_table: bool) -> tuple[str, str]:
    """Declarations and statements with an `if` for each condition: a node of the control flow if a
    table follows, and else a step of an action."""
    if not is_before_table:
        return "", "\n".join(f"if ({each}) {{ s.egress_spec = 9; }}" for each in conditions)
    tables = "\n".join(TABLE % number for number, _ in enumerate(conditions))
    ifs = (f"if ({each}) {{ t{number}.apply(); }}" for number, each in enumerate(conditions))
    return tables, "\n".join(ifs)


FRAME = bytes([3, 250, 0x80, *range(9)])


def lines(tmp_path: Path, conditions: list[str], is_before_table: bool) -> list[str]:
    """What the trace says of FRAME in the ingress control."""
    source, json = tmp_path / "terms.p4", tmp_path / "terms.json"
    source.write_text(PROGRAM % conditional(conditions, is_before_table))
    assert compile_p4([str(source), "-o", str(json)]) == 0
    with Pipeline.load(json, detail=Detail.TRACE) as pipeline:
        pipeline.process(0, FRAME)
        said = pipeline.take_messages()
    return [line.strip() for line in said[said.index("ingress") + 1 : said.index("egress")]]


CONDITIONS = (
    ("h.h.a == 3", ["h.a == 3: 3 == 3, true"]),
    ("h.h.a != h.h.b", ["h.a != h.b: 3 != 250, true"]),
    ("h.h.a + h.h.b > 4", ["(h.a + h.b) > 4: 253 > 4, true"]),
    ("h.h.a + h.h.b + 10 > 8", ["((h.a + h.b) + 10) > 8: 7 > 8, false"]),
    ("h.h.b & 0xf == 10", ["(h.b & 15) == 10: 10 == 10, true"]),
    ("h.h.s < 0", ["h.s < 0: -128 < 0, true"]),
    ("h.h.wide == 5", ["h.wide == 5: false"]),
    ("h.o.isValid()", ["o.isValid(): false"]),
    ("!(h.h.a > 3)", ["h.a > 3: 3 > 3, false"]),
    (
        "h.h.a == 1 || (h.h.b >= 250 && !h.o.isValid())",
        ["h.a == 1: 3 == 1, false", "h.b >= 250: 250 >= 250, true", "o.isValid(): false"],
    ),
)
"""Conditions, and the lines on their terms for FRAME."""


@pytest.mark.parametrize("is_before_table", [True, False])
def test_each_term_of_a_condition_is_said(tmp_path: Path, is_before_table: bool) -> None:
    said = lines(tmp_path, [condition for condition, _ in CONDITIONS], is_before_table)
    whole = ("terms.p4", "the condition")
    terms = [e for e in said if e.endswith(("true", "false")) and not e.startswith(whole)]
    assert terms == [line for _, lines_of_one in CONDITIONS for line in lines_of_one]


@pytest.mark.parametrize("is_before_table", [True, False])
def test_a_condition_of_several_terms_is_said_as_a_whole(
    tmp_path: Path, is_before_table: bool
) -> None:
    conditions = ["h.h.a == 3 && h.h.b == 250", "h.h.a == 3 && h.h.b == 251"]
    said = lines(tmp_path, conditions, is_before_table)
    whole = re.compile(r"(?:terms\.p4:.*\bif .*: |the condition is )(true|false)$")
    assert [found[1] for line in said if (found := whole.match(line))] == ["true", "false"]
