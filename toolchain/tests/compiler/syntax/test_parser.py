"""The grammar: shapes of trees, the ambiguities, recovery after errors, limits on depth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import pytest

from p4native.compiler import ast
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.frontend import parse_text
from p4native.compiler.syntax.cursor import Cursor
from p4native.compiler.syntax.lexer import Token

Parse = Callable[[str], ast.Program]


def shape(node: object) -> object:
    """An expression as nested tuples, for comparison."""
    if isinstance(node, (ast.NameExpression, ast.NamedTypeRef)):
        return ("." if node.absolute else "") + node.name
    if isinstance(node, ast.IntLiteral):
        return node.value
    if isinstance(node, ast.Binary):
        return (shape(node.left), node.operator, shape(node.right))
    if isinstance(node, ast.Unary):
        return (node.operator, shape(node.operand))
    if isinstance(node, ast.Member):
        return (shape(node.base), "." + node.member)
    if isinstance(node, ast.Node):
        parts = [getattr(node, f.name) for f in fields(node) if f.name != "position"]
        return (type(node).__name__, *(shape(p) for p in parts))
    if isinstance(node, tuple):
        return tuple(shape(n) for n in node)
    return node


def expression(parse: Parse, text: str, before: str = "") -> object:
    constant = parse(f"{before} const bit<8> k = {text};").declarations[-1]
    assert isinstance(constant, ast.Constant)
    return shape(constant.value)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c", ("a", "+", ("b", "*", "c"))),
        ("a - b - c", (("a", "-", "b"), "-", "c")),
        ("a ++ b + c", (("a", "++", "b"), "+", "c")),
        ("a << b + c", ("a", "<<", ("b", "+", "c"))),
        ("a & b == c", (("a", "&", "b"), "==", "c")),
        ("a | b ^ c & d", ("a", "|", ("b", "^", ("c", "&", "d")))),
        ("a || b && c == d", ("a", "||", ("b", "&&", ("c", "==", "d")))),
        ("a < b == c > d", (("a", "<", "b"), "==", ("c", ">", "d"))),
        ("-a.b * ~c", (("-", ("a", ".b")), "*", ("~", "c"))),
        ("a >> b > c", (("a", ">>", "b"), ">", "c")),
        ("a > b", ("a", ">", "b")),
        ("(a + b) |+| .c", (("a", "+", "b"), "|+|", ".c")),
    ],
)
def test_precedence(parse: Parse, text: str, tree: object) -> None:
    assert expression(parse, text) == tree


def test_conditional_is_right_associative(parse: Parse) -> None:
    found = expression(parse, "a ? b : c ? d : e")
    assert found == ("Conditional", "a", "b", ("Conditional", "c", "d", "e", False), False)
    found = expression(parse, "a ? b : (c ? d : e)")
    assert found == ("Conditional", "a", "b", ("Conditional", "c", "d", "e", True), False)


def test_cast_binds_tighter_than_operators(parse: Parse) -> None:
    found = expression(parse, "(bit<4>) a + b")
    assert isinstance(found, tuple) and found[1] == "+" and found[0][0] == "Cast"


def test_name_in_parentheses_is_no_cast(parse: Parse) -> None:
    assert expression(parse, "(a) + b") == ("a", "+", "b")


def test_type_name_in_parentheses_is_a_cast(parse: Parse) -> None:
    found = expression(parse, "(a) + b", before="typedef bit<8> a;")
    assert found == ("Cast", "a", ("+", "b"))


def test_member_of_a_type_in_parentheses(parse: Parse) -> None:
    found = expression(parse, "(e.x) - 1", before="enum bit<8> e { x = 1 }")
    assert found == ((("TypeExpression", "e"), ".x"), "-", 1)


def test_inner_variable_hides_a_type(parse: Parse) -> None:
    """After `bit<8> T`, `T` is a value and `(T) + 1` a sum."""
    tree = parse("struct T {} action a() { bit<8> T = 1; T = (T) + 1; }")
    action = tree.declarations[1]
    assert isinstance(action, ast.ActionDeclaration)
    assignment = action.body.statements[1]
    assert isinstance(assignment, ast.Assignment)
    assert shape(assignment.right) == ("T", "+", 1)


def test_less_than_and_type_arguments(parse: Parse) -> None:
    assert expression(parse, "a < b") == ("a", "<", "b")
    call = expression(parse, "f<bit<8>>(a)")
    assert isinstance(call, tuple) and call[0] == "Call" and len(call[2]) == 1
    comparison = expression(parse, "a < e.x", before="enum bit<8> e { x = 1 }")
    assert isinstance(comparison, tuple) and comparison[1] == "<"


def test_closing_two_lists_of_type_arguments(parse: Parse) -> None:
    tree = parse("struct s<T> { T x; } struct o { s<s<bit<8>>> y; tuple<bit<(4 >> 1)>> z; }")
    outer = tree.declarations[1]
    assert isinstance(outer, ast.StructDeclaration)
    assert isinstance(outer.fields[0].type_ref, ast.SpecializedTypeRef)


def test_width_expression_ends_at_the_bracket(parse: Parse) -> None:
    constant = parse("const bit<(n * 32)> k = 0;").declarations[0]
    assert isinstance(constant, ast.Constant)
    assert isinstance(constant.type_ref, ast.BitsTypeRef)
    assert shape(constant.type_ref.width) == ("n", "*", 32)


KEYSETS = """
parser p(in bit<8> x) {
    state start {
        transition select(x, x) {
            (1, 2): accept;
            (1 &&& 3, 4 .. 5): accept;
            (default, _): accept;
            _: reject;
        }
    }
    state one {
        transition select(x) {
            (1 + 2): accept;
            (1 &&& 3): accept;
            4 .. 5: accept;
            default: reject;
        }
    }
}
"""


def test_keysets(parse: Parse) -> None:
    parser = parse(KEYSETS).declarations[0]
    assert isinstance(parser, ast.ParserDeclaration)
    several, one = (s.transition for s in parser.states)
    assert several is not None and one is not None
    kinds = [type(c.keyset).__name__ for c in several.cases]
    assert kinds == ["ListExpression", "ListExpression", "ListExpression", "DefaultKeyset"]
    assert [type(c.keyset).__name__ for c in one.cases] == [
        "Binary",
        "ListExpression",
        "Range",
        "DefaultKeyset",
    ]


LOOPS = """
action a(inout bit<8> x) {
    for (bit<8> i = 0, bit<8> j = 1; i < 5; i += 1, j = j + 2) { x = x + i; continue; }
    @unroll for (bit<8> k in 1 .. 5) x -= k;
    for (bit<8> y in {1, 2}) { break; }
}
"""


def test_loops(parse: Parse) -> None:
    action = parse(LOOPS).declarations[0]
    assert isinstance(action, ast.ActionDeclaration)
    first, second, third = action.body.statements
    assert isinstance(first, ast.For) and len(first.initial) == 2 and len(first.updates) == 2
    assert isinstance(second, ast.ForIn) and second.annotations[0].name == "unroll"
    assert isinstance(second.collection, ast.Range) and second.variable.name == "k"
    assert isinstance(third, ast.ForIn) and isinstance(third.collection, ast.ListExpression)


def test_else_if_chain_is_nested_to_the_right(parse: Parse) -> None:
    action = parse("action a() { if (x) {} else if (y) {} else {} }").declarations[0]
    assert isinstance(action, ast.ActionDeclaration)
    first = action.body.statements[0]
    assert isinstance(first, ast.If) and isinstance(first.otherwise, ast.If)
    assert isinstance(first.otherwise.otherwise, ast.Block)


TABLE = """
control c(inout bit<8> x) {
    action a(bit<8> v) { x = v; }
    table t {
        key = { x: exact @name("n"); x[3:0]: ternary; }
        actions = { a; @defaultonly NoAction; .a; }
        const entries = { (1, 2 &&& 3): a(4) @meta; (_, _): a(5); }
        const default_action = a(1);
        @note size = 1024;
        support_timeout = true;
    }
    apply { t.apply(); }
}
"""


def test_table_properties(parse: Parse) -> None:
    control = parse(TABLE).declarations[0]
    assert isinstance(control, ast.ControlDeclaration)
    table = control.locals[1]
    assert isinstance(table, ast.TableDeclaration)
    assert [k.match_kind.name for k in table.keys] == ["exact", "ternary"]
    assert [(a.name, a.absolute) for a in table.actions] == [
        ("a", False),
        ("NoAction", False),
        ("a", True),
    ]
    assert table.actions[1].annotations[0].name == "defaultonly"
    assert table.entries_constant and table.default_constant and len(table.entries) == 2
    assert [(p.name, p.constant) for p in table.properties] == [
        ("size", False),
        ("support_timeout", False),
    ]


def test_annotations(parse: Parse) -> None:
    text = '@name("x") @free(it\'s [any] (thing)) @kv[a = 1, b = "s"] @list[1, 2,] const bit k = 1;'
    annotations = parse(text).declarations[0].annotations
    assert [a.name for a in annotations] == ["name", "free", "kv", "list"]
    assert isinstance(annotations[0].arguments[0], ast.StringLiteral)
    assert annotations[1].text == ("it", "'", "s", "[", "any", "]", "(", "thing", ")")
    assert [key for key, _ in annotations[2].pairs] == ["a", "b"]
    assert [shape(e) for e in annotations[3].arguments] == [1, 2]


def test_pragma_is_an_annotation(parse: Parse) -> None:
    declaration = parse("@pragma tag one 2\nconst bit k = 1;").declarations[0]
    assert declaration.annotations[0].text == ("one", "2")


def test_keywords_that_may_be_names(parse: Parse) -> None:
    tree = parse("struct s { bit<8> key; bit<8> type; bit<8> state; bit<8> priority; bit list; }")
    struct = tree.declarations[0]
    assert isinstance(struct, ast.StructDeclaration)
    assert [f.name for f in struct.fields] == ["key", "type", "state", "priority", "list"]


def test_extern_forms(parse: Parse) -> None:
    tree = parse(
        "extern fwd; extern e<T> { e(bit<8> n); T get(); abstract void on(in T x); }"
        "extern T make<T>(in T x); extern void f();"
    )
    extern, make, plain = tree.declarations
    assert isinstance(extern, ast.ExternDeclaration)
    assert [(m.name, m.abstract, m.return_type is None) for m in extern.methods] == [
        ("e", False, True),
        ("get", False, False),
        ("on", True, False),
    ]
    assert isinstance(make, ast.FunctionDeclaration) and make.body is None
    assert isinstance(plain, ast.FunctionDeclaration)


def test_typedef_of_a_struct_gives_both(parse: Parse) -> None:
    tree = parse("typedef struct s { bit<8> a; } t; const t k = { 1 };")
    assert [d.name for d in tree.declarations] == ["s", "t", "k"]


def test_compound_assignments(parse: Parse) -> None:
    operators = ["*", "/", "%", "+", "-", "|+|", "|-|", "<<", ">>", "&", "|", "^"]
    body = " ".join(f"x {op}= 1;" for op in operators)
    action = parse(f"action a(inout bit<8> x) {{ {body} }}").declarations[0]
    assert isinstance(action, ast.ActionDeclaration)
    found = [s.operator for s in action.body.statements if isinstance(s, ast.Assignment)]
    assert found == operators


def test_positions_span_expressions(parse: Parse) -> None:
    constant = parse("const bit<8> k = aa + b.cc[1];").declarations[0]
    assert isinstance(constant, ast.Constant)
    place = constant.value.position
    assert (place.line, place.column, place.length) == (1, 18, 12)


def test_errors_in_several_declarations_are_all_reported(
    errors_of: Callable[[str], list[tuple[int, str]]],
) -> None:
    text = (
        "struct s { bit<8> ; bit<4> b }\n"
        "action a() { x = ; y == 1; if }\n"
        "control c() { bit<8> ; apply { t.apply( } }\n"
        "bad bad bad;\n"
        "const bit<8> k = ;\n"
    )
    lines = [line for line, _ in errors_of(text)]
    assert set(lines) == {1, 2, 3, 4, 5}


NESTED = {
    "parentheses": ("const bit<8> k = ", "(", "1", ")", ";"),
    "unary": ("const bit<8> k = ", "-", "1", "", ";"),
    "conditional": ("const bit<8> k = ", "true ? 1 : ", "1", "", ";"),
    "braces": ("const bit<8> k = ", "{", "1", "}", ";"),
    "calls": ("const bit<8> k = ", "f(", "1", ")", ";"),
    "indices": ("const bit<8> k = ", "a[", "1", "]", ";"),
    "casts": ("const bit<8> k = ", "(bit<8>)", "1", "", ";"),
    "blocks": ("action a() ", "{", "", "}", ""),
    "ifs": ("action a() { ", "if (true) ", ";", "", " }"),
    "tuples": ("const ", "tuple<", "bit<8>", ">", " k = 1;"),
    "widths": ("const ", "bit<(f<", "bit<8>", ">(1))>", " k = 1;"),
    "typedefs": ("struct T {} const bit<8> k = ", "(a < T<bit<", "8", ">>(1))", ";"),
}


@pytest.mark.long(but=["300-parentheses", "5000-typedefs", "5000-parentheses", "300-casts"])
@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("depth", [300, 5000])
def test_hostile_nesting_is_a_diagnostic(
    name: str, depth: int, errors_of: Callable[[str], list[tuple[int, str]]]
) -> None:
    start, opening, inner, closing, end = NESTED[name]
    text = start + opening * depth + inner + closing * depth + end
    assert any("nested too deeply" in message for _, message in errors_of(text))


def test_ambiguous_nesting_is_read_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """`a < T<...>(` may be a call or a comparison at every level: no level is tried twice."""
    steps = 0
    advance = Cursor.advance

    def counted(cursor: Cursor) -> Token:
        nonlocal steps
        steps += 1
        assert steps < 5000
        return advance(cursor)

    monkeypatch.setattr(Cursor, "advance", counted)
    diagnostics = Diagnostics()
    parse_text("struct T {} const bit k = " + "a < T<bit<(" * 12, "test.p4", diagnostics)
    assert diagnostics.failed


@pytest.mark.parametrize("piece", [" + 8w1", ".b", "[1]", "(1)", " ++ 8w1", " && x"])
def test_hostile_chains_are_a_diagnostic(
    piece: str, errors_of: Callable[[str], list[tuple[int, str]]]
) -> None:
    found = errors_of(f"const bit<8> k = a{piece * 6000};")
    assert [m for _, m in found] == ["expression too long: more than 4000 operators"]


def test_long_chains_within_the_limit_compile(check: Callable[..., object]) -> None:
    check("const bit<8> k = " + " + ".join(["8w1"] * 3900) + ";")
    branches = " else ".join(f"if (x == {n}) return;" for n in range(2000))
    check(f"action a(in bit<32> x) {{ {branches} }}")
