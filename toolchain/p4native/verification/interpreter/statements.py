"""Executes statements, and calls of actions and functions with copy-in and copy-out (P4_16 section
6.8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from p4native.compiler import ast, types
from p4native.compiler.typed import BoundArgument, CallInfo, CallKind
from p4native.verification.interpreter.context import Context, Exited, Returned
from p4native.verification.interpreter.expressions import Expressions, Place
from p4native.verification.interpreter.values import Header, Stack, UnknownConstruct


class _Broken(Exception):
    """Raised by an executed `break`, to end the loop."""


class _Continued(Exception):
    """Raised by an executed `continue`, to begin the loop's next iteration."""


@dataclass(frozen=True)
class Output:
    """The place to which the value of an `out` or `inout` parameter is copied when a call ends."""

    parameter: ast.Declaration
    place: Place


class Statements:
    """Executes statements and declarations."""

    def __init__(self, context: Context, expressions: Expressions) -> None:
        self.context = context
        self.expressions = expressions
        self.program = context.program
        context.calls[CallKind.ACTION] = self._action
        context.calls[CallKind.FUNCTION] = self._function
        context.calls[CallKind.HEADER_METHOD] = self._header_method
        context.calls[CallKind.STACK_METHOD] = self._stack_method
        self._execute: dict[type, Callable[[Any], None]] = {
            ast.Assignment: self._assign,
            ast.CallStatement: lambda s: self.expressions.call(s.call),
            ast.EmptyStatement: lambda s: None,
            ast.Block: lambda s: self.run(s.statements),
            ast.If: self._if,
            ast.Return: self._return,
            ast.Exit: self._exit,
            ast.Break: self._break,
            ast.Continue: self._continue,
            ast.Switch: self._switch,
            ast.For: self._for,
            ast.ForIn: self._for_in,
            ast.Variable: self.declare,
            ast.Constant: lambda s: None,
        }

    def run(self, statements: Sequence[ast.Statement | ast.Declaration]) -> None:
        """Executes statements one after the other."""
        for each in statements:
            execute = self._execute.get(type(each))
            if execute is None:
                raise UnknownConstruct(f"{each.position}: statements of kind {type(each).__name__}")
            execute(each)

    def declare(self, node: ast.Variable) -> None:
        """Gives a variable its initial value."""
        if node.value is None:
            value = self.context.default(self.program.type_of_declaration[node])
        else:
            value = self.expressions.value(node.value)
        self.context.variables[node] = value

    def _assign(self, node: ast.Assignment) -> None:
        place = self.expressions.place(node.left)
        value = self.expressions.value(node.right)
        if node.operator:
            kind = self.expressions.type(node.left)
            value = self.expressions.operate(node.operator, place.read(), value, kind)
        place.write(value)

    def _if(self, node: ast.If) -> None:
        if self.expressions.value(node.condition):
            self.run([node.then])
        elif node.otherwise is not None:
            self.run([node.otherwise])

    def _return(self, node: ast.Return) -> None:
        raise Returned(None if node.value is None else self.expressions.value(node.value))

    def _exit(self, node: ast.Exit) -> None:
        raise Exited

    def _break(self, node: ast.Break) -> None:
        raise _Broken

    def _continue(self, node: ast.Continue) -> None:
        raise _Continued

    # ---- switch and loops

    def _switch(self, node: ast.Switch) -> None:
        subject = self.expressions.value(node.subject)
        labelled = [i for i, case in enumerate(node.cases) if self._is_case(case.label, subject)]
        if not labelled:
            return
        for case in node.cases[labelled[0] :]:
            if case.body is not None:
                self.run([case.body])
                return

    def _is_case(self, label: ast.Expression, subject: Any) -> bool:
        """Whether a case matches. `default` always does; the checker ensures that it comes last."""
        if isinstance(label, ast.DefaultKeyset):
            return True
        declaration = self.program.decl_of.get(label)
        if isinstance(declaration, ast.ActionDeclaration):
            return subject is declaration
        return bool(self.expressions.value(label) == subject)

    def _for(self, node: ast.For) -> None:
        self.run(node.initial)
        while self.expressions.value(node.condition):
            if self._leaves_after(node.body):
                return
            self.run(node.updates)

    def _for_in(self, node: ast.ForIn) -> None:
        if isinstance(node.collection, ast.Range):
            low = self.expressions.number(node.collection.low)
            elements: Sequence[Any] = range(low, self.expressions.number(node.collection.high) + 1)
        else:
            found = self.expressions.value(node.collection)
            elements = found.elements if isinstance(found, Stack) else found
        for element in elements:
            self.context.variables[node.variable] = element
            if self._leaves_after(node.body):
                return

    def _leaves_after(self, body: ast.Statement) -> bool:
        try:
            self.run([body])
        except _Broken:
            return True
        except _Continued:
            pass
        return False

    # ---- calls

    def bind(
        self, arguments: Sequence[BoundArgument]
    ) -> tuple[dict[ast.Declaration, Any], list[Output]]:
        """Returns (values of the parameters, places of the outputs). Arguments are evaluated from
        left to right. The parameters get their values after the last argument was evaluated."""
        given: dict[ast.Declaration, Any] = {}
        outputs: list[Output] = []
        for each in arguments:
            parameter = each.parameter
            if parameter.declaration is None or each.value is None:
                continue
            if parameter.direction in ("out", "inout"):
                place = self.expressions.place(each.value)
                outputs.append(Output(parameter.declaration, place))
                given[parameter.declaration] = (
                    self.context.default(parameter.type)
                    if parameter.direction == "out"
                    else self.expressions.value(each.value)
                )
            elif not isinstance(parameter.type, types.Extern):
                given[parameter.declaration] = self.expressions.value(each.value)
        return given, outputs

    def copy_out(self, outputs: Sequence[Output]) -> None:
        """Copies the values of output parameters to their places, from left to right."""
        for each in outputs:
            each.place.write(self.context.variables[each.parameter])

    def perform(
        self,
        given: dict[ast.Declaration, Any],
        outputs: Sequence[Output],
        body: Callable[[], None],
    ) -> Any:
        """Executes a body with these parameter values and returns its result. Outputs are copied
        even if the body executes `exit`."""
        self.context.variables.update(given)
        result = None
        try:
            body()
        except Returned as returned:
            result = returned.value
        except Exited:
            self.copy_out(outputs)
            raise
        self.copy_out(outputs)
        return result

    def _action(self, call: ast.Call, info: CallInfo) -> None:
        assert isinstance(info.target, ast.ActionDeclaration)
        self.run_action(info.target, info.arguments)

    def run_action(
        self,
        action: ast.ActionDeclaration,
        arguments: Sequence[BoundArgument],
        data: Mapping[ast.Declaration, Any] = MappingProxyType({}),
    ) -> None:
        """Executes an action. A `return` ends only the action. data: the values of further
        parameters, which come from an entry."""
        given, outputs = self.bind(arguments)
        self.perform({**given, **data}, outputs, lambda: self.run(action.body.statements))

    def _function(self, call: ast.Call, info: CallInfo) -> Any:
        target = info.target
        assert isinstance(target, ast.FunctionDeclaration) and target.body is not None
        body = target.body
        given, outputs = self.bind(info.arguments)
        return self.perform(given, outputs, lambda: self.run(body.statements))

    # ---- methods of headers and stacks

    def _header_method(self, call: ast.Call, info: CallInfo) -> Any:
        assert info.receiver is not None
        header = self.expressions.place(info.receiver).read()
        if info.method == "isValid":
            members = [header] if isinstance(header, Header) else header.members.values()
            return any(each.valid for each in members)
        assert isinstance(header, Header)
        if info.method == "setValid":
            header.set_valid()
        elif info.method == "setInvalid":
            header.valid = False
        else:
            raise UnknownConstruct(f"{call.position}: calls of {info.method}")
        return None

    def _stack_method(self, call: ast.Call, info: CallInfo) -> None:
        """Executes push_front or pop_front. Elements that receive no other element's value become
        invalid (P4_16 section 8.18)."""
        assert info.receiver is not None
        stack = self.expressions.place(info.receiver).read()
        (count,) = (self.expressions.number(each.value) for each in info.arguments if each.value)
        size = len(stack.elements)
        count = min(count, size)
        fresh = [self.context.default(stack.type.element) for _ in range(count)]
        if info.method == "push_front":
            stack.elements = fresh + stack.elements[: size - count]
            stack.next = min(stack.next + count, size)
        else:
            assert info.method == "pop_front"
            stack.elements = stack.elements[count:] + fresh
            stack.next = max(stack.next - count, 0)
