"""Writes the intermediate representation as text, for `--show ir`."""

from __future__ import annotations

from collections.abc import Iterator

from p4native.compiler.backend import ir

WORDS = {"and": "&&", "or": "||"}


def program_text(program: ir.Program) -> str:
    return "\n".join(_program(program)) + "\n"


def expr_text(expr: ir.Expr | None) -> str:
    if isinstance(expr, ir.Op):
        return _op_text(expr)
    if isinstance(expr, ir.Const):
        return str(expr.value) if -10 < expr.value < 10 else hex(expr.value)
    if isinstance(expr, ir.FieldRef):
        return f"{expr.header}.{expr.field}"
    if isinstance(expr, ir.LastField):
        return f"{expr.stack}.last.{expr.field}"
    if isinstance(expr, ir.ActionData):
        return f"data[{expr.index}]"
    if isinstance(expr, ir.RegisterCell):
        return f"{expr.array}[{expr_text(expr.index)}]"
    if isinstance(expr, ir.ObjectRef):
        return expr.name
    if isinstance(expr, ir.Lookahead):
        return f"lookahead[{expr.offset}:{expr.offset + expr.width}]"
    if isinstance(expr, ir.Access):
        return f"{expr_text(expr.base)}.#{expr.offset}"
    if isinstance(expr, ir.BoolConstant):
        return "true" if expr.value else "false"
    if isinstance(expr, ir.Text):
        return repr(expr.value)
    if isinstance(expr, ir.Vector):
        return f"[{', '.join(expr_text(e) for e in expr.items)}]"
    assert isinstance(expr, ir.UnionLastField), expr
    return f"{expr.stack}.last.{expr.member}.{expr.field}"


def _op_text(expr: ir.Op) -> str:
    right = expr_text(expr.right)
    if expr.condition is not None:
        return f"({expr_text(expr.condition)} ? {expr_text(expr.left)} : {right})"
    if expr.left is None:
        return f"{expr.op}({right})"
    if expr.op.isidentifier() and expr.op not in WORDS:
        return f"{expr.op}({expr_text(expr.left)}, {right})"
    return f"({expr_text(expr.left)} {WORDS.get(expr.op, expr.op)} {right})"


def _primitive_text(primitive: ir.Primitive) -> str:
    operands = [expr_text(p) for p in primitive.parameters]
    if primitive.op in ("assign", "set"):
        return f"{operands[0]} = {operands[1]}"
    return f"{primitive.op}({', '.join(operands)})"


def _program(program: ir.Program) -> Iterator[str]:
    for kind in program.header_types:
        fields = ", ".join(f"{name}:{'-' * signed}{width}" for name, width, signed in kind.fields)
        yield f"type {kind.name} {{{fields}}}"
    for header in program.headers:
        yield f"{'metadata' if header.metadata else 'header'} {header.name}: {header.type_name}"
    for state in program.parser_states:
        yield from _state(state)
    for action in program.actions:
        yield from _action(action)
    for pipeline in program.pipelines:
        yield from _pipeline(pipeline)
    for checksum in program.checksums:
        verb = "verify" if checksum.verify else "update"
        condition = expr_text(checksum.condition)
        yield f"{verb} {expr_text(checksum.target)} by {checksum.calculation} if {condition}"
    yield f"deparse {' '.join(program.deparse_order)}"


def _state(state: ir.ParserState) -> Iterator[str]:
    yield f"state {state.name}:"
    for op in state.ops:
        if op.primitive is not None:
            yield f"  {_primitive_text(op.primitive)}"
            continue
        target = [] if op.extract is None else [str(op.extract[1])]
        operands = [*target, *(expr_text(p) for p in op.parameters)]
        yield f"  {op.op}({', '.join(operands)})"
    keys = ", ".join(expr_text(k) for k in state.keys)
    for transition in state.transitions:
        value = transition.value
        case = hex(value) if isinstance(value, int) else value
        mask = "" if transition.mask is None else f" &&& {transition.mask:#x}"
        when = "" if transition.kind == "default" else f"({keys}) == {case}{mask}: "
        yield f"  -> {when}{transition.next_state or 'end'}"


def _action(action: ir.Action) -> Iterator[str]:
    parameters = ", ".join(f"{name}:{width}" for name, width in action.parameters)
    yield f"action {action.name}({parameters}):"
    for index, primitive in enumerate(action.primitives):
        yield f"  {index}: {_primitive_text(primitive)}"


def _pipeline(pipeline: ir.Pipeline) -> Iterator[str]:
    yield f"pipeline {pipeline.name}: -> {pipeline.init or 'end'}"
    for table in pipeline.tables:
        keys = ", ".join(f"{expr_text(k.target)}:{k.match_kind}" for k in table.keys)
        yield f"  table {table.name}({keys}):"
        for action, following in table.next_tables.items():
            yield f"    {action} -> {following or 'end'}"
    for node in pipeline.conditionals:
        yield f"  {node.name}: {expr_text(node.condition)}"
        yield f"    true -> {node.true_next or 'end'}, false -> {node.false_next or 'end'}"
