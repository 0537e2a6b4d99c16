"""Statements and the declarations among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agglab.compiler import ast, types
from agglab.compiler.check.expressions import Expressions
from agglab.compiler.typed import Value

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


class Statements(Expressions):
    def check_statement(self, node: ast.Statement | ast.Declaration) -> None:
        _CHECKS[type(node)](self, node)

    def check_statements(self, nodes: tuple[ast.Statement | ast.Declaration, ...]) -> None:
        for node in nodes:
            self.check_statement(node)

    def check_block(self, node: ast.Block) -> None:
        with self.nested_scope():
            self.check_statements(node.statements)

    # ---- assignment and calls

    def check_assignment(self, node: ast.Assignment) -> None:
        if node.operator:
            self._compound_assignment(node)
            return
        target = self.check(node.left)
        value = self.check(node.right, target)
        if isinstance(target, types.Unknown):
            return
        if not self._assignable(node.left, target) or isinstance(value, types.Unknown):
            return
        self.coerce_assigned(node.right, target, "the left side")

    def _assignable(self, left: ast.Expression, target: types.Type) -> bool:
        problem = self.lvalue_problem(left)
        if problem:
            self.error(left, f"cannot assign: {problem}")
        elif isinstance(target, _UNASSIGNABLE):
            problem = f"cannot assign to {target}"
            self.error(left, problem)
        return not problem

    def _compound_assignment(self, node: ast.Assignment) -> None:
        """`a += b` is checked as `a = a + b`."""
        operation = ast.Binary(node.position, node.operator, node.left, node.right)
        result = self.check(operation)
        target = self.program.type_of[node.left]
        if isinstance(result, types.Unknown) or not self._assignable(node.left, target):
            return
        if result != target:
            self.error(node, f"the left side has type {target}, but the result is {result}")

    def check_call_statement(self, node: ast.CallStatement) -> None:
        self.check(node.call, types.VOID)

    # ---- declarations

    def check_variable(self, node: ast.Variable) -> None:
        type_ = self.value_type(node.type_ref, f"variable '{node.name}'")
        self.record(node, type_)
        if node.value is not None:
            self.check(node.value, type_)
            self.coerce_assigned(node.value, type_, f"variable '{node.name}'")
        self.declare(node)

    def check_constant(self, node: ast.Constant) -> None:
        type_ = self.definite_type(node.type_ref)
        if isinstance(type_, _UNASSIGNABLE):
            type_ = self.error(node.type_ref, f"a constant cannot have type {type_}")
        self.record(node, type_)
        value = self.check(node.value, type_)
        fine = self.coerce_assigned(node.value, type_, f"constant '{node.name}'")
        if fine and not isinstance(value, types.Unknown) and not self.known(node.value):
            self.error(node.value, f"the value of '{node.name}' is not known at compile time")
        self.declare(node)

    def check_local_instantiation(self, node: ast.Instantiation) -> None:
        self.error(
            node,
            f"instance '{node.name}' declared among statements",
            "declare it before the apply block or the states",
        )
        type_ = self.resolve(node.type_ref, generic=True)
        self.check_loose(node.arguments)
        self.record(node, type_)
        self.declare(node)

    # ---- control flow

    def _condition(self, node: ast.Expression, what: str) -> None:
        type_ = self.check(node, types.BOOLEAN)
        if not isinstance(type_, (types.Boolean, types.Unknown)):
            hint = "compare it: ... != 0" if isinstance(type_, types.Bits) else ""
            self.error(node, f"the condition of {what} must be bool, not {type_}", hint)

    def check_if(self, node: ast.If) -> None:
        self._condition(node.condition, "if")
        for branch in (node.then, node.otherwise):
            if branch is not None:
                with self.nested_scope():
                    self.check_statement(branch)

    def check_return(self, node: ast.Return) -> None:
        kind = self.frame.kind
        if kind == "state":
            self.error(node, "return in a parser state", "use a transition")
        result = self.frame.result
        if node.value is None:
            if result is not None and not isinstance(result, types.Void):
                self.error(node, f"return needs a value of type {result}")
            return
        value = self.check(node.value, result)
        if result is None or isinstance(result, types.Void):
            what = "a function without result" if kind == "function" else f"{self._here()}"
            self.error(node.value, f"return with a value in {what}")
        elif not isinstance(value, types.Unknown):
            self.coerce(node.value, result, "the result")

    def check_exit(self, node: ast.Exit) -> None:
        if self.frame.kind not in ("apply", "action"):
            self.error(node, f"exit in {self._here()}: it belongs in controls and actions")

    def check_loop_jump(self, node: ast.Break | ast.Continue) -> None:
        if not self.frame.loops:
            name = "break" if isinstance(node, ast.Break) else "continue"
            self.error(node, f"{name} outside of a loop")

    def check_empty(self, node: ast.EmptyStatement) -> None:
        pass

    def check_for(self, node: ast.For) -> None:
        with self.nested_scope():
            self.check_statements(node.initial)
            self._condition(node.condition, "for")
            self.check_statements(node.updates)
            self._loop_body(node.body)

    def _loop_body(self, body: ast.Statement) -> None:
        if self.frame.kind == "state":
            self.error(body, "a loop in a parser state", "loop by transitions")
        self.frame.loops += 1
        with self.nested_scope():
            self.check_statement(body)
        self.frame.loops -= 1

    def check_for_in(self, node: ast.ForIn) -> None:
        with self.nested_scope():
            type_ = self.value_type(node.variable.type_ref, f"variable '{node.variable.name}'")
            self.record(node.variable, type_)
            self._collection(node, type_)
            self.declare(node.variable)
            self._loop_body(node.body)

    def _collection(self, node: ast.ForIn, type_: types.Type) -> None:
        collection = self.check(node.collection, type_)
        what = "the loop's variable"
        if isinstance(collection, types.Unknown) or isinstance(type_, types.Unknown):
            return
        if isinstance(node.collection, ast.Range):
            for end in (node.collection.low, node.collection.high):
                self.coerce(end, type_, what)
        elif isinstance(node.collection, ast.ListExpression):
            for element in node.collection.elements:
                self.coerce(element, type_, what)
        elif isinstance(collection, (types.Stack, types.List)):
            if collection.element != type_:
                self.error(node, f"{what} has type {type_}, the elements {collection.element}")
        else:
            self.error(node.collection, f"a loop cannot go through {collection}")

    # ---- switch

    def check_switch(self, node: ast.Switch) -> None:
        subject = self.check(node.subject)
        if self.frame.kind == "state":
            self.error(node, "switch in a parser state", "use transition select(...)")
        if isinstance(subject, types.Integer):
            subject = self.error(node.subject, "switch on a number without width")
        on_action = isinstance(subject, types.ActionRun)
        if not on_action and not isinstance(subject, (*_SWITCHABLE, types.Unknown)):
            subject = self.error(node.subject, f"switch cannot decide on {subject}")
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
                self.error(behind, "this label follows 'default', which must be the last one")
        elif isinstance(subject, types.ActionRun):
            value = self._action_label(case.label, subject)
        else:
            value = self._value_label(case.label, subject)
        if value is None:
            return
        if value in seen:
            self.error(case, f"label is the same as that at {seen[value].position}")
        seen.setdefault(value, case)

    def _action_label(
        self, label: ast.Expression, subject: types.ActionRun
    ) -> ast.Declaration | None:
        name = label.name if isinstance(label, ast.NameExpression) else None
        listed = [self.program.decl_of.get(a) for a in subject.table.actions]
        for reference, action in zip(subject.table.actions, listed, strict=True):
            if name is not None and reference.name == name and action is not None:
                self.program.decl_of[label] = action
                self.program.type_of[label] = subject
                return action
        names = "its actions are " + ", ".join(a.name for a in subject.table.actions)
        self.error(label, f"the label is no action of table '{subject.table.name}'", names)
        return None

    def _value_label(self, label: ast.Expression, subject: types.Type) -> tuple[str, Value] | None:
        type_ = self.check(label, subject)
        if isinstance(type_, types.Unknown) or isinstance(subject, types.Unknown):
            return None
        if not self.coerce(label, subject, "the switch's expression"):
            return None
        value = self.program.const_value.get(label)
        if value is None:
            if not self.known(label):
                self.error(label, "a switch label must be known at compile time")
            return None
        return ("value", value)


_CHECKS: dict[type, Callable[[Any, Any], None]] = {
    ast.Assignment: Statements.check_assignment,
    ast.CallStatement: Statements.check_call_statement,
    ast.EmptyStatement: Statements.check_empty,
    ast.Block: Statements.check_block,
    ast.If: Statements.check_if,
    ast.Return: Statements.check_return,
    ast.Exit: Statements.check_exit,
    ast.Break: Statements.check_loop_jump,
    ast.Continue: Statements.check_loop_jump,
    ast.Switch: Statements.check_switch,
    ast.For: Statements.check_for,
    ast.ForIn: Statements.check_for_in,
    ast.Variable: Statements.check_variable,
    ast.Constant: Statements.check_constant,
    ast.Instantiation: Statements.check_local_instantiation,
}
