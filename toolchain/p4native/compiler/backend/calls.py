"""Inlines calls of actions, functions and sub-controls, with P4's copy-in and copy-out.

The callee uses the argument itself under the parameter's name if nothing else that the callee can
reach overlaps the argument. Section 6.8 of the P4_16 specification then allows no observable
difference. Otherwise the argument is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p4native.compiler import ast, types
from p4native.compiler.backend import ir
from p4native.compiler.backend.assignments import Assignments
from p4native.compiler.backend.effects import Effects, Path, any_overlap, effects
from p4native.compiler.backend.expressions import Expressions
from p4native.compiler.backend.places import Place, Scalar, SlicePlace, Value, is_scalar
from p4native.compiler.backend.scope import CopyOut, Frame, Scope
from p4native.compiler.backend.storage import Unsupported
from p4native.compiler.typed import BoundArgument, CallInfo, CallKind

MAX_INLINE_DEPTH = 64
MAX_INLINED = 20_000
PACKETS = frozenset({"packet_in", "packet_out"})
# What blocks that do not lower these calls say of them.
_REFUSED = {
    CallKind.TABLE_APPLY: "applying a table here",
    CallKind.CONTROL_APPLY: "applying a control here",
    CallKind.PARSER_APPLY: "applying a parser here",
}


@dataclass
class PassedArgument:
    """An argument, with the variables of the caller that are read or written when the argument is
    evaluated or assigned to."""

    bound: BoundArgument
    touches: Effects


class Calls:
    """The part that inlines calls: it passes arguments in and results out."""

    def __init__(self, scope: Scope, expressions: Expressions, assignments: Assignments) -> None:
        self.scope = scope
        self.expressions = expressions
        self.assignments = assignments
        scope.call_value = self.call_value
        scope.calls[CallKind.ACTION] = self._action
        scope.calls[CallKind.FUNCTION] = self._function

    def call_value(self, call: ast.Call) -> Place | None:
        """Lowers a call and returns the place of the call's result, or None for void."""
        info = self.scope.typed.calls[call]
        if info.kind is CallKind.STATIC_ASSERT:
            return Value(types.BOOLEAN, ir.BoolConstant(True))
        lower = self.scope.calls.get(info.kind)
        if lower is None:
            construct = _REFUSED.get(info.kind, f"a call of kind {info.kind.value}")
            raise self.scope.unsupported(call, construct)
        return lower(call, info)

    def _action(self, call: ast.Call, info: CallInfo) -> None:
        assert isinstance(info.target, ast.ActionDeclaration)
        self.inline_action(info.target, info.arguments)

    def _function(self, call: ast.Call, info: CallInfo) -> Place | None:
        assert isinstance(info.target, ast.FunctionDeclaration)
        return self._inline_function(info.target, info)

    # ---------------------------------------------------------- actions, functions

    def inline_action(
        self, action: ast.ActionDeclaration, arguments: Sequence[BoundArgument]
    ) -> None:
        frame = Frame(
            self.scope.frame.instance,
            self.scope.frame.block,
            f"{self.scope.frame.prefix}.{action.name}",
            lexical=self.lexical_of(action),
            caller=self.scope.frame,
            bindings=self.scope.frame.bindings,
            in_action=self.scope.frame.in_action,
            called=action,
        )
        reach = effects(self.scope.typed, action.body)
        self.enter(frame, arguments, reach)
        self.run_body(frame, action.body.statements)

    def lexical_of(self, declaration: ast.Declaration) -> Frame:
        """Returns the frame of the block that declares an action: the innermost frame that is not
        an action's."""
        frame = self.scope.frame
        while frame.lexical is not None:
            frame = frame.lexical
        return frame

    def _inline_function(self, function: ast.FunctionDeclaration, info: CallInfo) -> Place | None:
        bindings = {
            **self.scope.frame.bindings,
            **{p: types.substitute(t, self.scope.frame.bindings) for p, t in info.bindings.items()},
        }
        frame = Frame(
            None,
            self.scope.frame.block,
            f"{self.scope.frame.prefix}.{function.name}",
            caller=self.scope.frame,
            bindings=bindings,
            in_action=self.scope.frame.in_action,
            called=function,
        )
        result = types.substitute(info.result, self.scope.frame.bindings)
        if not isinstance(result, types.Void):
            frame.result = self.scope.temporary(result)
        self.enter(frame, info.arguments, Effects())
        assert function.body is not None
        self.run_body(frame, function.body.statements)
        return frame.result

    def run_body(self, frame: Frame, body: Sequence[ast.Statement | ast.Declaration]) -> None:
        """Emits the callee's statements, then the label of their end if anything jumps there, and
        then the copies of `out` parameters to the caller."""
        self.guard_recursion(frame)
        self.scope.unit.inlined += 1
        if self.scope.unit.inlined > MAX_INLINED + 1:
            return
        if self.scope.unit.inlined > MAX_INLINED:
            raise Unsupported(self.scope.position, f"more than {MAX_INLINED} inlined calls")
        frame.end = self.scope.unit.new_label()
        with self.scope.inside(frame), self.scope.into([]) as code:
            self.scope.lower_statements(body)
        _strip_tail(code, frame.end)
        self.scope.code.extend(code)
        if any(isinstance(s, ir.Goto) and s.label == frame.end for s in ir.flatten(code)):
            self.scope.mark(frame.end)
        self.copy_out(frame)

    def guard_recursion(self, frame: Frame) -> None:
        callers = 0
        caller: Frame | None = frame.caller
        while caller is not None:
            callers += 1
            caller = caller.caller
        assert callers < MAX_INLINE_DEPTH, "the checker lets no recursion through"

    def copy_out(self, frame: Frame) -> None:
        for copy in frame.copy_outs:
            self.assignments.assign(copy.target, copy.source)

    # ------------------------------------------------------------------ arguments

    def enter(
        self,
        frame: Frame,
        arguments: Sequence[BoundArgument],
        reach: Effects,
    ) -> None:
        """Binds the callee's parameters in `frame`. reach: the variables that the callee's body can
        touch other than through its parameters."""
        passed = [
            PassedArgument(
                bound, effects(self.scope.typed, bound.value) if bound.value else Effects()
            )
            for bound in arguments
        ]
        for index, item in enumerate(passed):
            others = passed[:index] + passed[index + 1 :]
            declaration = item.bound.parameter.declaration
            assert declaration is not None
            if isinstance(item.bound.parameter.type, types.Extern):
                self._bind_object(frame, declaration, item.bound)
            else:
                frame.env[declaration] = self._bind(frame, item, others, reach)

    def _bind_object(
        self, frame: Frame, declaration: ast.Declaration, bound: BoundArgument
    ) -> None:
        """Binds an extern object to its parameter. packet_in and packet_out need no binding,
        because their type identifies them."""
        assert isinstance(bound.parameter.type, types.Extern)
        if bound.value is not None and bound.parameter.type.name not in PACKETS:
            frame.objects[declaration] = self.scope.instance_of(bound.value)

    def enter_again(self, frame: Frame, arguments: Sequence[BoundArgument]) -> None:
        """Copies the arguments of a control that is applied more than once. Each parameter of such
        a control has a separate place, which all applications use."""
        frame.copy_outs = []
        for bound in arguments:
            parameter, declaration = bound.parameter, bound.parameter.declaration
            assert declaration is not None
            if isinstance(parameter.type, types.Extern):
                self._bind_object(frame, declaration, bound)
                continue
            shape = types.substitute(parameter.type, self.scope.frame.bindings)
            if declaration not in frame.env:
                frame.env[declaration] = self.scope.unit.storage.allocate(
                    f"{frame.prefix}.{parameter.name}", shape, self.scope.position
                )
            place = frame.env[declaration]
            if bound.value is None:
                continue
            if parameter.direction in ("", "in"):
                self.assignments.assign(place, self.expressions.operand(bound.value))
                continue
            target = self.expressions.place(bound.value, freeze=True)
            if parameter.direction == "inout":
                self.assignments.assign(place, target)
            else:
                self.assignments.invalidate(place)
            frame.copy_outs.append(CopyOut(target, place))

    def _bind(
        self, frame: Frame, item: PassedArgument, others: list[PassedArgument], reach: Effects
    ) -> Place:
        parameter = item.bound.parameter
        shape = types.substitute(parameter.type, self.scope.frame.bindings)
        if item.bound.value is None:
            return self.scope.unit.storage.allocate(
                f"{frame.prefix}.{parameter.name}", shape, self.scope.position
            )
        if parameter.direction in ("", "in"):
            return self._bind_input(frame, item, others, reach, shape)
        return self._bind_output(frame, item, others, reach, shape)

    def _bind_input(
        self,
        frame: Frame,
        item: PassedArgument,
        others: list[PassedArgument],
        reach: Effects,
        shape: types.Type,
    ) -> Place:
        value = item.bound.value
        assert value is not None
        written = set(reach.writes)
        for other in others:
            written |= other.touches.writes
            if other.bound.parameter.direction in ("out", "inout"):
                written |= other.touches.mentions
        place = self.expressions.operand(value)
        stable = not any_overlap(item.touches.mentions, written)
        if stable and not item.touches.calls and not _is_costly(place):
            return place
        if isinstance(place, Value) and isinstance(place.expr, (ir.Const, ir.BoolConstant)):
            return place
        return self._copied(frame, item, place, shape)

    def _copied(self, frame: Frame, item: PassedArgument, place: Place, shape: types.Type) -> Place:
        name = f"{frame.prefix}.{item.bound.parameter.name}"
        copy = self.scope.unit.storage.allocate(name, shape, self.scope.position)
        self.assignments.assign(copy, place)
        return copy

    def _bind_output(
        self,
        frame: Frame,
        item: PassedArgument,
        others: list[PassedArgument],
        reach: Effects,
        shape: types.Type,
    ) -> Place:
        value, direction = item.bound.value, item.bound.parameter.direction
        assert value is not None
        target = self.expressions.place(value, freeze=True)
        reached: set[Path] = set(reach.mentions)
        for other in others:
            reached |= other.touches.mentions
        alone = not any_overlap(item.touches.mentions, reached)
        if alone and _can_stand(target, shape):
            if direction == "out":
                self.assignments.invalidate(target)
            return target
        name = f"{frame.prefix}.{item.bound.parameter.name}"
        copy = self.scope.unit.storage.allocate(name, shape, self.scope.position)
        if direction == "inout":
            self.assignments.assign(copy, target)
        else:
            self.assignments.invalidate(copy)
        frame.copy_outs.append(CopyOut(target, copy))
        return copy


def _is_costly(place: Place) -> bool:
    """Whether computing the value again at every use would cost more than keeping it in a
    variable."""
    expr = place.expr if isinstance(place, Value) else None
    return isinstance(expr, ir.Op) and expr.depth > 2


def _strip_tail(code: list[ir.Statement], label: int) -> None:
    """Removes jumps to `label` from the end of the code, where control goes to the label anyway."""
    last = code[-1] if code else None
    if isinstance(last, ir.Goto) and last.label == label:
        code.pop()
        _strip_tail(code, label)
    elif isinstance(last, ir.If):
        _strip_tail(last.then, label)
        _strip_tail(last.otherwise, label)
    elif isinstance(last, ir.Apply):
        for body in ir.bodies(last):
            _strip_tail(body, label)


def _can_stand(target: Place, shape: types.Type) -> bool:
    """Whether the callee can use the target itself under the parameter's name, without a copy."""
    if isinstance(target, SlicePlace):
        return False
    if is_scalar(shape):
        return isinstance(target, Scalar)
    return True
