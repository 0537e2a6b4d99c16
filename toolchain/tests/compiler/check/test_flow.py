"""Warnings from control flow: unset variables, unreachable statements."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Warnings = Callable[[str], list[tuple[int, str]]]
UNSET = "uninitialized-use"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("bit<8> x;\ny = x;", [(2, UNSET)]),
        ("bit<8> x = 1;\ny = x;", []),
        ("bit<8> x;\nx = 1;\ny = x;", []),
        ("bit<8> x;\nif (c) x = 1;\ny = x;", [(3, UNSET)]),
        ("bit<8> x;\nif (c) x = 1; else x = 2;\ny = x;", []),
        ("bit<8> x;\nif (c) return;\nelse x = 2;\ny = x;", []),
        ("bit<8> x;\nif (c) return; else x = 2;\ny = x;", []),
        ("bit<8> x;\nf(x);\ny = x;", []),
        ("bit<8> x;\ng(x);\ny = x;", [(2, UNSET)]),
        ("bit<8> x;\nx += 1;\ny = x;", [(2, UNSET)]),
        ("bit<8> x;\nx[3:0] = 1;\ny = x;", []),
        ("bit<8> x;\nswitch (y) { 1: { x = 1; } 2: { x = 2; } }\ny = x;", [(3, UNSET)]),
        ("bit<8> x;\nswitch (y) { 1: { x = 1; } default: { x = 2; } }\ny = x;", []),
        ("bit<8> x;\nfor (bit<8> i in 1 .. 3) x = i;\ny = x;", [(3, UNSET)]),
        ("bit<8> x;\nif (true) x = 1;\ny = x;", []),
        ("bit<8> x;\nif (false) x = 1;\ny = x;", [(3, UNSET)]),
        ("p_t p;\np.a = 1;\ny = sum(p);", [(3, UNSET)]),
        ("p_t p;\np.a = 1; p.b = 2;\ny = sum(p);", []),
        ("return;\ny = 1;", [(2, "unreachable")]),
        ("if (c) { return; } else { return; }\ny = 1;", [(2, "unreachable")]),
        ("if (c) { return; }\ny = 1;", []),
        ("for (bit<8> i in 1 .. 3) { break;\ny = 1; }", [(2, "unreachable")]),
    ],
)
def test_in_functions(warnings_of: Warnings, body: str, expected: list[tuple[int, str]]) -> None:
    before = "void f(out bit<8> v) { v = 1; } void g(inout bit<8> v) { v = v + 1; }"
    before += "struct p_t { bit<8> a; bit<8> b; } bit<8> sum(in p_t p) { return p.a + p.b; }"
    text = f"{before} void run(inout bit<8> y, in bool c) {{ {body} }}"
    assert warnings_of(text) == expected


def test_output_never_set(warnings_of: Warnings) -> None:
    text = "void f(in bool c,\nout bit<8> v) { if (c) v = 1; }"
    assert warnings_of(text) == [(2, "uninitialized-out-param")]


def test_shadowing(warnings_of: Warnings) -> None:
    text = "const bit<8> k = 1;\nvoid f(inout bit<8> y) { bit<8> k = 2; y = k; }"
    assert warnings_of(text) == [(2, "shadow")]


def test_action_and_apply_and_state(warnings_of: Warnings) -> None:
    text = (
        "control c(inout bit<8> y) {\n"
        "action a() { bit<8> p; y = p; }\n"
        "apply { bit<8> q;\ny = q; } }\n"
        "parser r(out bit<8> y) { state start { bit<8> s;\ny = s; transition accept; } }"
    )
    assert warnings_of(text) == [(2, UNSET), (4, UNSET), (6, UNSET)]


INVALID = "invalid-header"
HEADERS = "header h_t { bit<8> a; bit<8> b; } struct s_t { h_t h; h_t g; h_t[2] k; } "


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("h_t l;\nx = l.a;", [(2, INVALID)]),
        ("h_t l;\nl = s.h;\nx = l.a;", []),
        ("h_t l;\nl.setValid();\nx = l.a;", [(3, UNSET)]),
        ("h_t l;\nl.setValid(); l.a = 1;\nx = l.a;", []),
        ("s.h.setInvalid();\nx = s.h.a;\nx = s.g.a;", [(2, INVALID)]),
        ("s.h.setInvalid();\nif (s.h.isValid()) { x = s.h.a; }", []),
        ("if (x == 1) { s.h.setInvalid(); }\nx = s.h.a;", [(2, INVALID)]),
        ("if (x == 1) { s.h.setInvalid(); }\nif (s.h.isValid()) { x = s.h.a; }", []),
        ("if (x == 1) { s.h.setInvalid(); }\nrevive();\nx = s.h.a;", []),
        ("s.h.setInvalid();\nrevive();\nx = s.h.a;", []),
        ("h_t l;\nrevive();\nx = l.a;", [(3, INVALID)]),
        ("s_t l;\nl.k[0].a = 1;\nx = l.k[1].a;", []),
        ("s_t l;\ns = l;", []),
        ("both(x,\nx);", [(2, "ordering")]),
        ("both(s.h.a,\ns.h.b);", []),
        ("three(s.g.a, x,\nx);", [(2, "ordering")]),
        ("part_last(s.h,\ns.h.a);", [(2, "ordering")]),
        ("part_first(s.h.a,\ns.h);", [(2, "ordering")]),
        ("part_first(s.g.a,\ns.h);", []),
    ],
)
def test_headers_in_controls(
    warnings_of: Warnings, body: str, expected: list[tuple[int, str]]
) -> None:
    actions = (
        "action revive() { s.h.setValid(); }"
        "action both(out bit<8> p, out bit<8> q) { p = 1; q = 2; }"
        "action three(out bit<8> p, out bit<8> q, out bit<8> r) { p = 1; q = 2; r = 3; }"
        "action part_last(out h_t p, out bit<8> q) { p = {1, 2}; q = 2; }"
        "action part_first(out bit<8> p, out h_t q) { p = 2; q = {1, 2}; }"
    )
    text = f"{HEADERS} control c(inout s_t s, inout bit<8> x) {{ {actions} apply {{ {body} }} }}"
    assert warnings_of(text) == expected


def test_headers_along_the_states_of_a_parser(warnings_of: Warnings) -> None:
    text = (
        HEADERS + "extern source { void extract<T>(out T t); }\n"
        "parser p(source f, out s_t s, out bit<8> x) {\n"
        "state start { f.extract(s.h); transition select(s.h.a) { 1: one; 2: two; } }\n"
        "state one { f.extract(s.g); x = s.g.a; transition both; }\n"
        "state two { x = s.g.a;\ntransition both; }\n"
        "state both { x = s.g.b + s.h.b;\ntransition accept; } }"
    )
    assert warnings_of(text) == [(5, INVALID), (7, INVALID)]
