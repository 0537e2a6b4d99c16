"""Structured code to flat primitives: run by BMv2's jump rules and compared with the tree."""

from __future__ import annotations

import contextlib

from bmv2_arithmetic import evaluate
from hypothesis import given, settings
from hypothesis import strategies as st

from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.assemble import assemble
from p4native.compiler.source import Position

HERE = Position("t.p4", 1, 1)


def flag(name: str) -> ir.Expr:
    return arithmetic.as_boolean(ir.FieldRef("m", name, 1))


def step(number: int) -> ir.Statement:
    return ir.Primitive(HERE, "step", (ir.Const(number, 8),))


def run_flat(primitives: list[ir.Primitive], fields: dict[str, int]) -> list[int]:
    """BMv2: `_jump` and `_jump_if_zero` go to an absolute index; the end is one past the last."""
    trace: list[int] = []
    index = 0
    while index < len(primitives):
        primitive = primitives[index]
        index += 1
        values = [evaluate(p, fields) for p in primitive.parameters]
        if primitive.op == "_jump":
            index = values[0]
        elif primitive.op == "_jump_if_zero":
            index = values[1] if not values[0] else index
        elif primitive.op == "exit":
            trace.append(-1)
        else:
            trace.append(values[0])
        assert len(trace) < 1000
    assert index == len(primitives)
    return trace


class Leave(Exception):
    pass


def run_tree(body: list[ir.Statement], fields: dict[str, int], trace: list[int]) -> None:
    for statement in body:
        if isinstance(statement, ir.If):
            taken = evaluate(statement.condition, fields)
            run_tree(statement.then if taken else statement.otherwise, fields, trace)
        elif isinstance(statement, ir.Exit):
            trace.append(-1)
            raise Leave
        elif isinstance(statement, ir.Goto):
            raise Leave
        elif isinstance(statement, ir.Primitive):
            trace.append(statement.parameters[0].value)


statements = st.recursive(
    st.one_of(
        st.integers(0, 200).map(step),
        st.just(ir.Exit(HERE)),
        st.just(ir.Goto(HERE, 7)),
    ),
    lambda inner: st.builds(
        ir.If,
        st.just(HERE),
        st.sampled_from([flag("a"), flag("b"), arithmetic.negate(flag("c"))]),
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.lists(statements, max_size=5), st.tuples(*[st.integers(0, 1)] * 3))
def test_flat_code_does_what_the_tree_does(
    body: list[ir.Statement], flags: tuple[int, int, int]
) -> None:
    fields = dict(zip("abc", flags, strict=True))
    expected: list[int] = []
    with contextlib.suppress(Leave):
        run_tree(body, fields, expected)
    primitives = assemble([*body, ir.Label(HERE, 7)])
    assert run_flat(primitives, fields) == expected


def test_a_jump_to_the_next_primitive_is_left_out() -> None:
    body: list[ir.Statement] = [step(1), ir.Goto(HERE, 7), ir.Label(HERE, 7), step(2)]
    assert [p.op for p in assemble(body)] == ["step", "step"]


def test_a_loop_jumps_back() -> None:
    body: list[ir.Statement] = [
        ir.Label(HERE, 1),
        ir.If(HERE, flag("a"), [ir.Goto(HERE, 2)], []),
        step(3),
        ir.Goto(HERE, 1),
        ir.Label(HERE, 2),
        step(4),
    ]
    flat = assemble(body)
    assert run_flat(flat, {"a": 1}) == [4]
    assert flat[-2].parameters == (ir.Const(0, 32),)
