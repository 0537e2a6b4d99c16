"""Types of expressions: implicit conversions, inference, what calls resolve to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from p4native.compiler import ast
from p4native.compiler.typed import CallKind

Check = Callable[[str], Any]
CORE = """
error { NoError, Other }
match_kind { exact, lpm, ternary }
extern packet_in {
    void extract<T>(out T h);
    void extract<T>(out T h, in bit<32> size);
    T lookahead<T>();
    void advance(in bit<32> size);
}
extern packet_out { void emit<T>(in T h); }
header h_t { bit<8> a; bit<16> b; }
"""


def control(body: str, parameters: str = "inout h_t h", before: str = "", inside: str = "") -> str:
    return f"{CORE}\n{before}\ncontrol c({parameters}) {{ {inside} apply {{ {body} }} }}"


@pytest.mark.parametrize(
    ("body", "text", "type_"),
    [
        ("h.a = 5;", "5", "bit<8>"),
        ("h.a = h.a + 1;", "1", "bit<8>"),
        ("bool f = h.a == 3;", "3", "bit<8>"),
        ("h.a = h.a << 3;", "3", "int"),
        ("h.b = h.a ++ h.a;", "h.a ++ h.a", "bit<16>"),
        ("h.a = h.b[9:2];", "h.b[9:2]", "bit<8>"),
        ("h.a = h.b[h.a +: 8];", "h.b[h.a +: 8]", "bit<8>"),
        ("h.a = h.a == 0 ? 1 : h.a;", "1", "bit<8>"),
        ("h = { 1, 2 };", "{ 1, 2 }", "h_t"),
        ("h = { 1, 2 };", "2", "bit<16>"),
        ("h = { b = 7, a = 2 };", "7", "bit<16>"),
        ("h = {#};", "{#}", "h_t"),
        ("h = { 1, ... };", "1", "bit<8>"),
        ("tuple<bit<4>, bool> t = { 3, true };", "3", "bit<4>"),
        ("bool f = h == { 1, 2 };", "2", "bit<16>"),
        ("bit<1> x = (bit<1>) h.isValid();", "h.isValid()", "bool"),
    ],
)
def test_types_of_expressions(check: Check, body: str, text: str, type_: str) -> None:
    assert check(control(body)).type_of(text) == type_


def test_enum_becomes_its_number(check: Check) -> None:
    before = "enum bit<8> e { a = 1 }"
    checked = check(control("h.a = x; h.a = e.a; h.b = h.b + 1;", "inout h_t h, in e x", before))
    variable = checked.expression("x")
    assert str(checked.program.type_of[variable]) == "e"
    assert str(checked.program.implicit_cast[variable]) == "bit<8>"
    constant = checked.expression("e.a")
    assert checked.program.const_value[constant] == 1
    assert constant not in checked.program.implicit_cast


def test_new_types_are_distinct(
    check: Check, errors_of: Callable[[str], list[tuple[int, str]]]
) -> None:
    before = "type bit<8> byte;"
    check(
        control(
            "x = (byte) h.a; h.a = (bit<8>) x; bool f = x == (byte) 3;",
            "inout h_t h, inout byte x",
            before,
        )
    )
    assert errors_of(control("x = h.a;", "inout h_t h, inout byte x", before))


def call(checked: Any, method: str, number: int = 0) -> Any:
    found = [i for i in checked.program.calls.values() if i.method == method]
    return found[number]


def test_type_arguments_are_inferred(check: Check) -> None:
    before = "extern void hash<O, T, D, M>(out O r, in T base, in D data, in M max);"
    checked = check(control("hash(h.b, 16w0, { h.a, h.b, 8w3 }, 32w10);", before=before))
    info = call(checked, "hash")
    assert [str(t) for t in info.type_arguments] == [
        "bit<16>",
        "bit<16>",
        "tuple<bit<8>, bit<16>, bit<8>>",
        "bit<32>",
    ]
    assert info.kind is CallKind.EXTERN_FUNCTION
    assert info.argument("max") is checked.expression("32w10")


def test_number_takes_the_type_another_argument_gives(check: Check) -> None:
    before = "extern void random<T>(out T r, in T low, in T high);"
    checked = check(control("random(h.b, 0, 9);", before=before))
    assert checked.type_of("9") == "bit<16>"


def test_result_type_is_inferred_from_use(check: Check) -> None:
    text = CORE + (
        "parser p(packet_in k, out h_t h) { state start { bit<32> x = k.lookahead();"
        " h.a = k.lookahead<bit<8>>(); transition accept; } }"
    )
    checked = check(text)
    results = [str(i.result) for i in checked.program.calls.values()]
    assert results == ["bit<32>", "bit<8>"]


def test_overloads_by_number_and_by_name(check: Check) -> None:
    text = CORE + (
        "header v_t { bit<8> n; varbit<64> v; }"
        "parser p(packet_in k, out h_t h, out v_t v) { state start { k.extract(h);"
        " k.extract(v, 32); k.extract(size = 8, h = v); transition accept; } }"
    )
    checked = check(text)
    counts = [len(i.arguments) for i in checked.program.calls.values()]
    names = [[b.parameter.name for b in i.arguments] for i in checked.program.calls.values()]
    assert counts == [1, 2, 2]
    assert names[2] == ["h", "size"]
    assert all(i.kind is CallKind.EXTERN_METHOD for i in checked.program.calls.values())


def test_methods_of_a_generic_extern(check: Check) -> None:
    before = "extern reg<T> { reg(bit<32> size); void read(out T v, in bit<32> i); }"
    checked = check(control("r.read(h.b, 3);", before=before, inside="reg<bit<16>>(8) r;"))
    info = call(checked, "read")
    assert [str(b.parameter.type) for b in info.arguments] == ["bit<16>", "bit<32>"]
    assert {p.name: str(t) for p, t in info.bindings.items()} == {"T": "bit<16>"}


def test_constructor_infers_type_arguments(check: Check) -> None:
    before = "extern box<T> { box(T first); T get(); }"
    checked = check(control("h.b = b.get();", before=before, inside="box(16w3) b;"))
    assert str(call(checked, "get").result) == "bit<16>"


def test_optional_and_default_arguments(check: Check) -> None:
    before = "extern void f(in bit<8> x, @optional in bit<8> y, in bit<8> z = 3);"
    checked = check(control("f(1); f(x = 1, z = 4);", before=before))
    first, second = (call(checked, "f", n) for n in (0, 1))
    assert first.argument("y") is None
    assert checked.program.const_value[first.argument("z")] == 3
    assert checked.program.const_value[second.argument("z")] == 4


def test_don_t_care_for_an_output(check: Check) -> None:
    before = "void f(out bit<8> x) { x = 1; }"
    checked = check(control("f(_);", before=before))
    assert call(checked, "f").arguments[0].value is None


@pytest.mark.parametrize(
    ("body", "kind", "method"),
    [
        ("a(3);", CallKind.ACTION, "a"),
        ("f();", CallKind.FUNCTION, "f"),
        ("t.apply();", CallKind.TABLE_APPLY, "apply"),
        ("i.apply(h);", CallKind.CONTROL_APPLY, "apply"),
        ("inner.apply(h);", CallKind.CONTROL_APPLY, "apply"),
        ("h.setInvalid();", CallKind.HEADER_METHOD, "setInvalid"),
        ("s.pop_front(2);", CallKind.STACK_METHOD, "pop_front"),
    ],
)
def test_kinds_of_calls(check: Check, body: str, kind: CallKind, method: str) -> None:
    before = "void f() {} control inner(inout h_t x) { apply {} }"
    inside = "action a(bit<8> d) { h.a = d; } table t { actions = { a; } } inner() i;"
    checked = check(control(body, "inout h_t h, inout h_t[4] s", before, inside))
    assert [(i.kind, i.method) for i in checked.program.calls.values()] == [(kind, method)]


TABLE = """
    action a(bit<8> d) { h.a = d; }
    action b(in bit<16> x, bit<8> d) {}
    table t {
        key = { h.a: exact; h.b: ternary; }
        actions = { a; b(h.b); }
        default_action = b(h.b, 9);
        const entries = { (1, 2 &&& 3): a(7); (_ , _): b(h.b, 4); }
    }
"""


def test_actions_of_tables_are_bound(check: Check) -> None:
    checked = check(control("t.apply();", inside=TABLE.replace("(_ , _)", "(5, _)")))
    table = checked.declaration("t", ast.TableDeclaration)
    listed, default = table.actions[1], table.default_action
    assert [b.parameter.name for b in checked.program.actions[listed]] == ["x"]
    bound = checked.program.actions[default]
    assert [b.parameter.name for b in bound] == ["x", "d"]
    assert checked.program.const_value[bound[1].value] == 9
    assert checked.program.decl_of[default] is checked.declaration("b", ast.ActionDeclaration)
    assert checked.program.decl_of[table.entries[0].action].name == "a"
    assert checked.type_of("2") == "bit<16>"


def test_names_refer_to_declarations(check: Check) -> None:
    checked = check(control("bit<8> x = h.a; { bit<8> x = 3; h.a = x; } h.a = x;"))
    uses = [
        checked.program.decl_of[n]
        for n in checked.nodes(ast.NameExpression)
        if n.name == "x" and n in checked.program.decl_of
    ]
    outer, inner = [n for n in checked.nodes(ast.Variable) if n.name == "x"]
    assert uses == [inner, outer]
    member = checked.expression("h.a")
    assert checked.program.decl_of[member].name == "a"


def test_apply_result(check: Check) -> None:
    inside = "action a() {} action b() {} table t { actions = { a; b; } }"
    body = "if (t.apply().hit) {} switch (t.apply().action_run) { a: {} b: {} default: {} }"
    checked = check(control(body, inside=inside))
    assert checked.type_of("t.apply().hit") == "bool"
    switch = checked.nodes(ast.Switch)[0]
    labels = [checked.program.decl_of[c.label].name for c in switch.cases[:2]]
    assert labels == ["a", "b"]


def test_generic_struct(check: Check) -> None:
    before = "struct pair<T, U> { T first; U second; }"
    checked = check(control("pair<bit<8>, bool> p = { 3, true }; h.a = p.first;", before=before))
    assert checked.type_of("p") == "pair<bit<8>, bool>"
    assert checked.type_of("p.first") == "bit<8>"


def test_generic_function_is_typed_at_each_call(check: Check) -> None:
    before = "T pick<T>(in bool c, in T a, in T b) { return c ? a : b; }"
    checked = check(control("h.a = pick(true, h.a, 3); h.b = pick(false, 4, h.b);", before=before))
    assert [str(i.result) for i in checked.program.calls.values()] == ["bit<8>", "bit<16>"]


def test_select_keys_take_the_subjects_types(check: Check) -> None:
    text = CORE + (
        "parser p(packet_in k, out h_t h) { value_set<bit<8>>(4) vs; state start { k.extract(h);"
        " transition select(h.a, h.b) { (1, 2 &&& 7): accept; (vs, 3 .. 4): accept; _: reject; } }"
        " }"
    )
    checked = check(text)
    assert checked.type_of("2") == "bit<16>"
    assert checked.type_of("3 .. 4") == "set<bit<16>>"
    assert checked.type_of("vs") == "set<bit<8>>"


def test_stack_properties(check: Check) -> None:
    text = CORE + (
        "parser p(packet_in k, out h_t[4] s) { state start { k.extract(s.next);"
        " transition select(s.last.a, s.lastIndex) { (0, 3): accept; _: start; } } }"
    )
    checked = check(text)
    assert checked.type_of("s.next") == "h_t"
    assert checked.type_of("s.lastIndex") == "bit<32>"
    assert checked.type_of("3") == "bit<32>"


def test_states_are_resolved(
    check: Check, errors_of: Callable[[str], list[tuple[int, str]]]
) -> None:
    text = (
        "parser p(in bit<8> x) { state start { transition select(x) { 1: a; 2: accept; } }"
        " state a { transition start; } }"
    )
    checked = check(text)
    found = {r.name: checked.program.decl_of.get(r) for r in checked.nodes(ast.StateRef)}
    start, a = checked.nodes(ast.ParserState)
    assert found == {"a": a, "start": start, "accept": None}
    assert errors_of(text.replace("1: a", "1: b")) == [(1, "there is no state 'b'")]


def test_outputs_are_never_converted(
    errors_of: Callable[[str], list[tuple[int, str]]],
) -> None:
    before = "enum bit<8> e { a = 1 } void f(out bit<8> x) { x = 1; }"
    ((_, message),) = errors_of(control("f(x);", "inout h_t h, inout e x", before))
    assert message == "out parameter 'x' has type bit<8>, but this is e"


def test_reachable_states(check: Check) -> None:
    text = "parser p() { state start { transition b; } state a { transition b; } state b {} }"
    checked = check(text)
    (reached,) = checked.program.parser_reachable.values()
    assert reached == {"start", "b"}


def test_abstract_methods_see_this(check: Check) -> None:
    text = (
        "extern e { e(); bit<8> get(); abstract bit<8> f(in bit<8> x); }"
        "e() o = { bit<8> f(in bit<8> x) { return this.get() + x; } };"
    )
    checked = check(text)
    assert call(checked, "get").kind is CallKind.EXTERN_METHOD
