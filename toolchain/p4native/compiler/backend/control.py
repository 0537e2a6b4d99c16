"""Lowers ingress and egress: the application of tables and the use of its results, and controls
inside controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from p4native.compiler import ast, types
from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.effects import Effects
from p4native.compiler.backend.parts import Parts
from p4native.compiler.backend.places import Place, Scalar, Value
from p4native.compiler.backend.scope import Frame, Unit
from p4native.compiler.backend.storage import Unsupported
from p4native.compiler.backend.tables import Tables
from p4native.compiler.typed import BoundArgument, CallInfo, CallKind, Instance


@dataclass
class BuiltTable:
    table: ir.Table
    control: Frame
    keys: list[ir.Key] = field(default_factory=list)


class ControlBody:
    """The part that lowers one pipeline's control. The code goes to pipeline.body, and the tables
    to pipeline.tables."""

    def __init__(self, unit: Unit, frame: Frame, pipeline: ir.Pipeline) -> None:
        parts = Parts(unit, frame)
        self.scope = parts.scope
        self.expressions = parts.expressions
        self.assignments = parts.assignments
        self.calls = parts.calls
        self.statements = parts.statements
        self.tables = Tables(self.scope, self.expressions, self.calls, pipeline)
        self._tables: dict[tuple[int, ast.TableDeclaration], BuiltTable] = {}
        self._frames: dict[int, Frame] = {}
        self.scope.calls[CallKind.ACTION] = self._action
        self.scope.calls[CallKind.TABLE_APPLY] = self.table_call
        self.scope.calls[CallKind.CONTROL_APPLY] = self.control_call
        self.scope.statements[ast.If] = self._if
        self.scope.statements[ast.Switch] = self._switch
        self.scope.apply_result = self.apply_result

    def run(self, control: ast.ControlDeclaration) -> None:
        """Lowers the whole control. Its statements are appended to pipeline.body."""
        self.scope.position = control.position
        with self.scope.into(self.tables.pipeline.body):
            self.run_control(self.scope.frame, control)

    def run_control(self, frame: Frame, control: ast.ControlDeclaration) -> None:
        with self.scope.inside(frame):
            for declaration in control.locals:
                if isinstance(declaration, ast.Variable):
                    self._local_variable(declaration)
        self.calls.run_body(frame, control.body.statements)

    def _local_variable(self, declaration: ast.Variable) -> None:
        """Lowers a variable of a control. If the control is applied again, the variable keeps its
        place."""
        place = self.scope.frame.env.get(declaration)
        if place is None:
            self.statements.statement(declaration)
        elif declaration.value is not None:
            self.assignments.assign(place, self.expressions.operand(declaration.value))

    # ----------------------------------------------------------------- sub-controls

    def control_call(self, call: ast.Call, info: CallInfo) -> Place | None:
        instance = self.scope.called_instance(call, info)
        control = instance.declaration
        assert isinstance(control, ast.ControlDeclaration)
        arguments = block_arguments(instance, info)
        if not has_tables(instance) or self._applied_once(call, info):
            self._inline_control(instance, control, arguments)
        else:
            frame = self._frames.setdefault(id(instance), self._control_frame(instance))
            frame.caller, frame.shared = self.scope.frame, True
            self.calls.enter_again(frame, arguments)
            self.run_control(frame, control)
        return None

    def _inline_control(
        self,
        instance: Instance,
        control: ast.ControlDeclaration,
        arguments: Sequence[BoundArgument],
    ) -> None:
        frame = self._control_frame(instance)
        self.calls.enter(frame, arguments, Effects())
        self.run_control(frame, control)

    def _control_frame(self, instance: Instance) -> Frame:
        bindings = block_bindings(instance)
        return Frame(
            instance,
            self.scope.frame.block,
            instance.name,
            caller=self.scope.frame,
            bindings=bindings,
        )

    def _applied_once(self, call: ast.Call, info: CallInfo) -> bool:
        """Whether this is the only application of the instance in the program."""
        if info.receiver is None:
            return not self.scope.frame.shared
        receiver = self.scope.typed.decl_of.get(info.receiver)
        owner = self.scope.frame.instance
        if self.scope.frame.shared or owner is None or not isinstance(receiver, ast.Instantiation):
            return False
        assert isinstance(owner.declaration, ast.ControlDeclaration)
        same = [
            node
            for node in ast.walk(owner.declaration.body)
            if isinstance(node, ast.Call)
            and node in self.scope.typed.calls
            and self.scope.typed.calls[node].kind is CallKind.CONTROL_APPLY
            and self._receiver(node) is receiver
        ]
        return len(same) == 1

    def _receiver(self, call: ast.Call) -> ast.Declaration | None:
        receiver = self.scope.typed.calls[call].receiver
        return None if receiver is None else self.scope.typed.decl_of.get(receiver)

    def _action(self, call: ast.Call, info: CallInfo) -> Place | None:
        """Lowers the call of an action in an apply block. The action is also listed for the control
        plane."""
        assert isinstance(info.target, ast.ActionDeclaration)
        if not self.scope.frame.in_action and self.scope.frame.called is None:
            name = self.tables.action_name(self.scope.frame, info.target)
            self.scope.unit.control_plane_actions.setdefault(name, info.target)
        self.calls.inline_action(info.target, info.arguments)
        return None

    # ----------------------------------------------------------------------- tables

    def table_call(self, call: ast.Call, info: CallInfo) -> Place | None:
        self.scope.code.append(self.application(info))
        return None

    def application(self, info: CallInfo) -> ir.Apply:
        """Evaluates the keys of a table and returns an ir.Apply. The caller must fill in the
        branches and append the ir.Apply to the code."""
        assert isinstance(info.target, ast.TableDeclaration)
        declaration = info.target
        if self.tables.building_action:
            raise Unsupported(
                self.scope.position, f"applying table {declaration.name} in an action"
            )
        control = self.calls.lexical_of(declaration)
        assert control.instance is not None
        slot = (id(control.instance), declaration)
        built = self._tables.get(slot)
        if built is None:
            built = BuiltTable(self.tables.build_table(control, declaration), control)
            with self.scope.inside(control):
                built.table.keys = self.tables.keys(declaration, None)
                self.tables.add_entries(control, built.table, declaration)
            self._tables[slot] = built
            self.tables.pipeline.tables.append(built.table)
        else:
            with self.scope.inside(control):
                self.tables.keys(declaration, built.table)
        return ir.Apply(self.scope.position, built.table.name)

    def apply_result(self, expression: ast.Member) -> Place:
        assert isinstance(expression.base, ast.Call)
        apply = self.application(self.scope.typed.calls[expression.base])
        if expression.member == "action_run":
            raise self.scope.unsupported(expression, "action_run outside a switch statement")
        result = self.scope.temporary(types.BOOLEAN)
        assert isinstance(result, Scalar)
        apply.kind = "hit"
        for branch in ("hit", "miss"):
            with self.scope.into([]) as code:
                self.scope.emit("assign", result.ref, ir.Const(int(branch == expression.member), 1))
            apply.branches[branch] = code
        self.scope.code.append(apply)
        return Value(types.BOOLEAN, arithmetic.as_boolean(result.ref))

    def _if(self, statement: ast.If) -> None:
        """Lowers an `if`. For `if (t.apply().hit)`, the table itself branches on a hit, so that no
        variable is needed."""
        condition, negated = statement.condition, False
        while isinstance(condition, ast.Unary) and condition.operator == "!":
            condition, negated = condition.operand, not negated
        if not self._is_apply_member(condition):
            self.statements.branch(statement)
            return
        assert isinstance(condition, ast.Member) and isinstance(condition.base, ast.Call)
        apply = self.application(self.scope.typed.calls[condition.base])
        apply.kind = "hit"
        on_hit = (condition.member == "hit") != negated
        then, otherwise = (
            self.statements.body(statement.then),
            self.statements.body(statement.otherwise),
        )
        apply.branches = {
            "hit": then if on_hit else otherwise,
            "miss": otherwise if on_hit else then,
        }
        self.scope.code.append(apply)

    def _is_apply_member(self, expression: ast.Expression) -> bool:
        if not isinstance(expression, ast.Member) or not isinstance(expression.base, ast.Call):
            return False
        info = self.scope.typed.calls.get(expression.base)
        return info is not None and info.kind is CallKind.TABLE_APPLY

    def _switch(self, statement: ast.Switch) -> None:
        if not self._is_apply_member(statement.subject):
            self.statements.plain_switch(statement)
            return
        assert isinstance(statement.subject, ast.Member)
        assert isinstance(statement.subject.base, ast.Call)
        info = self.scope.typed.calls[statement.subject.base]
        apply = self.application(info)
        apply.kind = "action"
        control = self.calls.lexical_of(statement)  # type: ignore[arg-type]
        groups, default = self.statements.switch_groups(statement)
        for labels, body in groups:
            code = self.statements.body(body)
            for label in labels:
                action = self.scope.typed.decl_of[label]
                assert isinstance(action, ast.ActionDeclaration)
                apply.branches[self.tables.action_name(control, action)] = code
        if default is not None:
            apply.default = self.statements.body(default)
        self.scope.code.append(apply)


def has_tables(instance: Instance) -> bool:
    declaration = instance.declaration
    assert isinstance(declaration, ast.ControlDeclaration)
    if any(isinstance(d, ast.TableDeclaration) for d in declaration.locals):
        return True
    return any(
        has_tables(child)
        for child in instance.children.values()
        if isinstance(child.type, types.Control)
    )


def block_arguments(instance: Instance, info: CallInfo) -> list[BoundArgument]:
    """Returns the call's arguments, bound to the parameters of the block that `instance` is. The
    call itself may name only the block's type."""
    shape = instance.type
    assert isinstance(shape, types.Block)
    pairs = zip(shape.parameters, info.arguments, strict=True)
    return [BoundArgument(parameter, bound.value) for parameter, bound in pairs]


def block_bindings(instance: Instance) -> types.Bindings:
    """Returns the argument of each type parameter of a generic parser or control."""
    declaration, shape = instance.declaration, instance.type
    parameters = getattr(declaration, "type_parameters", ())
    arguments = getattr(shape, "arguments", ())
    return dict(zip(parameters, arguments, strict=False))


def lower_control(
    unit: Unit, instance: Instance, name: str, arguments: Sequence[Place]
) -> ir.Pipeline:
    """Lowers ingress or egress. arguments: the places of the control's parameters, in order."""
    control = instance.declaration
    assert isinstance(control, ast.ControlDeclaration)
    pipeline = ir.Pipeline(name, control.position)
    frame = Frame(instance, name, instance.name, bindings=block_bindings(instance))
    frame.env.update(zip(control.parameters, arguments, strict=True))
    unit.program.pipelines.append(pipeline)
    try:
        ControlBody(unit, frame, pipeline).run(control)
    except Unsupported as problem:
        unit.report(problem)
    return pipeline
