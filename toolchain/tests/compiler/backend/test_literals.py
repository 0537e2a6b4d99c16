"""`...` in place of values, lists that loops go through, and the numbers of field lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from back_program import compile_text, json_of, program_text

from p4native.switch import Pipeline

TYPES = """
    header o_t { bit<8> x; }
    enum bit<8> color_t { red = 3, green = 0 }
    struct s_t { bit<8> x; bool y; error e; color_t c; o_t o; tuple<bit<8>, bool> t; }
"""
DEFAULTS = {
    "s_t s = ...; hdr.h.a = s.x + 1; if (!s.y && !s.o.isValid()) { hdr.h.b = 7; }": "01070302",
    "s_t s = { 5, ... }; hdr.h.a = s.x; hdr.h.b = s.t[0];": "05000302",
    "s_t s = { y = true, ... }; if (s.y && s.e == error.NoError) { hdr.h.a = s.x; }": "00050302",
    "hdr.h = ...; hdr.h.setValid(); hdr.h.a = 1; hdr.h.b = 2; hdr.h.c = 3;": "01020003",
    "hdr.h = { b = 9, ... };": "00090000",
    "bit<8> z = ...; color_t c = ...; if (c == color_t.green) { hdr.h.a = z; }": "00050302",
    "bit<8> n = 0; hdr.h = { n + 6, ... };": "06000000",
}
LOOPS = {
    "for (bit<8> i in (list<bit<8>>){ 1, hdr.h.a, 8 }) { hdr.h.a = 0; n = n + i; }": "0d",
    "for (bit<8> i in NUMBERS) { n = n * 3 + i; }": "2e",
    "for (bit<8> i in (list<bit<8>>){ 2, hdr.h.b + 1 }) { n = n + i; hdr.h.b = 50; }": "08",
}


def load(document: dict[str, Any], folder: Path) -> Pipeline:
    path = folder / "prog.json"
    path.write_text(json.dumps(document))
    return Pipeline.load(path, quick=True)


@pytest.mark.parametrize("code", DEFAULTS)
def test_dots_stand_for_default_values(code: str, tmp_path: Path) -> None:
    document = json_of(types=TYPES, apply=f"{code} std.egress_spec = 1;")
    ((_, out),) = load(document, tmp_path).process(1, bytes.fromhex("04050302"), 0)
    assert out.hex() == DEFAULTS[code]


@pytest.mark.parametrize("code", LOOPS)
def test_loops_take_a_list_as_it_was_before_them(code: str, tmp_path: Path) -> None:
    document = json_of(
        top="const list<bit<8>> NUMBERS = { 4, 3, 1 };",
        apply=f"bit<8> n = 0; {code} hdr.h.c = (bit<16>)n; std.egress_spec = 1;",
    )
    ((_, out),) = load(document, tmp_path).process(1, bytes.fromhex("04050302"), 0)
    assert out.hex()[6:] == LOOPS[code]


def test_field_lists_are_numbered_by_any_known_value() -> None:
    """Literals, constants, sums and members of an enum with values; in nested structs, too."""
    document = json_of(
        types="""enum bit<8> keep_t { late = 9, early = 4 }
            const bit<8> BOTH = 4;
            struct inner_t { @field_list(keep_t.late) bit<16> i; @field_list(5 + 4) bit<8> j; }""",
        meta="@field_list(BOTH, keep_t.late) bit<8> m; @field_list(keep_t.early) inner_t n;",
        apply="""if (hdr.h.a == 0) { resubmit_preserving_field_list((bit<8>)keep_t.late); }
            else { resubmit_preserving_field_list(BOTH); }""",
    )
    found = {
        fields["name"]: [element["value"][1].split(".", 1)[1] for element in fields["elements"]]
        for fields in document["field_lists"]
    }
    assert found == {"field_list9": ["m", "n.i", "n.j"], "field_list4": ["m", "n.i", "n.j"]}


def test_tables_that_are_not_applied_take_no_names(tmp_path: Path) -> None:
    locals_ = """
        @name("set") action one() { hdr.h.a = 1; }
        @name("set") action two() { hdr.h.a = 2; }
        @name("t") table first { actions = { one; } default_action = one(); }
        @name("t") table second { actions = { two; } default_action = two(); }
    """
    document = json_of(locals=locals_, apply="second.apply(); std.egress_spec = 1;")
    ((_, out),) = load(document, tmp_path).process(1, bytes(4), 0)
    assert out.hex() == "02000000"


def test_a_direct_counter_without_table_counts_nothing() -> None:
    parts = {
        "locals": "direct_counter(CounterType.packets) c; action a() { c.count(); hdr.h.a = 1; }",
        "apply": "a();",
    }
    document, info, errors = compile_text(program_text(**parts))
    assert document is not None and not errors
    assert document["counter_arrays"] == [] and not info.direct_counters
