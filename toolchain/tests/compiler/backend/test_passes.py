"""Single passes on hand-made input: sharing of fields, jump threading, masks for ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.assemble import assemble
from p4native.compiler.backend.keysets import range_masks
from p4native.compiler.backend.share import share_variables
from p4native.compiler.backend.storage import SCALARS
from p4native.compiler.source import Position

HERE = Position("t.p4", 1, 1)
OUT = ir.FieldRef("h", "out", 32)


def variable(name: str) -> ir.FieldRef:
    return ir.FieldRef(SCALARS, name, 32)


def put(target: ir.FieldRef, value: ir.Expr) -> ir.Primitive:
    return ir.Primitive(HERE, "assign", (target, value))


def jump(op: str, target: int, *condition: ir.Expr) -> ir.Primitive:
    return ir.Primitive(HERE, op, (*condition, ir.Const(target, 32)))


def shared(primitives: list[ir.Primitive], *names: str) -> set[str]:
    """The scalars left after sharing among names in one action."""
    program = ir.Program("t.p4")
    scalars = ir.HeaderType(f"{SCALARS}_0", [(name, 32, False) for name in names])
    program.header_types.append(scalars)
    program.actions.append(ir.Action("a", [], primitives, HERE))
    share_variables(program, set())
    used = {
        e.field
        for p in primitives
        for o in p.parameters
        for e in ir.walk(o)
        if isinstance(e, ir.FieldRef) and e.header == SCALARS
    }
    assert used == {name for name, _, _ in scalars.fields}
    return used


def test_one_after_the_other_share() -> None:
    a, b = variable("a"), variable("b")
    code = [put(a, ir.Const(1)), put(OUT, a), put(b, ir.Const(2)), put(OUT, b)]
    assert shared(code, "a", "b") == {"shared_32"}
    assert code[0].parameters[0] == code[3].parameters[1]


def test_alive_together_do_not() -> None:
    a, b = variable("a"), variable("b")
    code = [put(a, ir.Const(1)), put(b, ir.Const(2)), put(OUT, a), put(OUT, b)]
    assert shared(code, "a", "b") == {"a", "b"}


def test_the_last_read_and_the_first_write_in_one_primitive_do_not() -> None:
    a, b = variable("a"), variable("b")
    assert shared([put(a, ir.Const(1)), put(b, a), put(OUT, b)], "a", "b") == {"a", "b"}


def test_a_write_that_may_be_jumped_over_keeps_its_field() -> None:
    a, b, c = variable("a"), variable("b"), OUT
    code = [
        put(a, ir.Const(1)),
        put(OUT, a),
        jump("_jump_if_zero", 4, c),
        put(b, ir.Const(2)),
        put(OUT, b),
    ]
    assert shared(code, "a", "b") == {"a", "b"}


def test_nothing_is_shared_where_code_jumps_back() -> None:
    """In the second round b would still be read after a was written."""
    a, b = variable("a"), variable("b")
    code = [
        put(a, ir.Const(1)),
        put(OUT, a),
        put(b, ir.Const(2)),
        put(OUT, b),
        jump("_jump_if_zero", 1, OUT),
    ]
    assert shared(code, "a", "b") == {"a", "b"}


def test_a_variable_of_two_actions_keeps_its_field() -> None:
    a, b = variable("a"), variable("b")
    program = ir.Program("t.p4")
    fields: list[tuple[str, int | str, bool]] = [("a", 32, False), ("b", 32, False)]
    program.header_types.append(ir.HeaderType(f"{SCALARS}_0", fields))
    first = [put(a, ir.Const(1)), put(OUT, a), put(b, ir.Const(2)), put(OUT, b)]
    program.actions.append(ir.Action("one", [], first, HERE))
    program.actions.append(ir.Action("two", [], [put(OUT, a)], HERE))
    share_variables(program, set())
    assert {name for name, _, _ in program.header_types[0].fields} == {"a", "b"}


def test_a_jump_to_a_jump_goes_to_its_end() -> None:
    inner = ir.If(
        HERE, arithmetic.as_boolean(OUT), [put(OUT, ir.Const(1))], [put(OUT, ir.Const(2))]
    )
    body: list[ir.Statement] = [
        ir.If(HERE, arithmetic.as_boolean(OUT), [inner], [put(OUT, ir.Const(3))]),
        put(OUT, ir.Const(4)),
    ]
    flat = assemble(body)
    targets = [p.parameters[-1].value for p in flat if p.op == "_jump"]
    assert targets == [len(flat) - 1] * 2


@given(st.integers(0, 255), st.integers(0, 255))
def test_masks_cover_exactly_their_range(low: int, high: int) -> None:
    masks = list(range_masks(low, high, 8))
    covered = [n for n in range(256) if any(n & mask == value for value, mask in masks)]
    assert covered == list(range(low, high + 1))


@pytest.mark.parametrize(
    ("low", "high", "count"), [(0, 255, 1), (0, 127, 1), (1, 254, 14), (16, 31, 1), (5, 5, 1)]
)
def test_masks_are_few(low: int, high: int, count: int) -> None:
    assert len(list(range_masks(low, high, 8))) == count
