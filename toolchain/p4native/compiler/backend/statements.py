"""Lowers statements (branches, loops, returns and declarations) to structured code with jumps."""

from __future__ import annotations

from collections.abc import Sequence

from p4native.compiler import ast, types
from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.assignments import Assignments
from p4native.compiler.backend.calls import Calls
from p4native.compiler.backend.comparisons import Comparisons
from p4native.compiler.backend.expressions import Expressions
from p4native.compiler.backend.places import (
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
from p4native.compiler.backend.scope import Frame, Scope
from p4native.compiler.backend.storage import Unsupported
from p4native.compiler.typed import CallInfo, CallKind

# Copies of a loop's body: a loop over more numbers stays a loop, one over anything else cannot.
MAX_UNROLLED = 4096
MAX_COPIES = 20_000


class Statements:
    """The part that lowers statements, and the variables that are declared among them."""

    def __init__(
        self,
        scope: Scope,
        expressions: Expressions,
        comparisons: Comparisons,
        assignments: Assignments,
        calls: Calls,
    ) -> None:
        self.scope = scope
        self.expressions = expressions
        self.comparisons = comparisons
        self.assignments = assignments
        self.calls = calls
        scope.lower_statements = self.lower_statements
        scope.calls[CallKind.HEADER_METHOD] = self.built_in
        scope.calls[CallKind.STACK_METHOD] = self.built_in
        scope.statements.update(
            {
                ast.Assignment: assignments.assignment,
                ast.CallStatement: self._call_statement,
                ast.EmptyStatement: self._nothing,
                ast.Block: self._block,
                ast.If: self.branch,
                ast.Return: self._return,
                ast.Exit: self._exit,
                ast.Break: self._break,
                ast.Continue: self._continue,
                ast.Switch: self.plain_switch,
                ast.For: self._for,
                ast.ForIn: self._for_in,
            }
        )

    def lower_statements(self, body: Sequence[ast.Statement | ast.Declaration]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: ast.Statement | ast.Declaration) -> None:
        """Lowers one statement. A statement that cannot be translated is reported and left out."""
        outer, self.scope.position = self.scope.position, statement.position
        try:
            if isinstance(statement, ast.Declaration):
                self.declare(statement)
            else:
                self.scope.statements[type(statement)](statement)
        except Unsupported as problem:
            self.scope.unit.report(problem)
        finally:
            self.scope.position = outer

    def _nothing(self, statement: ast.EmptyStatement) -> None:
        pass

    def _block(self, statement: ast.Block) -> None:
        self.lower_statements(statement.statements)

    def _break(self, statement: ast.Break) -> None:
        self.scope.goto(self.scope.frame.break_label)

    def _continue(self, statement: ast.Continue) -> None:
        self.scope.goto(self.scope.frame.continue_label)

    def declare(self, declaration: ast.Declaration) -> None:
        """Lowers a variable or constant among statements."""
        if isinstance(declaration, ast.Variable):
            self.variable(declaration)
        elif not isinstance(declaration, (ast.Constant, ast.Instantiation)):
            raise self.scope.unsupported(declaration, f"the declaration of {declaration.name} here")

    def variable(self, declaration: ast.Variable) -> None:
        shape = types.substitute(
            self.scope.typed.type_of_declaration[declaration], self.scope.frame.bindings
        )
        initial = None
        if declaration.value is not None:
            initial = self.expressions.operand(declaration.value)
        name = f"{self.scope.frame.prefix}.{declaration.name}"
        place = self.scope.unit.storage.allocate(name, shape, declaration.position)
        self.scope.frame.env[declaration] = place
        if initial is not None:
            self.assignments.assign(place, initial)
        elif self._may_repeat():
            self.assignments.invalidate(place)

    def _may_repeat(self) -> bool:
        """Whether the current code can run several times for one packet."""
        frame: Frame | None = self.scope.frame
        while frame is not None:
            if frame.block == "parser" or frame.break_label:
                return True
            frame = frame.caller
        return False

    def _call_statement(self, statement: ast.CallStatement) -> None:
        info = self.scope.typed.calls[statement.call]
        if info.kind not in (CallKind.SIZE_METHOD, CallKind.STATIC_ASSERT):
            self.calls.call_value(statement.call)

    def body(self, statement: ast.Statement | None) -> list[ir.Statement]:
        """Returns the code of a nested statement."""
        with self.scope.into([]) as code:
            if statement is not None:
                self.statement(statement)
        return code

    def branch(self, statement: ast.If) -> None:
        condition = self.expressions.value(statement.condition)
        if isinstance(condition, ir.BoolConstant):
            chosen = statement.then if condition.value else statement.otherwise
            self.scope.code.extend(self.body(chosen))
            return
        then, otherwise = self.body(statement.then), self.body(statement.otherwise)
        if then or otherwise:
            where = statement.condition.position
            self.scope.code.append(ir.If(where, condition, then, otherwise))

    def _return(self, statement: ast.Return) -> None:
        frame = self.scope.frame
        if statement.value is not None and frame.result is not None:
            self.assignments.assign(frame.result, self.expressions.operand(statement.value))
        self.scope.goto(frame.end)

    def _exit(self, statement: ast.Exit) -> None:
        """Lowers an `exit`: copies the `out` arguments of all calls in progress to their callers,
        and then ends the processing of the packet in this pipeline."""
        frame: Frame | None = self.scope.frame
        while frame is not None:
            if frame.shared and self.scope.frame.in_action:
                raise self.scope.unsupported(
                    statement, "exit in an action of a control applied at several places"
                )
            self.calls.copy_out(frame)
            frame = frame.caller
        self.scope.code.append(ir.Exit(self.scope.position))

    # ------------------------------------------------------------------- switch

    def plain_switch(self, statement: ast.Switch) -> None:
        """Lowers a switch over an expression to a chain of comparisons."""
        shape = self.expressions.operand_type(statement.subject)
        subject = self.expressions.value(statement.subject)
        if not isinstance(subject, (ir.Const, ir.FieldRef)):
            subject = self.expressions.keep(subject, shape)
        groups, default = self.switch_groups(statement)
        code = self.body(default) if default is not None else []
        for labels, body in reversed(groups):
            condition: ir.Expr = arithmetic.FALSE
            for label in labels:
                same = arithmetic.compare("==", subject, self.expressions.value(label))
                condition = arithmetic.either(condition, same)
            code = [ir.If(statement.position, condition, self.body(body), code)]
        self.scope.code.extend(code)

    def switch_groups(
        self, statement: ast.Switch
    ) -> tuple[list[tuple[list[ast.Expression], ast.Block]], ast.Block | None]:
        """Returns (labels that share a body, body) for each body in order, and the body of
        `default`."""
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
        self.lower_statements(statement.initial)
        top, update, end = (self.scope.unit.new_label() for _ in range(3))
        self.scope.mark(top)
        condition = arithmetic.negate(self.expressions.value(statement.condition))
        leave: list[ir.Statement] = [ir.Goto(statement.position, end)]
        self.scope.code.append(ir.If(statement.condition.position, condition, leave, []))
        self._loop_body(statement.body, end, update)
        self.scope.mark(update)
        self.lower_statements(statement.updates)
        self.scope.goto(top)
        self.scope.mark(end)

    def _loop_body(self, body: ast.Statement, end: int, update: int) -> None:
        frame = self.scope.frame
        saved = frame.break_label, frame.continue_label
        frame.break_label, frame.continue_label = end, update
        self.statement(body)
        frame.break_label, frame.continue_label = saved

    def _for_in(self, statement: ast.ForIn) -> None:
        variable = statement.variable
        self.variable(variable)
        target = self.scope.frame.env[variable]
        if isinstance(statement.collection, ast.Range):
            self._for_range(statement, target, statement.collection)
            return
        collection = self.expressions.place(statement.collection)
        if isinstance(collection, StackPlace):
            self._unrolled(statement, target, collection.elements)
            return
        if isinstance(collection, StructPlace):
            self._unrolled(statement, target, self._kept(list(collection.members.values())))
            return
        raise self.scope.unsupported(statement, "a loop over this collection")

    def _kept(self, parts: list[Place]) -> list[Place]:
        """Returns copies of a list's elements. The loop's body can therefore not change the values
        over which the loop runs."""
        return [part if is_constant(part) else self.expressions.set_aside(part) for part in parts]

    def _for_range(self, statement: ast.ForIn, target: Place, bounds: ast.Range) -> None:
        low, high = self.expressions.values((bounds.low, bounds.high))
        if isinstance(low, ir.Const) and isinstance(high, ir.Const):
            self._for_constants(statement, target, range(low.value, high.value + 1))
        else:
            self._for_range_loop(statement, target, low, high)

    def _for_constants(self, statement: ast.ForIn, target: Place, numbers: range) -> None:
        if not numbers:
            return
        if len(numbers) * self.scope.unit.copies > MAX_UNROLLED:
            low, high = (arithmetic.constant(n, target.type) for n in (numbers[0], numbers[-1]))
            self._for_range_loop(statement, target, low, high)
            return
        values = [Value(target.type, arithmetic.constant(n, target.type)) for n in numbers]
        self._unrolled(statement, target, values)

    def _for_range_loop(
        self, statement: ast.ForIn, target: Place, low: ir.Expr, high: ir.Expr
    ) -> None:
        """Lowers a loop over a range. The test for the end comes before the increment, so that a
        range up to the type's largest value ends as well."""
        shape = target.type
        high, counter = self.expressions.keep(high, shape), self.expressions.keep(low, shape)
        top, step, end = (self.scope.unit.new_label() for _ in range(3))
        where = statement.position
        out: list[ir.Statement] = [ir.Goto(where, end)]
        self.scope.code.append(ir.If(where, ir.Op(">", counter, high), list(out), []))
        self.scope.mark(top)
        self.assignments.assign(target, Value(shape, counter))
        self._loop_body(statement.body, end, step)
        self.scope.mark(step)
        self.scope.code.append(ir.If(where, ir.Op("==", counter, high), list(out), []))
        one = arithmetic.constant(1, shape)
        self.scope.emit("assign", counter, arithmetic.binary("+", counter, one, shape))
        self.scope.goto(top)
        self.scope.mark(end)

    def _unrolled(self, statement: ast.ForIn, target: Place, parts: Sequence[Place]) -> None:
        end = self.scope.unit.new_label()
        outer, self.scope.unit.copies = (
            self.scope.unit.copies,
            self.scope.unit.copies * max(1, len(parts)),
        )
        if self.scope.unit.copies > MAX_COPIES:
            self.scope.unit.copies = outer
            raise self.scope.unsupported(
                statement, f"loops that unroll to more than {MAX_COPIES} copies"
            )
        for part in parts:
            update = self.scope.unit.new_label()
            self.assignments.assign(target, part)
            self._loop_body(statement.body, end, update)
            self.scope.mark(update)
        self.scope.unit.copies = outer
        self.scope.mark(end)

    # ---------------------------------------------------------- built-in methods

    def built_in(self, call: ast.Call, info: CallInfo) -> Place | None:
        assert info.receiver is not None
        place = self.expressions.place(info.receiver)
        if info.method == "isValid":
            return Value(types.BOOLEAN, self.comparisons.is_valid(place, call))
        if info.method in ("push_front", "pop_front"):
            assert isinstance(place, StackPlace)
            given = info.arguments[0].value if info.arguments else None
            count = self.expressions.value(given) if given is not None else ir.Const(1, 32)
            self.scope.emit("push" if info.method == "push_front" else "pop", place.expr, count)
            return None
        if isinstance(place, SelectedPlace):
            self.expressions.select_code(
                place, lambda one: self._set_validity(call, info.method, one), []
            )
        else:
            self._set_validity(call, info.method, place)
        return None

    def _set_validity(self, call: ast.Call, method: str, place: Place) -> None:
        if isinstance(place, LastHeader):
            place = self.comparisons.last_as_header(place)
        if isinstance(place, InvalidPlace) or not isinstance(place, (HeaderPlace, UnionPlace)):
            raise self.scope.unsupported(call, f"{method} of this value")
        if method == "setInvalid" and isinstance(place, UnionPlace):
            self.assignments.invalidate(place)
            return
        self.scope.emit("add_header" if method == "setValid" else "remove_header", place.expr)
