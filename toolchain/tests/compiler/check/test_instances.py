"""Elaboration: instances, their evaluated arguments and their control-plane names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4native.compiler import ast
from p4native.compiler.fold import evaluate

Check = Callable[[str], Any]
PROGRAM = """
extern reg<T> { reg(bit<32> size); }
reg<bit<8>>(7) shared;
control inner(inout bit<8> x)(bit<32> n, reg<bit<8>> given) {
    reg<bit<16>>(n * 2) r;
    action a() { x = 1; }
    @name("renamed") action b() {}
    @name(".top.absolute") table t { actions = { a; b; } }
    apply { t.apply(); }
}
control other(inout bit<8> x) { apply {} }
control outer(inout bit<8> x)(bit<32> m) {
    inner(m + 1, shared) first;
    @name("again") inner(5, shared) second;
    apply { first.apply(x); second.apply(x); other.apply(x); }
}
control proto(inout bit<8> x);
package top(proto p, bit<8> k);
top(outer(20), 8w3 + 1) main;
"""


def test_tree_of_instances(check: Check) -> None:
    program = check(PROGRAM.replace(".top.absolute", "plain")).program
    main = program.main
    assert main is not None and main.arguments["k"] == 4
    outer = main.arguments["p"]
    assert outer.name == "outer" and outer.arguments == {"m": 20}
    first, second, direct = outer.children.values()
    assert [i.name for i in (first, second, direct)] == [
        "outer.first",
        "outer.again",
        "outer.other",
    ]
    assert first.arguments["n"] == 21 and second.arguments["n"] == 5
    (register,) = first.children.values()
    assert register.name == "outer.first.r" and register.arguments == {"size": 42}
    assert register.parent is first
    assert str(register.type) == "reg<bit<16>>"


def test_objects_given_to_constructors_are_shared(check: Check) -> None:
    program = check(PROGRAM.replace(".top.absolute", "plain")).program
    (shared,) = program.globals.values()
    assert program.main is not None
    inner = list(program.main.arguments["p"].children.values())[:2]
    assert [i.arguments["given"] for i in inner] == [shared, shared]
    assert shared.name == "shared" and shared.arguments == {"size": 7}


def test_names_in_an_instance(check: Check) -> None:
    checked = check(PROGRAM.replace(".top.absolute", "plain"))
    assert checked.program.main is not None
    first = next(iter(checked.program.main.arguments["p"].children.values()))
    names = [first.name_of(d) for d in first.declaration.locals[1:]]
    assert names == ["outer.first.a", "outer.first.renamed", "outer.first.plain"]


def test_absolute_name_of_two_instances_is_refused(
    errors_of: Callable[[str], list[tuple[int, str]]],
) -> None:
    ((line, message),) = errors_of(PROGRAM)
    assert line == 8 and "'top.absolute'" in message


def test_local_objects_given_to_other_instances(check: Check) -> None:
    text = """
    extern reg { reg(); }
    control inner()(reg r) { apply {} }
    control outer() { reg() mine; inner(mine) i; apply { i.apply(); } }
    control proto();
    package top(proto p);
    top(outer()) main;
    """
    program = check(text).program
    assert program.main is not None
    mine, inner = program.main.arguments["p"].children.values()
    assert inner.arguments["r"] is mine and mine.name == "outer.mine"


def test_constructor_parameters_are_evaluated_per_instance(check: Check) -> None:
    text = """
    extern e { e(bit<8> n); }
    control c()(bit<8> n, bool wide) {
        e(wide ? n * 2 : n) o;
        e(n[3:0] ++ 4w1) p;
        apply {}
    }
    control main_c() { c(0x13, true) a; c(0x24, false) b; apply { a.apply(); b.apply(); } }
    control proto();
    package top(proto p);
    top(main_c()) main;
    """
    program = check(text).program
    assert program.main is not None
    blocks = program.main.arguments["p"].children.values()
    values = [[o.arguments["n"] for o in block.children.values()] for block in blocks]
    assert values == [[0x26, 0x31], [0x24, 0x41]]


def test_evaluate_with_constants_of_an_instance(check: Check) -> None:
    text = """
    control c(out bit<8> x)(bit<8> n) { apply { x = n + 1; } }
    control proto(out bit<8> x);
    package top(proto p);
    top(c(41)) main;
    """
    checked = check(text)
    assert checked.program.main is not None
    instance = checked.program.main.arguments["p"]
    assignment = checked.nodes(ast.Assignment)[0]
    assert evaluate(checked.program, assignment.right, {}) is None
    assert evaluate(checked.program, assignment.right, instance.constants) == 42


def test_names_of_objects_made_in_properties_and_of_renamed_blocks(check: Check) -> None:
    text = """
    extern profile { profile(bit<32> n); }
    @name("elsewhere") control c() {
        action a() {}
        table t { actions = { a; } @name("ap") implementation = profile(3); }
        table u { actions = { a; } implementation = profile(4); }
        apply { t.apply(); u.apply(); }
    }
    control proto();
    package top(proto p);
    top(c()) main;
    """
    program = check(text).program
    assert program.main is not None
    block = program.main.arguments["p"]
    assert block.name == "c"
    assert [i.name for i in block.children.values()] == ["ap", "action_profile_0"]


def test_program_without_main_has_none(check: Check) -> None:
    assert check("const bit<8> k = 1;").program.main is None
