"""Checks statements and the declarations among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4native.compiler import ast, types
from p4native.compiler.check.arguments import ArgumentChecker
from p4native.compiler.check.calls import CallChecker
from p4native.compiler.check.coerce import Coercion
from p4native.compiler.check.context import Context, is_of_library
from p4native.compiler.check.hints import of_assignment, of_condition
from p4native.compiler.check.members import MemberChecker
from p4native.compiler.check.typerefs import TypeResolver
from p4native.compiler.typed import Value

_SWITCHABLE = (types.Bits, types.Enum, types.SerializableEnum, types.Error, types.Boolean)
_UNASSIGNABLE = (
    types.Extern,
    types.Block,
    types.Package,
    types.Table,
    types.Action,
    types.Overloads,
    types.TypeName,
    types.Void,
    types.Set,
)


class StatementChecker:
    """The part that checks statements, and the variables and constants among them."""

    def __init__(
        self,
        context: Context,
        resolver: TypeResolver,
        coercion: Coercion,
        members: MemberChecker,
        arguments: ArgumentChecker,
        calls: CallChecker,
    ) -> None:
        self.context = context
        self.resolver = resolver
        self.coercion = coercion
        self.members = members
        self.arguments = arguments
        self.calls = calls
        self._checks: dict[type, Callable[[Any], None]] = {
            ast.Assignment: self.check_assignment,
            ast.CallStatement: self.check_call_statement,
            ast.EmptyStatement: self.check_empty,
            ast.Block: self.check_block,
            ast.If: self.check_if,
            ast.Return: self.check_return,
            ast.Exit: self.check_exit,
            ast.Break: self.check_loop_jump,
            ast.Continue: self.check_loop_jump,
            ast.Switch: self.check_switch,
            ast.For: self.check_for,
            ast.ForIn: self.check_for_in,
            ast.Variable: self.check_variable,
            ast.Constant: self.check_constant,
            ast.Instantiation: self.check_local_instantiation,
        }

    def check_statement(self, node: ast.Statement | ast.Declaration) -> None:
        self._checks[type(node)](node)

    def check_statements(self, nodes: tuple[ast.Statement | ast.Declaration, ...]) -> None:
        for node in nodes:
            self.check_statement(node)

    def check_block(self, node: ast.Block) -> None:
        with self.context.nested_scope():
            self.check_statements(node.statements)

    # ---- assignment and calls

    def check_assignment(self, node: ast.Assignment) -> None:
        if node.operator:
            self._compound_assignment(node)
            return
        target = self.context.check(node.left)
        value = self.context.check(node.right, target)
        if isinstance(target, types.Unknown):
            return
        if not self._assignable(node.left, target) or isinstance(value, types.Unknown):
            return
        self.coercion.coerce_assigned(node.right, target, "the left side")
        self._warn_ignored(node.left)

    def _warn_ignored(self, left: ast.Expression) -> None:
        """Warns of a field that the switch sets, and from which it takes nothing."""
        declaration = self.context.program.decl_of.get(left)
        if not isinstance(left, ast.Member) or declaration is None:
            return
        if left.member == "egress_port" and is_of_library(declaration):
            message = "egress_port is set by the switch, and what is written here has no effect"
            self.context.warn(left, "unsupported", message, "write egress_spec in ingress")

    def _assignable(self, left: ast.Expression, target: types.Type) -> bool:
        problem = self.members.lvalue_problem(left)
        if problem:
            self.context.error(left, f"cannot assign: {problem}", of_assignment(target))
        elif isinstance(target, _UNASSIGNABLE):
            problem = f"cannot assign to {target}"
            self.context.error(left, problem)
        return not problem

    def _compound_assignment(self, node: ast.Assignment) -> None:
        """Checks `a += b` and other compound assignments like `a = a + b`."""
        operation = ast.Binary(node.position, node.operator, node.left, node.right)
        result = self.context.check(operation)
        target = self.context.program.type_of[node.left]
        if isinstance(result, types.Unknown) or not self._assignable(node.left, target):
            return
        if result != target:
            self.context.error(node, f"the left side has type {target}, but the result is {result}")

    def check_call_statement(self, node: ast.CallStatement) -> None:
        self.context.check(node.call, types.VOID)

    # ---- declarations

    def check_variable(self, node: ast.Variable) -> None:
        type_ = self.resolver.value_type(node.type_ref, f"variable '{node.name}'")
        self.context.record(node, type_)
        if node.value is not None:
            self.context.check(node.value, type_)
            self.coercion.coerce_assigned(node.value, type_, f"variable '{node.name}'")
        self.context.declare(node)

    def check_constant(self, node: ast.Constant) -> None:
        type_ = self.resolver.definite_type(node.type_ref)
        if isinstance(type_, _UNASSIGNABLE):
            type_ = self.context.error(node.type_ref, f"a constant cannot have type {type_}")
        self.context.record(node, type_)
        value = self.context.check(node.value, type_)
        fine = self.coercion.coerce_assigned(node.value, type_, f"constant '{node.name}'")
        if fine and not isinstance(value, types.Unknown) and not self.context.known(node.value):
            self.context.error(
                node.value, f"the value of '{node.name}' is not known at compile time"
            )
        self.context.declare(node)

    def check_local_instantiation(self, node: ast.Instantiation) -> None:
        self.context.error(
            node,
            f"instance '{node.name}' cannot be declared among statements",
            "declare it before the apply block or the states",
        )
        type_ = self.resolver.resolve(node.type_ref, generic=True)
        self.arguments.check_loose(node.arguments)
        self.context.record(node, type_)
        self.context.declare(node)

    # ---- control flow

    def _condition(self, node: ast.Expression, what: str) -> None:
        type_ = self.context.check(node, types.BOOLEAN)
        if not isinstance(type_, (types.Boolean, types.Unknown)):
            problem = f"the condition of {what} must be bool, not {type_}"
            self.context.error(node, problem, of_condition(type_))

    def check_if(self, node: ast.If) -> None:
        self._condition(node.condition, "if")
        for branch in (node.then, node.otherwise):
            if branch is not None:
                with self.context.nested_scope():
                    self.check_statement(branch)

    def check_return(self, node: ast.Return) -> None:
        kind = self.context.frame.kind
        if kind == "state":
            self.context.error(node, "a parser state cannot contain return", "use a transition")
        result = self.context.frame.result
        if node.value is None:
            if result is not None and not isinstance(result, types.Void):
                self.context.error(node, f"return needs a value of type {result}")
            return
        value = self.context.check(node.value, result)
        if result is None or isinstance(result, types.Void):
            what = "a function without result" if kind == "function" else f"{self.calls.here()}"
            self.context.error(node.value, f"{what} cannot return a value")
        elif not isinstance(value, types.Unknown):
            self.coercion.coerce(node.value, result, "the result")

    def check_exit(self, node: ast.Exit) -> None:
        if self.context.frame.kind not in ("apply", "action"):
            self.context.error(
                node, f"exit is allowed only in controls and actions, not in {self.calls.here()}"
            )

    def check_loop_jump(self, node: ast.Break | ast.Continue) -> None:
        if not self.context.frame.loops:
            name = "break" if isinstance(node, ast.Break) else "continue"
            self.context.error(node, f"{name} is allowed only in a loop")

    def check_empty(self, node: ast.EmptyStatement) -> None:
        pass

    def check_for(self, node: ast.For) -> None:
        with self.context.nested_scope():
            self.check_statements(node.initial)
            self._condition(node.condition, "for")
            self.check_statements(node.updates)
            self._loop_body(node.body)

    def _loop_body(self, body: ast.Statement) -> None:
        if self.context.frame.kind == "state":
            self.context.error(body, "a parser state cannot contain a loop", "loop by transitions")
        self.context.frame.loops += 1
        with self.context.nested_scope():
            self.check_statement(body)
        self.context.frame.loops -= 1

    def check_for_in(self, node: ast.ForIn) -> None:
        with self.context.nested_scope():
            type_ = self.resolver.value_type(
                node.variable.type_ref, f"variable '{node.variable.name}'"
            )
            self.context.record(node.variable, type_)
            self._collection(node, type_)
            self.context.declare(node.variable)
            self._loop_body(node.body)

    def _collection(self, node: ast.ForIn, type_: types.Type) -> None:
        collection = self.context.check(node.collection, type_)
        what = "the loop's variable"
        if isinstance(collection, types.Unknown) or isinstance(type_, types.Unknown):
            return
        if isinstance(node.collection, ast.Range):
            for end in (node.collection.low, node.collection.high):
                self.coercion.coerce(end, type_, what)
        elif isinstance(node.collection, ast.ListExpression):
            for element in node.collection.elements:
                self.coercion.coerce(element, type_, what)
        elif isinstance(collection, (types.Stack, types.List)):
            if collection.element != type_:
                self.context.error(
                    node,
                    f"{what} has type {type_}, but the elements have type {collection.element}",
                )
        else:
            self.context.error(node.collection, f"a loop cannot iterate over {collection}")

    # ---- switch

    def check_switch(self, node: ast.Switch) -> None:
        subject = self.context.check(node.subject)
        if self.context.frame.kind == "state":
            self.context.error(
                node, "a parser state cannot contain switch", "use transition select(...)"
            )
        if isinstance(subject, types.Integer):
            subject = self.context.error(node.subject, "switch needs a value with a width")
        on_action = isinstance(subject, types.ActionRun)
        if not on_action and not isinstance(subject, (*_SWITCHABLE, types.Unknown)):
            hint = "write .apply().action_run" if isinstance(subject, types.ApplyResult) else ""
            subject = self.context.error(node.subject, f"switch cannot decide on {subject}", hint)
        seen: dict[object, ast.SwitchCase] = {}
        for index, case in enumerate(node.cases):
            self._switch_label(node, case, subject, seen, last=index == len(node.cases) - 1)
            if case.body is not None:
                self.check_block(case.body)

    def _switch_label(
        self,
        node: ast.Switch,
        case: ast.SwitchCase,
        subject: types.Type,
        seen: dict[object, ast.SwitchCase],
        last: bool,
    ) -> None:
        value: object
        if isinstance(case.label, ast.DefaultKeyset):
            value = "default"
            if not last:
                behind = node.cases[node.cases.index(case) + 1]
                self.context.error(
                    behind, "this label follows 'default', which must be the last one"
                )
        elif isinstance(subject, types.ActionRun):
            value = self._action_label(case.label, subject)
        else:
            value = self._value_label(case.label, subject)
        if value is None:
            return
        if value in seen:
            self.context.error(case, f"this label is the same as the one at {seen[value].position}")
        seen.setdefault(value, case)

    def _action_label(
        self, label: ast.Expression, subject: types.ActionRun
    ) -> ast.Declaration | None:
        name = label.name if isinstance(label, ast.NameExpression) else None
        listed = [self.context.program.decl_of.get(a) for a in subject.table.actions]
        for reference, action in zip(subject.table.actions, listed, strict=True):
            if name is not None and reference.name == name and action is not None:
                self.context.program.decl_of[label] = action
                self.context.program.type_of[label] = subject
                return action
        names = "its actions are " + ", ".join(a.name for a in subject.table.actions)
        self.context.error(
            label, f"the label is not an action of table '{subject.table.name}'", names
        )
        return None

    def _value_label(self, label: ast.Expression, subject: types.Type) -> tuple[str, Value] | None:
        type_ = self.context.check(label, subject)
        if isinstance(type_, types.Unknown) or isinstance(subject, types.Unknown):
            return None
        if not self.coercion.coerce(label, subject, "the switch's expression"):
            return None
        value = self.context.program.const_value.get(label)
        if value is None:
            if not self.context.known(label):
                self.context.error(label, "a switch label must be known at compile time")
            return None
        return ("value", value)
