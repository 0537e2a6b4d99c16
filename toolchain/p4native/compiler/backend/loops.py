"""Rewrites loops that contain jumps to statements outside them.

Inside an action, a jump may go backwards. Between the nodes of the graph, no jump may. Therefore a
jump that leaves a loop is replaced by a jump to the loop's end, and a second jump leads from there
to the target.
"""

from __future__ import annotations

from p4native.compiler import types
from p4native.compiler.backend import ir
from p4native.compiler.backend.places import Scalar
from p4native.compiler.backend.scope import Unit

WAY_BITS = 8


def contain(unit: Unit, run: list[ir.Statement]) -> list[ir.Statement]:
    """Returns the statements, changed so that no jump leaves a loop. Each such jump records its
    target in a variable, and the code behind the loop jumps to that target."""
    contained: list[ir.Statement] = []
    at = 0
    while at < len(run):
        end = _end_of_loop(run, at)
        contained += _closed(unit, run[at:end]) if end > at + 1 else [run[at]]
        at = max(end, at + 1)
    return contained


def _end_of_loop(run: list[ir.Statement], at: int) -> int:
    """Returns the index behind the last jump back to the label at `run[at]`. Returns `at + 1` if
    `run[at]` is not a label or if nothing jumps back."""
    label = run[at]
    if not isinstance(label, ir.Label):
        return at + 1
    back = [i for i in range(at + 1, len(run)) if label.label in _jumps([run[i]])]
    return max(back, default=at) + 1


def _jumps(statements: list[ir.Statement]) -> set[int]:
    return {s.label for s in ir.flatten(statements) if isinstance(s, ir.Goto)}


def _closed(unit: Unit, loop: list[ir.Statement]) -> list[ir.Statement]:
    own = {s.label for s in ir.flatten(loop) if isinstance(s, ir.Label)}
    ways = {label: n for n, label in enumerate(sorted(_jumps(loop) - own), 1)}
    if not ways:
        return loop
    where = loop[0].position
    way = unit.storage.allocate("way", types.Bits(WAY_BITS), where)
    assert isinstance(way, Scalar) and isinstance(way.ref, ir.FieldRef)
    assert len(ways) < 1 << WAY_BITS
    end = unit.new_label()
    _redirect(loop, ways, way.ref, end)
    start = ir.Primitive(where, "assign", (way.ref, ir.Const(0, WAY_BITS)))
    leaving = [
        ir.If(
            where,
            ir.Op("==", way.ref, ir.Const(number, WAY_BITS)),
            [ir.Goto(where, label)],
            [],
        )
        for label, number in ways.items()
    ]
    return [start, *loop, ir.Label(where, end), *leaving]


def _redirect(body: list[ir.Statement], ways: dict[int, int], way: ir.FieldRef, end: int) -> None:
    """Redirects jumps to labels of `ways` to the label `end`, in place. Before such a jump, the
    number that `ways` gives to the original label is stored in `way`."""
    for index in reversed(range(len(body))):
        statement = body[index]
        if isinstance(statement, ir.Goto) and statement.label in ways:
            number = ir.Const(ways[statement.label], WAY_BITS)
            noted = ir.Primitive(statement.position, "assign", (way, number))
            body[index : index + 1] = [noted, ir.Goto(statement.position, end)]
        for below in ir.bodies(statement):
            _redirect(below, ways, way, end)
