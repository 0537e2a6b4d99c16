"""Statements: branches, loops, returns and declarations, as structured code with jumps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agglab.compiler import ast, types
from agglab.compiler.backend import arithmetic, ir
from agglab.compiler.backend.calls import Calls
from agglab.compiler.backend.places import (
    HeaderPlace,
    InvalidPlace,
    LastHeader,
    Place,
    SelectedPlace,
    StackPlace,
    StructPlace,
    UnionPlace,
    Value,
    is_constant,
)
from agglab.compiler.backend.scope import Frame
from agglab.compiler.backend.storage import Unsupported
from agglab.compiler.typed import CallInfo, CallKind

# Copies of a loop's body: a loop over more numbers stays a loop, one over anything else cannot.
MAX_UNROLLED = 4096
MAX_COPIES = 20_000


class Statements(Calls):
    def statements(self, body: Sequence[ast.Statement | ast.Declaration]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: ast.Statement | ast.Declaration) -> None:
        """One statement; what cannot be translated is reported and left out."""
        outer, self.position = self.position, statement.position
        try:
            if isinstance(statement, ast.Declaration):
                self.declare(statement)
            else:
                self._dispatch(statement)
        except Unsupported as problem:
            self.unit.report(problem)
        finally:
            self.position = outer

    def _dispatch(self, statement: ast.Statement) -> None:
        handlers: dict[type, Callable[[Any], None]] = {
            ast.Assignment: self.assignment,
            ast.CallStatement: self._call_statement,
            ast.EmptyStatement: lambda _: None,
            ast.Block: lambda s: self.statements(s.statements),
            ast.If: self._if,
            ast.Return: self._return,
            ast.Exit: self._exit,
            ast.Break: lambda _: self.goto(self.frame.break_label),
            ast.Continue: lambda _: self.goto(self.frame.continue_label),
            ast.Switch: self.switch,
            ast.For: self._for,
            ast.ForIn: self._for_in,
        }
        handlers[type(statement)](statement)

    def declare(self, declaration: ast.Declaration) -> None:
        """A variable or constant among statements."""
        if isinstance(declaration, ast.Variable):
            self.variable(declaration)
        elif not isinstance(declaration, (ast.Constant, ast.Instantiation)):
            raise self.unsupported(declaration, f"the declaration of {declaration.name} here")

    def variable(self, declaration: ast.Variable) -> None:
        shape = types.substitute(self.typed.type_of_declaration[declaration], self.frame.bindings)
        initial = None
        if declaration.value is not None:
            initial = self.operand(declaration.value)
        name = f"{self.frame.prefix}.{declaration.name}"
        place = self.unit.storage.allocate(name, shape, declaration.position)
        self.frame.env[declaration] = place
        if initial is not None:
            self.assign(place, initial)
        elif self._may_repeat():
            self.invalidate(place)

    def _may_repeat(self) -> bool:
        """Whether the code at hand can run several times for a packet."""
        frame: Frame | None = self.frame
        while frame is not None:
            if frame.block == "parser" or frame.break_label:
                return True
            frame = frame.caller
        return False

    def _call_statement(self, statement: ast.CallStatement) -> None:
        info = self.typed.calls[statement.call]
        if info.kind not in (CallKind.SIZE_METHOD, CallKind.STATIC_ASSERT):
            self.call_value(statement.call)

    def body(self, statement: ast.Statement | None) -> list[ir.Statement]:
        """The code of a nested statement."""
        with self.into([]) as code:
            if statement is not None:
                self.statement(statement)
        return code

    def _if(self, statement: ast.If) -> None:
        condition = self.value(statement.condition)
        if isinstance(condition, ir.Truth):
            chosen = statement.then if condition.value else statement.otherwise
            self.code.extend(self.body(chosen))
            return
        then, otherwise = self.body(statement.then), self.body(statement.otherwise)
        if then or otherwise:
            where = statement.condition.position
            self.code.append(ir.If(where, condition, then, otherwise))

    def _return(self, statement: ast.Return) -> None:
        frame = self.frame
        if statement.value is not None and frame.result is not None:
            self.assign(frame.result, self.operand(statement.value))
        self.goto(frame.end)

    def _exit(self, statement: ast.Exit) -> None:
        """Everything being executed ends, after its copy-out."""
        frame: Frame | None = self.frame
        while frame is not None:
            if frame.shared and self.frame.in_action:
                raise self.unsupported(
                    statement, "exit in an action of a control applied at several places"
                )
            self.copy_out(frame)
            frame = frame.caller
        self.code.append(ir.Exit(self.position))

    # ------------------------------------------------------------------- switch

    def switch(self, statement: ast.Switch) -> None:
        """A switch over an expression: a chain of comparisons."""
        shape = self.operand_type(statement.subject)
        subject = self.value(statement.subject)
        if not isinstance(subject, (ir.Const, ir.FieldRef)):
            subject = self.keep(subject, shape)
        groups, default = self.switch_groups(statement)
        code = self.body(default) if default is not None else []
        for labels, body in reversed(groups):
            condition: ir.Expr = arithmetic.FALSE
            for label in labels:
                same = arithmetic.compare("==", subject, self.value(label))
                condition = arithmetic.either(condition, same)
            code = [ir.If(statement.position, condition, self.body(body), code)]
        self.code.extend(code)

    def switch_groups(
        self, statement: ast.Switch
    ) -> tuple[list[tuple[list[ast.Expression], ast.Block]], ast.Block | None]:
        """(labels that share a body, body) in order, and the default's body."""
        groups: list[tuple[list[ast.Expression], ast.Block]] = []
        default: ast.Block | None = None
        labels: list[ast.Expression] = []
        for case in statement.cases:
            labels.append(case.label)
            if case.body is None:
                continue
            if any(isinstance(label, ast.DefaultKeyset) for label in labels):
                default = case.body
            plain_labels = [x for x in labels if not isinstance(x, ast.DefaultKeyset)]
            if plain_labels:
                groups.append((plain_labels, case.body))
            labels = []
        return groups, default

    # -------------------------------------------------------------------- loops

    def _for(self, statement: ast.For) -> None:
        self.statements(statement.initial)
        top, update, end = (self.unit.new_label() for _ in range(3))
        self.mark(top)
        condition = arithmetic.negate(self.value(statement.condition))
        leave: list[ir.Statement] = [ir.Goto(statement.position, end)]
        self.code.append(ir.If(statement.condition.position, condition, leave, []))
        self._loop_body(statement.body, end, update)
        self.mark(update)
        self.statements(statement.updates)
        self.goto(top)
        self.mark(end)

    def _loop_body(self, body: ast.Statement, end: int, update: int) -> None:
        frame = self.frame
        saved = frame.break_label, frame.continue_label
        frame.break_label, frame.continue_label = end, update
        self.statement(body)
        frame.break_label, frame.continue_label = saved

    def _for_in(self, statement: ast.ForIn) -> None:
        variable = statement.variable
        self.variable(variable)
        target = self.frame.env[variable]
        if isinstance(statement.collection, ast.Range):
            self._for_range(statement, target, statement.collection)
            return
        collection = self.place(statement.collection)
        if isinstance(collection, StackPlace):
            self._unrolled(statement, target, collection.elements)
            return
        if isinstance(collection, StructPlace):
            self._unrolled(statement, target, self._kept(list(collection.members.values())))
            return
        raise self.unsupported(statement, "a loop over this collection")

    def _kept(self, parts: list[Place]) -> list[Place]:
        """A list's elements as they are before the first turn, whatever the body does to them."""
        return [part if is_constant(part) else self.set_aside(part) for part in parts]

    def _for_range(self, statement: ast.ForIn, target: Place, bounds: ast.Range) -> None:
        low, high = self.values((bounds.low, bounds.high))
        if isinstance(low, ir.Const) and isinstance(high, ir.Const):
            self._for_constants(statement, target, range(low.value, high.value + 1))
        else:
            self._for_range_loop(statement, target, low, high)

    def _for_constants(self, statement: ast.ForIn, target: Place, numbers: range) -> None:
        if not numbers:
            return
        if len(numbers) * self.unit.copies > MAX_UNROLLED:
            low, high = (arithmetic.constant(n, target.type) for n in (numbers[0], numbers[-1]))
            self._for_range_loop(statement, target, low, high)
            return
        values = [Value(target.type, arithmetic.constant(n, target.type)) for n in numbers]
        self._unrolled(statement, target, values)

    def _for_range_loop(
        self, statement: ast.ForIn, target: Place, low: ir.Expr, high: ir.Expr
    ) -> None:
        """Tested before the step, so that a range up to the type's largest value ends."""
        shape = target.type
        high, counter = self.keep(high, shape), self.keep(low, shape)
        top, step, end = (self.unit.new_label() for _ in range(3))
        where = statement.position
        out: list[ir.Statement] = [ir.Goto(where, end)]
        self.code.append(ir.If(where, ir.Op(">", counter, high), list(out), []))
        self.mark(top)
        self.assign(target, Value(shape, counter))
        self._loop_body(statement.body, end, step)
        self.mark(step)
        self.code.append(ir.If(where, ir.Op("==", counter, high), list(out), []))
        one = arithmetic.constant(1, shape)
        self.emit("assign", counter, arithmetic.binary("+", counter, one, shape))
        self.goto(top)
        self.mark(end)

    def _unrolled(self, statement: ast.ForIn, target: Place, parts: Sequence[Place]) -> None:
        end = self.unit.new_label()
        outer, self.unit.copies = self.unit.copies, self.unit.copies * max(1, len(parts))
        if self.unit.copies > MAX_COPIES:
            self.unit.copies = outer
            raise self.unsupported(statement, f"loops that take more than {MAX_COPIES} copies")
        for part in parts:
            update = self.unit.new_label()
            self.assign(target, part)
            self._loop_body(statement.body, end, update)
            self.mark(update)
        self.unit.copies = outer
        self.mark(end)

    # ---------------------------------------------------------- built-in methods

    def built_in(self, call: ast.Call, info: CallInfo) -> Place | None:
        assert info.receiver is not None
        place = self.place(info.receiver)
        if info.method == "isValid":
            return Value(types.BOOLEAN, self.is_valid(place, call))
        if info.method in ("push_front", "pop_front"):
            assert isinstance(place, StackPlace)
            given = info.arguments[0].value if info.arguments else None
            count = self.value(given) if given is not None else ir.Const(1, 32)
            self.emit("push" if info.method == "push_front" else "pop", place.expr, count)
            return None
        if isinstance(place, SelectedPlace):
            self.select_code(place, lambda one: self._set_validity(call, info.method, one), [])
        else:
            self._set_validity(call, info.method, place)
        return None

    def _set_validity(self, call: ast.Call, method: str, place: Place) -> None:
        if isinstance(place, LastHeader):
            place = self.last_as_header(place)
        if isinstance(place, InvalidPlace) or not isinstance(place, (HeaderPlace, UnionPlace)):
            raise self.unsupported(call, f"{method} of this value")
        if method == "setInvalid" and isinstance(place, UnionPlace):
            self.invalidate(place)
            return
        self.emit("add_header" if method == "setValid" else "remove_header", place.expr)
